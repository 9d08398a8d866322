// The innermost loop of a matrix product, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// panel_rows() is one of these: with 32 registers, and with 16.
inline constexpr int kMaxPanelRows = 8, kMinPanelRows = 6;
inline constexpr int kMaxPanelColumns = 64;

// Rows and columns that one call computes at most on this machine: as many as its registers hold; the columns
// are two vectors.
int panel_rows();
int panel_columns();

// Rows of the left operand: element (r, k) is data[r * row + k * depth].
struct LeftPanel {
  const float* data;
  std::int64_t row, depth;
};
// Columns of the right operand: element (k, j) is data[k * depth + j]. Whole vectors are read, so that memory
// goes on to a multiple of panel_columns() / 2.
struct RightPanel {
  const float* data;
  std::int64_t depth;
};

// Memory that is needed soon: `step` bytes of it are asked for with each k.
struct Ahead {
  const void* data = nullptr;
  std::int64_t step = 0;
};

// c[r][j] (+)= sum over k of a(r, k) * b(k, j), for 1 .. panel_rows() rows and 1 .. panel_columns() columns.
// Rows of c are `stride` apart; `first` overwrites c instead of adding. The order of the additions follows
// from rows and columns.
void micro_kernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K, float* c,
                  std::int64_t stride, bool first, const Ahead& next = {});

}  // namespace tensorgrad::cpu
