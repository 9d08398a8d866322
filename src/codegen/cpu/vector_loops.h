// Loops over elements, one per instruction of a scalar program, compiled for every SIMD target.
// Which one is looked up once, when a kernel is made; nothing is decided per call.
#pragma once

#include <cstdint>

#include "ir/scalar.h"

namespace tensorgrad::cpu {

// What a loop reads and writes. `out` has lines * length elements, one line behind the other.
// Operands move on by their step from line to line: length for an array, 0 for one row that all
// lines share. `out` may be an operand.
struct Stretch {
  const float *a = nullptr, *b = nullptr, *c = nullptr;
  float* out = nullptr;
  std::int64_t lines = 1, length = 0;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};
using Loop = void (*)(const Stretch& stretch);

// Operands of which a loop takes one number per line.
enum Ones : unsigned { kNoOnes = 0, kOneA = 1, kOneB = 2, kOneC = 4 };

// The loop of an op whose operands are f32 (`real`) or i32 and bool. Null where there is none: with
// `ones`, only ops of two operands take one of them as a number, and select takes b and c.
Loop find_loop(ir::ScalarOp op, bool real, unsigned ones = kNoOnes);

// A product and a sum in one loop, each rounded by itself: a * b + c, a * b - c or c - a * b of
// f32. b and c may be numbers.
enum class ProductForm : std::uint8_t { plus, minus, from };
Loop find_product_loop(ProductForm form, unsigned ones = kNoOnes);

// Sums (or products, ...) of lines * length elements, line by line. Sums of f32 add lanes in f32
// for at most eight additions and go on in double; sums and products of i32 wrap around; NaN wins
// in f32.
using FoldLines = void (*)(const float* x, std::int64_t lines, std::int64_t length, double* out);
FoldLines find_fold(ir::Combine combine, DType dtype);

// acc[c] with each of the rows [rows, columns] of x, in their order.
using FoldRows = void (*)(const float* x, std::int64_t rows, std::int64_t columns, double* acc);
FoldRows find_column_fold(ir::Combine combine, DType dtype);

// Uniform numbers in [0, 1): threefry of key (a, b) and counter (site, c).
void random_loop(const float* a, const float* b, const float* c, std::uint32_t site, float* out,
                 std::int64_t n);
// The i32 numbers start, start + stride, ..., which wrap around.
void iota_loop(std::uint32_t start, std::uint32_t stride, float* out, std::int64_t n);
// to[i] += from[i].
void add_into(float* to, const float* from, std::int64_t n);

// Joins two values of a fold.
double combine_two(ir::Combine combine, DType dtype, double a, double b);
// The value of an element.
double value_of(float element, DType dtype);

}  // namespace tensorgrad::cpu
