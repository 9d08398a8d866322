// Matrix products on Intel's tile unit (AMX), which multiplies bfloat16 and adds in float. A float
// is the sum of three bfloat16: its first 8 bits, the next 8 and the last 8. Of the nine products
// of such pieces the six larger ones are added; what is left out is at most 2^-24 of the product,
// what rounding it to a float may take, and far less on average. So these are float products: one
// may be off by one unit in the last place instead of half of one, and sums by less than those of
// multiply-adds, because chains of additions are shorter.
//
// Not like floats: pieces below the smallest normal number are zero, so that operands and products
// below 1e-30 keep fewer bits, those near 1e-38 eight and subnormal ones none. A product with an
// infinity, a NaN or a number above 3.39e38 comes out as NaN: amx_is_finite tells, and then vectors
// compute that panel.
#pragma once

#include <cstdint>

#include "support/integers.h"

namespace tensorgrad::cpu {

// Rows and columns of the result that one call computes, and values of k at a time.
inline constexpr std::int64_t kAmxRows = 16, kAmxColumns = 32, kAmxDepth = 32;

// Whether this build, machine and system have it. The first call asks the system for the use of the
// unit, which holds for the process.
bool has_amx();

// The unit is set up for the calling thread while this lives.
class AmxSession {
 public:
  AmxSession();
  ~AmxSession();
  AmxSession(const AmxSession&) = delete;
  AmxSession& operator=(const AmxSession&) = delete;
};

// Floats that `lines` rows or columns of `depth` values take in pieces; lines are a multiple of
// kAmxRows or kAmxColumns.
constexpr std::int64_t amx_room(std::int64_t lines, std::int64_t depth) {
  return lines * round_up(depth, kAmxDepth) * 3 / 2;
}

// Pieces of rows, in panels of kAmxRows: element (r, k) is from[r * row + k * depth_stride]. What
// is past the edges is zero. `to` is aligned to 64 bytes.
void amx_split_left(const float* from, std::int64_t row, std::int64_t depth_stride,
                    std::int64_t rows, std::int64_t depth, float* to);
// Pieces of columns, in panels of kAmxColumns: element (k, j) is from[k * depth_stride + j *
// column]. `sums`, unless null, becomes the sum of each column, with those that fill the last
// panel.
void amx_split_right(const float* from, std::int64_t depth_stride, std::int64_t column,
                     std::int64_t depth, std::int64_t columns, float* to, double* sums);

// c = before + a panel of rows times a panel of columns, all kAmxRows x kAmxColumns of them;
// nothing is before where that is null, and it may be c. Within an AmxSession.
void amx_product(const float* left, const float* right, std::int64_t depth, const float* before,
                 std::int64_t before_stride, float* c, std::int64_t stride);

// Whether all of these numbers are finite.
bool amx_is_finite(const float* c, std::int64_t stride, std::int64_t rows, std::int64_t columns);

}  // namespace tensorgrad::cpu
