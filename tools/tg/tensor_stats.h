// Statistics of the elements of a tensor, computed in double.
#pragma once

#include <cstdint>

#include "tensorgrad/array.h"

namespace tensorgrad::tool {

struct TensorStats {
  std::int64_t zeros = 0, nans = 0, infs = 0;
  std::int64_t finite = 0;  // count of finite elements; if 0, the values below are 0
  double min = 0, max = 0, mean = 0;
  double deviation = 0;  // population standard deviation
  double norm = 0;       // L2 norm

  std::int64_t bad() const { return nans + infs; }
};

TensorStats tensor_stats(const Array& array);

}  // namespace tensorgrad::tool
