// Joining values in a fixed order.
#include <algorithm>
#include <cstring>

#include "codegen/cpu/block_program.h"

namespace tensorgrad::cpu {

using ir::Combine;

namespace {

// Eight running sums, joined pairwise.
double sum_block(const float* x, int n) {
  float lane[8] = {};
  double total = 0;
  int i = 0;
  while (i + 8 <= n) {
    // At most 32 additions per lane before they are emptied into the double.
    const int stop = std::min(n - 7, i + 256);
    for (; i < stop; i += 8)
      for (int j = 0; j < 8; ++j) lane[j] += x[i + j];
    const double a = (static_cast<double>(lane[0]) + lane[4]) + (static_cast<double>(lane[2]) + lane[6]);
    const double b = (static_cast<double>(lane[1]) + lane[5]) + (static_cast<double>(lane[3]) + lane[7]);
    total += a + b;
    std::fill_n(lane, 8, 0.0f);
  }
  for (; i < n; ++i) total += x[i];
  return total;
}

std::int32_t int_of(float bits) {
  std::int32_t v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

std::uint32_t low_bits(double v) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(v)); }
double as_int(std::uint32_t v) { return static_cast<double>(static_cast<std::int32_t>(v)); }

double value_of(float x, DType dtype) { return dtype == DType::f32 ? static_cast<double>(x) : static_cast<double>(int_of(x)); }

}  // namespace

// i32 sums and products wrap around at 32 bits; NaN wins over everything in f32.
double combine_two(Combine combine, DType dtype, double a, double b) {
  const bool real = dtype == DType::f32;
  switch (combine) {
    case Combine::add: return real ? a + b : as_int(low_bits(a) + low_bits(b));
    case Combine::mul: return real ? a * b : as_int(low_bits(a) * low_bits(b));
    case Combine::max: return a != a || b != b ? a + b : std::max(a, b);
    case Combine::min: return a != a || b != b ? a + b : std::min(a, b);
    case Combine::none: break;
  }
  return a;
}

double combine_block(Combine combine, DType dtype, double start, const float* values, int n) {
  if (combine == Combine::add && dtype == DType::f32) return start + sum_block(values, n);
  double acc = start;
  for (int i = 0; i < n; ++i) acc = combine_two(combine, dtype, acc, value_of(values[i], dtype));
  return acc;
}

void combine_into(Combine combine, DType dtype, double* acc, const float* values, int n) {
  if (combine == Combine::add && dtype == DType::f32) {
    for (int i = 0; i < n; ++i) acc[i] += static_cast<double>(values[i]);
    return;
  }
  for (int i = 0; i < n; ++i) acc[i] = combine_two(combine, dtype, acc[i], value_of(values[i], dtype));
}

float rounded(double value, DType dtype) { return element(value, dtype); }

}  // namespace tensorgrad::cpu
