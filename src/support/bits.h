// The bits of a value as another type of the same size.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tensorgrad {

// std::bit_cast, which em++ 3.1.6 lacks.
template <class To, class From>
constexpr To bit_cast(const From& value) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, value);
}

inline std::uint64_t bits(double value) { return bit_cast<std::uint64_t>(value); }
inline double double_of_bits(std::uint64_t bits) { return bit_cast<double>(bits); }

}  // namespace tensorgrad
