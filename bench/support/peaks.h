// What the machine can do at most, measured: multiply-adds in registers, and copies between arrays
// of a given size. With the vector target that kernels use (TENSORGRAD_SIMD).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::bench {

// The work that is timed. Returns the floating-point operations done; `sink` keeps the compiler
// from leaving them out.
std::int64_t multiply_adds(float* sink);
void copy(float* to, const float* from, std::size_t count);
// to = a + 3 b
void triad(float* to, const float* a, const float* b, std::size_t count);

// The best of some tries with all threads at once.
double peak_gflops(int threads);
// `bytes` are those that all threads together read and write in one round. What a store reads of a
// cache line before it writes it is not counted.
double copy_gb_per_s(int threads, std::size_t bytes);

}  // namespace tensorgrad::bench
