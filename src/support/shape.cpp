// Shapes: the part of the public header that needs a compiled home.
#include "tensorgrad/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/fail.h"

namespace tensorgrad {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::i32: return "i32";
    case DType::boolean: return "bool";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (const std::int64_t size : dims) push_back(size);
}

Shape::Shape(const std::vector<std::int64_t>& dims) {
  for (const std::int64_t size : dims) push_back(size);
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) product *= size;
  return product;
}

void Shape::no_such_axis(int axis) const {
  user_error("shape: axis {} does not exist: the shape is {}", axis, text());
}

void Shape::push_back(std::int64_t size) { insert(rank_, size); }

void Shape::insert(int axis, std::int64_t size) {
  if (rank_ == kMaxRank)
    user_error("shape: at most {} dimensions: {} has no room for one more", kMaxRank, text());
  if (axis < 0 || axis > rank_) user_error("shape: no place {} for a new axis: the shape is {}", axis, text());
  if (size < 0) user_error("shape: sizes are not negative: {} after {}", size, text());
  // So that bytes fit into 63 bits.
  std::int64_t room = std::int64_t{1} << 60;
  for (const std::int64_t own : *this) room /= std::max<std::int64_t>(own, 1);
  if (size > room) user_error("shape: more than 2^60 elements: {} with another axis of {}", text(), size);
  for (int i = rank_; i > axis; --i)
    dims_[static_cast<std::size_t>(i)] = dims_[static_cast<std::size_t>(i - 1)];
  dims_[static_cast<std::size_t>(axis)] = size;
  ++rank_;
}

void Shape::erase(int axis) {
  for (std::size_t i = index(axis); i + 1 < static_cast<std::size_t>(rank_); ++i)
    dims_[i] = dims_[i + 1];
  dims_[static_cast<std::size_t>(--rank_)] = 0;
}

std::string Shape::text() const { return fmt::format("[{}]", fmt::join(begin(), end(), ",")); }

}  // namespace tensorgrad
