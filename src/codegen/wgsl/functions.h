// Functions that shaders call: what WGSL lacks, or promises too little of.
#pragma once

#include <string>

namespace tensorgrad::wgsl {

class Source;

// Declares the function (and what it needs) and returns its name. Each exists for one value and for four
// at a time where `width` is 4.
std::string use_function(Source& source, const std::string& name, int width);

}  // namespace tensorgrad::wgsl
