// Array: values on the host with a type and a shape. Uploads and downloads use arrays by name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/shape.h"

namespace tensorgrad {

// A host array. It owns its values.
class Array {
 public:
  Array() = default;  // the f32 scalar 0
  Array(const Shape& shape, std::vector<float> values);
  Array(const Shape& shape, std::vector<std::int32_t> values, DType dtype = i32);

  DType dtype() const { return dtype_; }
  const Shape& shape() const& { return shape_; }
  Shape shape() && { return shape_; }
  std::int64_t count() const { return shape_.count(); }

  // Returns the values, row-major: a view on an lvalue, a vector on an rvalue. Throws a UserError
  // if the array has another type.
  std::span<const float> floats() const&;
  std::span<float> floats() &;
  std::vector<float> floats() &&;
  std::vector<float> floats() const&& { return Array(*this).floats(); }
  // The same for i32, and for bool as 0 and 1.
  std::span<const std::int32_t> ints() const&;
  std::vector<std::int32_t> ints() &&;
  std::vector<std::int32_t> ints() const&& { return Array(*this).ints(); }
  // Returns the only element of an array of size 1.
  double item() const;

 private:
  DType dtype_ = f32;
  Shape shape_;
  std::vector<float> floats_ = std::vector<float>(1);
  std::vector<std::int32_t> ints_;
};

// Arrays by name. An rvalue returns its arrays by value, so that no reference dangles:
//   auto w = train.download().at("w").floats();   // a vector
class NamedArrays : public std::map<std::string, Array> {
  using Map = std::map<std::string, Array>;

 public:
  using Map::Map;
  NamedArrays() = default;
  NamedArrays(Map arrays) : Map(std::move(arrays)) {}

  Array& at(const std::string& name) & { return Map::at(name); }
  const Array& at(const std::string& name) const& { return Map::at(name); }
  Array at(const std::string& name) && { return std::move(Map::at(name)); }
  Array at(const std::string& name) const&& { return Map::at(name); }
  Array& operator[](const std::string& name) & { return Map::operator[](name); }
  Array operator[](const std::string& name) && { return std::move(Map::operator[](name)); }
  iterator find(const std::string& name) & { return Map::find(name); }
  const_iterator find(const std::string& name) const& { return Map::find(name); }
  void find(const std::string& name) const&& = delete;
};

}  // namespace tensorgrad
