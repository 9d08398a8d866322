// Array: numbers on the host with a type and a shape; what goes up and comes down by name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/shape.h"

namespace tensorgrad {

class Array {
 public:
  Array() = default;  // the number 0
  Array(const Shape& shape, std::vector<float> values);
  Array(const Shape& shape, std::vector<std::int32_t> values, DType dtype = i32);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t count() const { return shape_.count(); }

  // The numbers, row-major: as they lie in an array that has a name, and handed over by one that has none and is about to
  // go. Asking for the wrong type is a UserError.
  std::span<const float> floats() const&;
  std::span<float> floats() &;
  std::vector<float> floats() &&;
  // i32, or bool as 0 and 1.
  std::span<const std::int32_t> ints() const&;
  std::vector<std::int32_t> ints() &&;
  // The only element of an array of one.
  double item() const;

 private:
  DType dtype_ = f32;
  Shape shape_;
  std::vector<float> floats_ = std::vector<float>(1);
  std::vector<std::int32_t> ints_;
};

using NamedArrays = std::map<std::string, Array>;

}  // namespace tensorgrad
