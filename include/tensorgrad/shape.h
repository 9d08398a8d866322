// Element types and static shapes. A shape has at most kMaxRank dimensions and needs no heap
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tensorgrad/site.h"

namespace tensorgrad {

enum class DType : std::uint8_t { f32, i32, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType i32 = DType::i32;
inline constexpr DType boolean = DType::boolean;

// "f32", "i32" or "bool".
const char* name(DType dtype);

inline constexpr int kMaxRank = 8;

// The sizes of a tensor.
class Shape {
 public:
  // An axis, and the line of the call that uses it.
  struct Axis {
    int at;
    Site site;
    Axis(int axis, Site here = Site::here()) : at(axis), site(here) {}
  };

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims, Site site = Site::here());
  explicit Shape(const std::vector<std::int64_t>& dims, Site site = Site::here());

  int rank() const { return rank_; }
  // Returns the number of elements: the product of the sizes, 1 for rank 0.
  std::int64_t count() const;
  // Returns the size of an axis. Negative axes count from the end. Throws if there is no such axis.
  std::int64_t operator[](Axis axis) const { return dims_[index(axis.at, axis.site)]; }
  std::int64_t& operator[](Axis axis) { return dims_[index(axis.at, axis.site)]; }
  std::int64_t back() const { return dims_[index(-1)]; }

  operator std::vector<std::int64_t>() const { return {begin(), end()}; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

  void push_back(std::int64_t size, Site site = Site::here());
  void insert(int axis, std::int64_t size, Site site = Site::here());
  void erase(int axis, Site site = Site::here());

  // "[32,784]"
  std::string text() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[static_cast<std::size_t>(i)] != b.dims_[static_cast<std::size_t>(i)])
        return false;
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::size_t index(int axis, Site site = {}) const {
    const int at = axis < 0 ? axis + rank_ : axis;
    if (at < 0 || at >= rank_) no_such_axis(axis, site);
    return static_cast<std::size_t>(at);
  }
  [[noreturn]] void no_such_axis(int axis, Site site) const;

  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tensorgrad
