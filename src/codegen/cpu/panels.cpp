#include "codegen/cpu/panels.h"

#include <algorithm>
#include <cstring>

#include "codegen/cpu/micro_kernel.h"
#include "support/fail.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kTogether = 4;  // panels filled at once, so that whole cache lines are read

void PackPanels(const float* HWY_RESTRICT from, std::int64_t row, std::int64_t rows,
                std::int64_t columns, std::int64_t NR, std::int64_t depth, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = columns / NR * NR;
  for (std::int64_t first = 0; first < whole; first += kTogether * NR) {
    const std::int64_t end = std::min(whole, first + kTogether * NR);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t c = first; c < end; c += NR)
        for (std::int64_t j = 0; j < NR; j += lanes)
          hn::StoreU(hn::LoadU(d, from + i * row + c + j), d, to + c * depth + i * NR + j);
  }
  if (whole == columns) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    float* const end =
        std::copy(from + i * row + whole, from + i * row + columns, to + whole * depth + i * NR);
    std::fill_n(end, NR - (columns - whole), 0.0f);
  }
}

void PackLeft(const float* HWY_RESTRICT from, std::int64_t row, std::int64_t depth,
              std::int64_t columns, float* HWY_RESTRICT to) {
  constexpr std::int64_t R = kPanelRows, kWide = 8;  // kWide: one move instruction
  const std::int64_t whole = columns / R * R;
  for (std::int64_t first = 0; first < whole; first += kTogether * R) {
    const std::int64_t end = std::min(whole, first + kTogether * R);
    std::int64_t i = 0;
    // Excess floats are overwritten by the copy for the next value of k.
    for (; end - R + kWide <= columns && i + 1 < depth; ++i)
      for (std::int64_t c = first; c < end; c += R)
        std::memcpy(to + c * depth + i * R, from + i * row + c, kWide * sizeof(float));
    for (; i < depth; ++i)
      for (std::int64_t c = first; c < end; c += R)
        std::memcpy(to + c * depth + i * R, from + i * row + c, R * sizeof(float));
  }
  if (whole == columns) return;
  for (std::int64_t i = 0; i < depth; ++i)
    std::copy(from + i * row + whole, from + i * row + columns, to + whole * depth + i * R);
}

// Transposes four columns of a panel, four values of k at a time.
void TurnFour(const float* HWY_RESTRICT from, std::int64_t column, std::int64_t depth,
              std::int64_t NR, float* HWY_RESTRICT to) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto upper = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto lower = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  for (; i + 4 <= depth; i += 4) {
    const auto a0 = hn::LoadU(d, from + i), a1 = hn::LoadU(d, from + column + i);
    const auto a2 = hn::LoadU(d, from + 2 * column + i), a3 = hn::LoadU(d, from + 3 * column + i);
    const auto low01 = hn::InterleaveLower(d, a0, a1), low23 = hn::InterleaveLower(d, a2, a3);
    const auto high01 = hn::InterleaveUpper(d, a0, a1), high23 = hn::InterleaveUpper(d, a2, a3);
    hn::StoreU(lower(low01, low23), d, to + i * NR);
    hn::StoreU(upper(low01, low23), d, to + (i + 1) * NR);
    hn::StoreU(lower(high01, high23), d, to + (i + 2) * NR);
    hn::StoreU(upper(high01, high23), d, to + (i + 3) * NR);
  }
#endif
  for (; i < depth; ++i)
    for (std::int64_t j = 0; j < 4; ++j) to[i * NR + j] = from[j * column + i];
}

void PackTurnedPanels(const float* HWY_RESTRICT from, std::int64_t column, std::int64_t depth,
                      std::int64_t columns, std::int64_t NR, float* HWY_RESTRICT to) {
  for (std::int64_t first = 0; first < columns; first += NR, to += NR * depth) {
    const std::int64_t n = std::min(NR, columns - first), quads = n / 4 * 4;
    const float* const in = from + first * column;
    for (std::int64_t c = 0; c < quads; c += 4)
      TurnFour(in + c * column, column, depth, NR, to + c);
    for (std::int64_t c = quads; c < NR; ++c)
      for (std::int64_t i = 0; i < depth; ++i) to[i * NR + c] = c < n ? in[c * column + i] : 0.0f;
  }
}

// One vector of columns at a time: four float accumulators for a run of rows, then added to double.
void AddColumnSums(const float* HWY_RESTRICT from, std::int64_t row, std::int64_t depth,
                   std::int64_t columns, double* HWY_RESTRICT sum) {
  constexpr std::int64_t kStretch = 64;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float part[hn::MaxLanes(d)];
  for (std::int64_t c = 0; c < columns; c += lanes)
    for (std::int64_t first = 0; first < depth; first += kStretch) {
      const float* at = from + c + first * row;
      std::int64_t i = first;
      const std::int64_t end = std::min(depth, first + kStretch);
      auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
      for (; i + 4 <= end; i += 4, at += 4 * row) {
        s0 = hn::Add(s0, hn::LoadU(d, at)), s1 = hn::Add(s1, hn::LoadU(d, at + row));
        s2 = hn::Add(s2, hn::LoadU(d, at + 2 * row)), s3 = hn::Add(s3, hn::LoadU(d, at + 3 * row));
      }
      for (; i < end; ++i, at += row) s0 = hn::Add(s0, hn::LoadU(d, at));
      hn::Store(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), d, part);
      for (std::int64_t j = 0; j < lanes; ++j) sum[c + j] += static_cast<double>(part[j]);
    }
}

// N columns at a time.
template <int N>
void Dots(const float* HWY_RESTRICT a, const float* HWY_RESTRICT from, std::int64_t column,
          std::int64_t K, float* HWY_RESTRICT c, bool first) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[N];
  for (int j = 0; j < N; ++j) sum[j] = hn::Zero(d);
  std::int64_t k = 0;
  for (; k + lanes <= K; k += lanes) {
    const auto x = hn::LoadU(d, a + k);
    for (int j = 0; j < N; ++j) sum[j] = hn::MulAdd(x, hn::LoadU(d, from + j * column + k), sum[j]);
  }
  for (int j = 0; j < N; ++j) {
    float total = hn::GetLane(hn::SumOfLanes(d, sum[j]));
    for (std::int64_t i = k; i < K; ++i) total += a[i] * from[j * column + i];
    c[j] = first ? total : c[j] + total;
  }
}

void AddDots(const float* a, const float* from, std::int64_t column, std::int64_t K,
             std::int64_t columns, float* c, bool first) {
  std::int64_t j = 0;
  for (; j + 8 <= columns; j += 8) Dots<8>(a, from + j * column, column, K, c + j, first);
  for (; j < columns; ++j) Dots<1>(a, from + j * column, column, K, c + j, first);
}

void AddParts(const float* parts, std::int64_t stride, std::int64_t count, std::int64_t n,
              float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::LoadU(d, parts + i);
    for (std::int64_t p = 1; p < count; ++p)
      sum = hn::Add(sum, hn::LoadU(d, parts + p * stride + i));
    hn::StoreU(sum, d, to + i);
  }
  for (; i < n; ++i) {
    float sum = parts[i];
    for (std::int64_t p = 1; p < count; ++p) sum += parts[p * stride + i];
    to[i] = sum;
  }
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(PackPanels);
HWY_EXPORT(PackTurnedPanels);
HWY_EXPORT(PackLeft);
HWY_EXPORT(AddColumnSums);
HWY_EXPORT(AddDots);
HWY_EXPORT(AddParts);

void pack_panels(const float* from, std::int64_t row, std::int64_t rows, std::int64_t columns,
                 std::int64_t NR, std::int64_t depth, float* to) {
  if (NR % panel_lanes() != 0) internal_error("panels of {} columns are not whole vectors", NR);
  HWY_DYNAMIC_DISPATCH(PackPanels)(from, row, rows, columns, NR, depth, to);
}
void pack_turned_panels(const float* from, std::int64_t column, std::int64_t depth,
                        std::int64_t columns, std::int64_t NR, float* to) {
  HWY_DYNAMIC_DISPATCH(PackTurnedPanels)(from, column, depth, columns, NR, to);
}
void pack_left(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns,
               float* to) {
  HWY_DYNAMIC_DISPATCH(PackLeft)(from, row, depth, columns, to);
}
void add_column_sums(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns,
                     double* sum) {
  HWY_DYNAMIC_DISPATCH(AddColumnSums)(from, row, depth, columns, sum);
}
void add_dots(const float* a, const float* from, std::int64_t column, std::int64_t K,
              std::int64_t columns, float* c, bool first) {
  HWY_DYNAMIC_DISPATCH(AddDots)(a, from, column, K, columns, c, first);
}
void add_parts(const float* parts, std::int64_t stride, std::int64_t count, std::int64_t n,
               float* to) {
  HWY_DYNAMIC_DISPATCH(AddParts)(parts, stride, count, n, to);
}

}  // namespace tensorgrad::cpu
#endif
