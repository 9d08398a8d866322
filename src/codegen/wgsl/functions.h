// Functions that shaders call: what WGSL lacks, or promises too little of.
#pragma once

#include <string>

#include "codegen/wgsl/source.h"

namespace tensorgrad::wgsl {

// Declares the function (and what it needs) and returns its name. Each exists for one value and for
// four at a time where `width` is 4.
std::string use_function(Source& source, const std::string& name, int width);

// A number as text; infinities and NaN have none of their own, and take a function.
std::string literal(Source& source, double value, DType dtype, int width = 1);

}  // namespace tensorgrad::wgsl
