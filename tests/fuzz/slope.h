// Compares the gradients of a built program with the slope of its loss, by differences in double.
#pragma once

#include <cstdint>
#include <string>

#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

// Describes how the gradients disagree with the slope along a random direction. Empty if they
// agree, or if there is no usable slope: stop_gradient, a jump or a kink nearby.
std::string slope_difference(const Built& built, std::uint64_t seed);

}  // namespace tensorgrad::fuzz
