#include "codegen/cpu/panels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kTogether = 4;  // panels that are filled at once, so that whole cache lines are read

void PackPanels(const float* HWY_RESTRICT from, std::int64_t row, std::int64_t depth, std::int64_t columns, std::int64_t NR,
                float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = columns / NR * NR;
  for (std::int64_t first = 0; first < whole; first += kTogether * NR) {
    const std::int64_t end = std::min(whole, first + kTogether * NR);
    for (std::int64_t i = 0; i < depth; ++i)
      for (std::int64_t c = first; c < end; c += NR)
        for (std::int64_t j = 0; j < NR; j += lanes)
          hn::StoreU(hn::LoadU(d, from + i * row + c + j), d, to + c * depth + i * NR + j);
  }
  if (whole == columns) return;
  for (std::int64_t i = 0; i < depth; ++i) {
    float* const end = std::copy(from + i * row + whole, from + i * row + columns, to + whole * depth + i * NR);
    std::fill_n(end, NR - (columns - whole), 0.0f);
  }
}

// Four columns, four values of k at a time.
void PackTurnedPanels(const float* HWY_RESTRICT from, std::int64_t column, std::int64_t depth, std::int64_t columns,
                      std::int64_t NR, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  const std::int64_t quads = 0;
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto upper = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto lower = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const std::int64_t quads = columns / 4 * 4, deep = depth / 4 * 4;
  for (std::int64_t c = 0; c < quads; c += 4) {
    float* const out = to + c / NR * NR * depth + c % NR;
    const float* const in = from + c * column;
    for (std::int64_t i = 0; i < deep; i += 4) {
      const auto a0 = hn::LoadU(d, in + i), a1 = hn::LoadU(d, in + column + i);
      const auto a2 = hn::LoadU(d, in + 2 * column + i), a3 = hn::LoadU(d, in + 3 * column + i);
      const auto low01 = hn::InterleaveLower(d, a0, a1), low23 = hn::InterleaveLower(d, a2, a3);
      const auto high01 = hn::InterleaveUpper(d, a0, a1), high23 = hn::InterleaveUpper(d, a2, a3);
      hn::StoreU(lower(low01, low23), d, out + i * NR);
      hn::StoreU(upper(low01, low23), d, out + (i + 1) * NR);
      hn::StoreU(lower(high01, high23), d, out + (i + 2) * NR);
      hn::StoreU(upper(high01, high23), d, out + (i + 3) * NR);
    }
    for (std::int64_t i = deep; i < depth; ++i)
      for (std::int64_t j = 0; j < 4; ++j) out[i * NR + j] = in[j * column + i];
  }
#endif
  for (std::int64_t c = quads; c < (columns + NR - 1) / NR * NR; ++c) {
    float* const out = to + c / NR * NR * depth + c % NR;
    for (std::int64_t i = 0; i < depth; ++i) out[i * NR] = c < columns ? from[c * column + i] : 0.0f;
  }
}

// A vector of columns at a time; four sums in float for a stretch of rows, which are then emptied into double.
void AddColumnSums(const float* HWY_RESTRICT from, std::int64_t row, std::int64_t depth, std::int64_t columns,
                   double* HWY_RESTRICT sum) {
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

void AddParts(const float* parts, std::int64_t stride, std::int64_t count, std::int64_t n,
              float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::LoadU(d, parts + i);
    for (std::int64_t p = 1; p < count; ++p) sum = hn::Add(sum, hn::LoadU(d, parts + p * stride + i));
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
HWY_EXPORT(AddColumnSums);
HWY_EXPORT(AddParts);

void pack_panels(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns, std::int64_t NR, float* to) {
  HWY_DYNAMIC_DISPATCH(PackPanels)(from, row, depth, columns, NR, to);
}
void pack_turned_panels(const float* from, std::int64_t column, std::int64_t depth, std::int64_t columns, std::int64_t NR,
                        float* to) {
  HWY_DYNAMIC_DISPATCH(PackTurnedPanels)(from, column, depth, columns, NR, to);
}
void add_column_sums(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns, double* sum) {
  HWY_DYNAMIC_DISPATCH(AddColumnSums)(from, row, depth, columns, sum);
}
void add_parts(const float* parts, std::int64_t stride, std::int64_t count, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(AddParts)(parts, stride, count, n, to);
}

}  // namespace tensorgrad::cpu
#endif
