// Element loops, one per instruction of a scalar program, compiled for every SIMD target. The loop
// is looked up once, when a kernel is compiled; calls do no dispatch.
#pragma once

#include <cstdint>

#include "ir/scalar.h"

namespace tensorgrad::cpu {

// Inputs and output of a loop. `out` has lines * length elements, contiguous. Each operand advances
// by its step from line to line: length for an array, 0 for one row shared by all lines. `out` may
// alias an operand.
struct Stretch {
  const float *a = nullptr, *b = nullptr, *c = nullptr;
  float* out = nullptr;
  std::int64_t lines = 1, length = 0;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};
using Loop = void (*)(const Stretch& stretch);

// Operands that are one scalar per line.
enum Ones : unsigned { kNoOnes = 0, kOneA = 1, kOneB = 2, kOneC = 4 };

// The loop of an op whose operands are f32 (`real`), or i32 and bool. Null where there is none:
// with `ones`, only binary ops take one operand as a scalar, and select takes b and c.
Loop find_loop(ir::ScalarOp op, bool real, unsigned ones = kNoOnes);

// A multiplication and an addition in one loop, each rounded separately: a * b + c, a * b - c or c
// - a * b in f32. b and c may be scalars.
enum class ProductForm : std::uint8_t { plus, minus, from };
Loop find_product_loop(ProductForm form, unsigned ones = kNoOnes);

// Reduces lines * length elements, line by line. f32 sums accumulate lanes in f32 for at most eight
// additions and continue in double. i32 sums and products wrap around. NaN propagates in f32.
using FoldLines = void (*)(const float* x, std::int64_t lines, std::int64_t length, double* out);
FoldLines find_fold(ir::Combine combine, DType dtype);

// Folds each row of x [rows, columns] into acc[c], in row order.
using FoldRows = void (*)(const float* x, std::int64_t rows, std::int64_t columns, double* acc);
FoldRows find_column_fold(ir::Combine combine, DType dtype);

// Uniform random values in [0, 1): threefry with key (a, b) and counter (site, c).
void random_loop(const float* a, const float* b, const float* c, std::uint32_t site, float* out,
                 std::int64_t n);
// The i32 values start, start + stride, ..., which wrap around.
void iota_loop(std::uint32_t start, std::uint32_t stride, float* out, std::int64_t n);
// to[r * n + i] = from[r * down + 2 * i], for some rows of n elements.
void every_second(const float* from, std::int64_t down, std::int64_t rows, std::int64_t n,
                  float* to);
// to[i] += from[i].
void add_into(float* to, const float* from, std::int64_t n);

// Combines two values of a reduction.
double combine_two(ir::Combine combine, DType dtype, double a, double b);
// The numeric value of an element.
double value_of(float element, DType dtype);

}  // namespace tensorgrad::cpu
