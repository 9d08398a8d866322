// What the numbers of a tensor are like, computed in double.
#pragma once

#include <cstdint>

#include "tensorgrad/array.h"

namespace tensorgrad::tool {

struct TensorStats {
  std::int64_t zeros = 0, nans = 0, infs = 0;
  std::int64_t finite = 0;  // how many the rest is about; with none of them it is 0
  double min = 0, max = 0, mean = 0;
  double deviation = 0;  // from the mean, squares divided by their number
  double norm = 0;       // square root of the sum of squares

  std::int64_t bad() const { return nans + infs; }
};

TensorStats tensor_stats(const Array& array);

}  // namespace tensorgrad::tool
