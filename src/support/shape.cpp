// Shape: the functions of the public header that are not inline.
#include "tensorgrad/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::i32:
      return "i32";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> dims, Site site) {
  for (const std::int64_t size : dims) push_back(size, site);
}

Shape::Shape(const std::vector<std::int64_t>& dims, Site site) {
  for (const std::int64_t size : dims) push_back(size, site);
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) product *= size;
  return product;
}

void Shape::no_such_axis(int axis, Site site) const {
  fail_in_call("shape", fmt::format("axis {} does not exist: the shape is {}", axis, text()), site);
}

void Shape::push_back(std::int64_t size, Site site) { insert(rank_, size, site); }

void Shape::insert(int axis, std::int64_t size, Site site) {
  const auto fail = [&](const std::string& rule) { fail_in_call("shape", rule, site); };
  if (rank_ == kMaxRank)
    fail(fmt::format("at most {} dimensions are supported: {} already has that many", kMaxRank,
                     text()));
  if (axis < 0 || axis > rank_)
    fail(fmt::format("position {} for a new axis is out of range: the shape is {}", axis, text()));
  if (size < 0) fail(fmt::format("sizes must not be negative: {} after {}", size, text()));
  // Limits the count to 2^60 elements, so that sizes in bytes fit into 63 bits.
  std::int64_t room = std::int64_t{1} << 60;
  for (const std::int64_t own : *this) room /= std::max<std::int64_t>(own, 1);
  if (size > room)
    fail(fmt::format("more than 2^60 elements: {} with another axis of {}", text(), size));
  for (int i = rank_; i > axis; --i) dims_[usize(i)] = dims_[usize(i - 1)];
  dims_[usize(axis)] = size;
  ++rank_;
}

void Shape::erase(int axis, Site site) {
  for (std::size_t i = index(axis, site); i + 1 < usize(rank_); ++i) dims_[i] = dims_[i + 1];
  dims_[usize(--rank_)] = 0;
}

std::string Shape::text() const { return fmt::format("[{}]", fmt::join(begin(), end(), ",")); }

}  // namespace tensorgrad
