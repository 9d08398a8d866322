// The innermost loop of a matrix product, compiled for every SIMD target and chosen at run time.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

inline constexpr int kPanelRows = 6;
inline constexpr int kMaxPanelColumns = 64;

// Columns that one call computes on this machine: two vectors.
int panel_columns();

// c[r][j] (+)= sum over k of a[k][r] * b[k][j] for kPanelRows rows and panel_columns() columns.
// a and b are packed; rows of c are `stride` apart. `first` overwrites c instead of adding.
void micro_kernel(const float* a, const float* b, std::int64_t K, float* c, std::int64_t stride, bool first);

}  // namespace tensorgrad::cpu
