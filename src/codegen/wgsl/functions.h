// WGSL functions that shaders call: missing built-ins, or built-ins with too weak guarantees.
#pragma once

#include <string>

#include "codegen/wgsl/source.h"

namespace tensorgrad::wgsl {

// Declares the function and its dependencies, and returns its name. Each function has a scalar
// form, and a vec4 form for `width` 4.
std::string use_function(Source& source, const std::string& name, int width);

// A scalar literal. Infinities and NaN have no literal in WGSL and go through a function.
std::string literal(Source& source, double value, DType dtype, int width = 1);

}  // namespace tensorgrad::wgsl
