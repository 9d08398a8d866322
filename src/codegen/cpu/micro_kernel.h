// The inner loop of a matmul, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Maximum rows and columns per call, as many as fit in registers. The columns are a multiple of
// panel_lanes() floats, the vector width of this machine.
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
// the memory must extend to a multiple of panel_lanes().
struct RightPanel {
  const float* data;
  std::int64_t depth;
};

// Memory to prefetch: `step` bytes with each k.
struct Ahead {
  const void* data = nullptr;
  std::int64_t step = 0;
};

// The initial value that the result is added to: element (r, j) is data[r * row + j]; null means
// zero.
struct Before {
  const float* data = nullptr;
  std::int64_t row = 0;
};

// c[r][j] = before(r, j) + sum over k of a(r, k) * b(k, j), for 1 .. kPanelRows rows and 1 ..
// panel_columns() columns. Rows of c are `stride` apart; c may alias `before`. The order of the
// additions depends only on the row and column counts.
void micro_kernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K,
                  const Before& before, float* c, std::int64_t stride, const Ahead& next = {});

}  // namespace tensorgrad::cpu
