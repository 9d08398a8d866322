// Random data that is the same on every platform: a number depends only on its seed, its purpose
// and two counters.
#pragma once

#include <cstdint>

#include "support/threefry.h"

namespace tensorgrad::tool {

enum class DrawFor : std::uint32_t { split = 1, batch, bench };

inline std::uint32_t draw(std::uint32_t seed, DrawFor purpose, std::int64_t i, std::int64_t j = 0) {
  return threefry(seed, static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(i),
                  static_cast<std::uint32_t>(j))[0];
}

// Uniform in 0 .. n-1.
inline std::int64_t below(std::int64_t n, std::uint32_t word) {
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(n)) >> 32);
}

}  // namespace tensorgrad::tool
