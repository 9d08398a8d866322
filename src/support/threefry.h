// Threefry-2x32 with 20 rounds: the counter-based generator for random ops and initial weights. A
// number depends only on its key and its counter.
#pragma once

#include <array>
#include <cstdint>

namespace tensorgrad {

inline std::array<std::uint32_t, 2> threefry(std::uint32_t key0, std::uint32_t key1,
                                             std::uint32_t counter0, std::uint32_t counter1) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t keys[3] = {key0, key1, 0x1BD11BDAu ^ key0 ^ key1};
  std::uint32_t x = counter0 + keys[0], y = counter1 + keys[1];
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (const int rotation : kRotations[group % 2]) {
      x += y;
      y = (y << rotation) | (y >> (32 - rotation));
      y ^= x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

// Uniform in [0, 1), 24 bits.
inline float unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace tensorgrad
