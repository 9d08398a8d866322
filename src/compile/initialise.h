// Initial values of parameters, keyed by (seed, name): the order and number of other parameters do
// not matter.
#pragma once

#include <string>
#include <vector>

#include "tensorgrad/param.h"

namespace tensorgrad::compile_stage {

std::vector<float> initial_values(const Init& init, const Shape& shape, const std::string& name, std::uint32_t seed);

}  // namespace tensorgrad::compile_stage
