// Converts a double to its bits and back. Replaces std::bit_cast, which em++ 3.1.6 lacks.
#pragma once

#include <cstdint>
#include <cstring>

namespace tensorgrad {

inline std::uint64_t bits(double value) {
  std::uint64_t result = 0;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

inline double double_of_bits(std::uint64_t bits) {
  double result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace tensorgrad
