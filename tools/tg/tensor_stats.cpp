#include "tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace tensorgrad::tool {

namespace {

// Two passes: the sum of squared deviations from the mean does not cancel.
template <class Number>
TensorStats stats_of(std::span<const Number> values) {
  TensorStats stats;
  double sum = 0, squares = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  for (const Number number : values) {
    const auto value = static_cast<double>(number);
    stats.zeros += value == 0;
    stats.nans += std::isnan(value);
    stats.infs += std::isinf(value);
    if (!std::isfinite(value)) continue;
    ++stats.finite;
    min = std::min(min, value), max = std::max(max, value);
    sum += value, squares += value * value;
  }
  if (stats.finite == 0) return stats;
  const auto count = static_cast<double>(stats.finite);
  stats.min = min, stats.max = max, stats.mean = sum / count, stats.norm = std::sqrt(squares);
  double apart = 0;
  for (const Number number : values) {
    const double distance = static_cast<double>(number) - stats.mean;
    if (std::isfinite(distance)) apart += distance * distance;
  }
  stats.deviation = std::sqrt(apart / count);
  return stats;
}

}  // namespace

TensorStats tensor_stats(const Array& array) {
  return array.dtype() == f32 ? stats_of(array.floats()) : stats_of(array.ints());
}

}  // namespace tensorgrad::tool
