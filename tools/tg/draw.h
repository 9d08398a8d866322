// Random data that is the same on every platform: a number depends on its seed, what it is for and
// two counters alone.
#pragma once

#include <cstdint>

#include "support/threefry.h"

namespace tensorgrad::tool {

enum class DrawFor : std::uint32_t { split = 1, batch, bench };

inline std::uint32_t draw(std::uint32_t seed, DrawFor purpose, std::int64_t i, std::int64_t j = 0) {
  return threefry(seed, static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(i),
                  static_cast<std::uint32_t>(j))[0];
}

// 0 .. n-1
inline std::int64_t below(std::int64_t n, std::uint32_t word) {
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(n)) >> 32);
}

}  // namespace tensorgrad::tool
