// The innermost loop of a matrix product, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Rows and columns that one call computes at most, as many as registers hold: the columns are some
// vectors of panel_lanes() floats on this machine.
inline constexpr int kPanelRows = 6;
inline constexpr int kMaxPanelColumns = 64;
int panel_columns();
int panel_lanes();

// Rows of the left operand: element (r, k) is data[r * row + k * depth].
struct LeftPanel {
  const float* data;
  std::int64_t row, depth;
};
// Columns of the right operand: element (k, j) is data[k * depth + j]. Whole vectors are read, so
// that memory goes on to a multiple of panel_lanes().
struct RightPanel {
  const float* data;
  std::int64_t depth;
};

// Memory that is needed soon: `step` bytes of it are asked for with each k.
struct Ahead {
  const void* data = nullptr;
  std::int64_t step = 0;
};

// What a product is added to: element (r, j) is data[r * row + j]; null where there is nothing yet.
struct Before {
  const float* data = nullptr;
  std::int64_t row = 0;
};

// c[r][j] = before(r, j) + sum over k of a(r, k) * b(k, j), for 1 .. kPanelRows rows and 1 ..
// panel_columns() columns. Rows of c are `stride` apart; it may be what was before. The order of
// the additions follows from rows and columns.
void micro_kernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K,
                  const Before& before, float* c, std::int64_t stride, const Ahead& next = {});

}  // namespace tensorgrad::cpu
