// Initial values of parameters, keyed by (seed, name). They do not depend on the order or number of
// other parameters.
#pragma once

#include <string>
#include <vector>

#include "tensorgrad/param.h"

namespace tensorgrad::compile_stage {

// Throws a UserError if the initialiser cannot fill the shape.
void check_init(const Init& init, const Shape& shape, const std::string& name);
std::vector<float> initial_values(const Init& init, const Shape& shape, const std::string& name,
                                  std::uint32_t seed);

}  // namespace tensorgrad::compile_stage
