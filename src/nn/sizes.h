// Checks the sizes that layers and models are constructed with. Errors name the fields and the line
// of the call that constructed the layer, or the model around it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "support/fail.h"
#include "tensorgrad/site.h"

namespace tensorgrad::nn {

struct Size {
  const char* name;
  std::int64_t value;
};

// "Linear: sizes must be at least 1: in 2, out -3\n  at train.cpp:41"
void check_sizes(std::string_view layer, std::initializer_list<Size> sizes, Site site);

// Checks all sizes and returns the first; for use in member initialiser lists.
inline std::int64_t checked(std::string_view layer, std::initializer_list<Size> sizes, Site site) {
  check_sizes(layer, sizes, site);
  return sizes.begin()->value;
}

[[noreturn]] void refuse(std::string_view layer, std::string_view rule, Site site);

}  // namespace tensorgrad::nn
