// Matmul on Intel's tile unit (AMX), which multiplies bfloat16 and accumulates in float. A float is
// split into a sum of three bfloat16 pieces: its first 8 bits, the next 8 and the last 8. Two
// floats give nine products of pieces; the six largest are added. The dropped ones are at most
// 2^-24 of the product, as much as rounding to a float may lose, and far less on average. So the
// precision is that of float: a product may be off by one unit in the last place instead of half of
// one. Sums are off by less than with multiply-adds, because the chains of additions are shorter.
//
// Differences from float: pieces below the smallest normal number are flushed to zero. Operands and
// products below 1e-30 therefore keep fewer bits: near 1e-38 they keep eight, and subnormals keep
// none. A product with an infinity, a NaN or a value above 3.39e38 gives NaN. amx_is_finite detects
// this, and the vector code then recomputes that panel.
#pragma once

#include <cstdint>

#include "support/integers.h"

namespace tensorgrad::cpu {

// Rows and columns of the result per call, and values of k per block.
inline constexpr std::int64_t kAmxRows = 16, kAmxColumns = 32, kAmxDepth = 32;

// Whether this build, machine and operating system support AMX. The first call asks the system for
// permission to use the unit, for the whole process.
bool has_amx();

// Configures the unit for the calling thread during its lifetime.
class AmxSession {
 public:
  AmxSession();
  ~AmxSession();
  AmxSession(const AmxSession&) = delete;
  AmxSession& operator=(const AmxSession&) = delete;
};

// Floats needed to store the pieces of `lines` rows or columns of `depth` values. `lines` is a
// multiple of kAmxRows or kAmxColumns.
constexpr std::int64_t amx_room(std::int64_t lines, std::int64_t depth) {
  return lines * round_up(depth, kAmxDepth) * 3 / 2;
}

// Splits rows into pieces, in panels of kAmxRows: element (r, k) is from[r * row + k *
// depth_stride]. Elements past the edges are zero. `to` is aligned to 64 bytes.
void amx_split_left(const float* from, std::int64_t row, std::int64_t depth_stride,
                    std::int64_t rows, std::int64_t depth, float* to);
// Splits columns into pieces, in panels of kAmxColumns: element (k, j) is from[k * depth_stride + j
// * column]. `sums`, unless null, receives the sum of each column, including the columns that pad
// the last panel.
void amx_split_right(const float* from, std::int64_t depth_stride, std::int64_t column,
                     std::int64_t depth, std::int64_t columns, float* to, double* sums);

// c = before + a panel of rows times a panel of columns, all kAmxRows x kAmxColumns elements. A
// null `before` means zero; `before` may alias c. Requires an AmxSession.
void amx_product(const float* left, const float* right, std::int64_t depth, const float* before,
                 std::int64_t before_stride, float* c, std::int64_t stride);

// Whether all elements are finite.
bool amx_is_finite(const float* c, std::int64_t stride, std::int64_t rows, std::int64_t columns);

}  // namespace tensorgrad::cpu
