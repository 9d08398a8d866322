// Integer arithmetic for all folders. Sizes and positions are std::int64_t in this project; the
// standard library uses std::size_t.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tensorgrad {

// Converts a count, a position or an enumerator to std::size_t. It must not be negative.
template <class T>
constexpr std::size_t usize(T value) {
  static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
  assert(static_cast<std::int64_t>(value) >= 0);
  return static_cast<std::size_t>(value);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Rounds n up to a multiple of `unit`.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return ceil_div(n, unit) * unit;
}

// The length of a piece when n is cut into pieces of at most `most`, all about as long: a multiple
// of `unit`, and at least one.
constexpr std::int64_t even_piece(std::int64_t n, std::int64_t most, std::int64_t unit) {
  const std::int64_t piece = round_up(ceil_div(n, n > most ? ceil_div(n, most) : 1), unit);
  return piece > unit ? piece : unit;
}

}  // namespace tensorgrad
