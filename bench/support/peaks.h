// The measured peaks of the machine: multiply-adds in registers, and copies between arrays of a
// given size. Uses the vector target of the kernels (TENSORGRAD_SIMD).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::bench {

// The timed work. Returns the number of floating-point operations; `sink` keeps the compiler from
// removing them.
std::int64_t multiply_adds(float* sink);
void copy(float* to, const float* from, std::size_t count);
// to = a + 3 b
void triad(float* to, const float* a, const float* b, std::size_t count);

// The best of some tries with all threads at once.
double peak_gflops(int threads);
// `bytes`: what all threads together read and write per round. Does not count that a store reads a
// cache line before it writes.
double copy_gb_per_s(int threads, std::size_t bytes);

}  // namespace tensorgrad::bench
