// The innermost loop of a matrix product, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

inline constexpr int kPanelRows = 6;
inline constexpr int kMaxPanelColumns = 64;

// Columns that one call computes on this machine: two vectors.
int panel_columns();

// kPanelRows rows of the left operand: element (r, k) is data[r * row + k * depth].
struct LeftPanel {
  const float* data;
  std::int64_t row, depth;
};
// panel_columns() columns of the right operand: element (k, j) is data[k * depth + j].
struct RightPanel {
  const float* data;
  std::int64_t depth;
};

// c[r][j] (+)= sum over k of a(r, k) * b(k, j), one after the other. Rows of c are `stride` apart; `first`
// overwrites c instead of adding.
void micro_kernel(const LeftPanel& a, const RightPanel& b, std::int64_t K, float* c, std::int64_t stride, bool first);

}  // namespace tensorgrad::cpu
