// The gradients of a built program against the slope of its loss, by differences in double.
#pragma once

#include <cstdint>
#include <string>

#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

// How the gradients disagree with the slope along a random direction; empty when they agree, and
// where there is no slope to speak of: stop_gradient, a jump or a kink nearby.
std::string slope_difference(const Built& built, std::uint64_t seed);

}  // namespace tensorgrad::fuzz
