// Arrays on the host.
#include "tensorgrad/array.h"

#include <utility>

#include "support/fail.h"

namespace tensorgrad {

Array::Array(const Shape& shape, std::vector<float> values)
    : shape_(shape), floats_(std::move(values)) {
  if (static_cast<std::int64_t>(floats_.size()) != shape.count())
    user_error("Array: the shape {} has {} elements, {} were given", shape.text(), shape.count(),
               floats_.size());
}

Array::Array(const Shape& shape, std::vector<std::int32_t> values, DType dtype)
    : dtype_(dtype), shape_(shape), floats_(), ints_(std::move(values)) {
  if (dtype == DType::f32) user_error("Array: integers cannot fill an f32 array");
  if (static_cast<std::int64_t>(ints_.size()) != shape.count())
    user_error("Array: the shape {} has {} elements, {} were given", shape.text(), shape.count(),
               ints_.size());
}

std::span<const float> Array::floats() const& {
  if (dtype_ != DType::f32)
    user_error("Array: floats() of an array of {}\n  hint: ints()", name(dtype_));
  return floats_;
}

std::span<float> Array::floats() & {
  if (dtype_ != DType::f32)
    user_error("Array: floats() of an array of {}\n  hint: ints()", name(dtype_));
  return floats_;
}

std::vector<float> Array::floats() && {
  static_cast<void>(std::as_const(*this).floats());
  return std::move(floats_);
}

std::vector<std::int32_t> Array::ints() && {
  static_cast<void>(std::as_const(*this).ints());
  return std::move(ints_);
}

std::span<const std::int32_t> Array::ints() const& {
  if (dtype_ == DType::f32) user_error("Array: ints() of an array of f32\n  hint: floats()");
  return ints_;
}

double Array::item() const {
  if (count() != 1)
    user_error("Array: item() of an array of {} elements: {}", count(), shape_.text());
  return dtype_ == DType::f32 ? static_cast<double>(floats_[0]) : static_cast<double>(ints_[0]);
}

}  // namespace tensorgrad
