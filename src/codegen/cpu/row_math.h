// Loops over a row of floats, compiled for every SIMD target and chosen at run time. NaN goes in and comes out.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// x[i] *= scale; returns the largest.
float scale_row(float* x, std::int64_t n, float scale);
// x[i] = exp(x[i] - shift); returns the sum, in a fixed order.
float exp_row(float* x, std::int64_t n, float shift);
// Sum of a[i] * b[i], in a fixed order.
float dot_row(const float* a, const float* b, std::int64_t n);

}  // namespace tensorgrad::cpu
