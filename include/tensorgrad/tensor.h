// Tensor: a value inside a trace. It has a type and a shape, but no values until a compiled program
// runs. Operand: the argument of an op. It can be a tensor, a parameter or a scalar, on either
// side, and it records the caller's line.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/shape.h"
#include "tensorgrad/site.h"

namespace tensorgrad {

class Param;

// A value inside a trace. Copies are cheap: they refer to the same node.
class Tensor {
 public:
  Tensor() = default;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t count() const { return shape_.count(); }
  // Returns the size of one axis. Negative axes count from the end.
  std::int64_t size(int axis, Site site = Site::here()) const;
  // Returns false for a default-constructed Tensor, which no op accepts.
  bool valid() const { return node_ >= 0; }

 private:
  friend struct TensorAccess;
  std::uint64_t trace_ = 0;
  std::int32_t node_ = -1;
  DType dtype_ = DType::f32;
  Shape shape_;
};

// The argument of an op: a tensor, a parameter or a scalar.
class Operand {
 public:
  Operand(const Tensor& tensor, Site site = Site::here()) : tensor_(tensor), site_(site) {}
  Operand(const Param& param, Site site = Site::here()) : param_(&param), site_(site) {}
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T value, Site site = Site::here())
      : scalar_(static_cast<double>(value)),
        scalar_dtype_(std::same_as<T, bool> ? DType::boolean
                      : std::integral<T>    ? DType::i32
                                            : DType::f32),
        is_scalar_(true),
        site_(site) {}

  Site site() const { return site_; }

 private:
  friend struct TensorAccess;
  Tensor tensor_;
  const Param* param_ = nullptr;
  double scalar_ = 0;
  DType scalar_dtype_ = DType::f32;
  bool is_scalar_ = false;
  Site site_;
};

// Several operands: `concat({a, b, c}, 1)` or a std::vector<Tensor>.
class Operands {
 public:
  Operands(std::initializer_list<Operand> items, Site site = Site::here())
      : items_(items), site_(site) {}
  explicit Operands(std::vector<Operand> items, Site site = Site::here())
      : items_(std::move(items)), site_(site) {}
  Operands(const std::vector<Tensor>& items, Site site = Site::here()) : site_(site) {
    for (const Tensor& item : items) items_.emplace_back(item, site);
  }
  const std::vector<Operand>& items() const { return items_; }
  Site site() const { return items_.empty() ? site_ : items_[0].site(); }

 private:
  std::vector<Operand> items_;
  Site site_;
};

// A set of axes; empty means all of them. Negative axes count from the end.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_{axis} {}
  Axes(std::initializer_list<int> axes) : axes_(axes) {}
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}
  const std::vector<int>& values() const { return axes_; }

 private:
  std::vector<int> axes_;
};

}  // namespace tensorgrad
