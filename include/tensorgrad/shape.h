// Element types and static shapes. A shape has at most kMaxRank dimensions and lives inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tensorgrad {

enum class DType : std::uint8_t { f32, i32, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType i32 = DType::i32;
inline constexpr DType boolean = DType::boolean;

// "f32", "i32" or "bool".
const char* name(DType dtype);

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(const std::vector<std::int64_t>& dims);

  int rank() const { return rank_; }
  // The number of elements: the product of the sizes, 1 for rank 0.
  std::int64_t count() const;
  // Size of an axis; negative axes count from the end. The axis must exist.
  std::int64_t operator[](int axis) const { return dims_[index(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[index(axis)]; }
  std::int64_t back() const { return (*this)[-1]; }

  operator std::vector<std::int64_t>() const { return {begin(), end()}; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

  void push_back(std::int64_t size);
  void insert(int axis, std::int64_t size);
  void erase(int axis);

  // "[32,784]"
  std::string text() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[static_cast<std::size_t>(i)] != b.dims_[static_cast<std::size_t>(i)]) return false;
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::size_t index(int axis) const {
    const int at = axis < 0 ? axis + rank_ : axis;
    if (at < 0 || at >= rank_) no_such_axis(axis);
    return static_cast<std::size_t>(at);
  }
  [[noreturn]] void no_such_axis(int axis) const;

  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tensorgrad
