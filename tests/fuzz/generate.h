// Generates a program from a seed: leaves, 5 to 40 ops, a loss of some values, the gradients of all
// or some parameters, outputs from the middle, updates of state and parameters.
#pragma once

#include <cstdint>

#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

inline constexpr int kFewestOps = 5, kMostOps = 40;

// The same program for the same seed on every platform.
Program generate(std::uint64_t seed);

}  // namespace tensorgrad::fuzz
