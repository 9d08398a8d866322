#include "codegen/cpu/row_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/row_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float ScaleRow(float* HWY_RESTRICT x, std::int64_t n, float scale) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  auto top = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::Mul(hn::LoadU(d, x + i), factor);
    hn::StoreU(v, d, x + i);
    top = hn::Max(top, v);
  }
  float out = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < n; ++i) out = std::max(out, x[i] *= scale);
  return out;
}

template <class D, class V>
V ExpOrNan(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

float ExpRow(float* HWY_RESTRICT x, std::int64_t n, float shift) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = ExpOrNan(d, hn::Sub(hn::LoadU(d, x + i), by));
    hn::StoreU(v, d, x + i);
    sum = hn::Add(sum, v);
  }
  float out = hn::GetLane(hn::SumOfLanes(d, sum));
  if (i < n) {
    HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
    std::copy(x + i, x + n, rest);
    hn::Store(ExpOrNan(d, hn::Sub(hn::Load(d, rest), by)), d, rest);
    for (const float* from = rest; i < n; ++i) out += x[i] = *from++;
  }
  return out;
}

float DotRow(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  float out = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) out += a[i] * b[i];
  return out;
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(ScaleRow);
HWY_EXPORT(ExpRow);
HWY_EXPORT(DotRow);

float scale_row(float* x, std::int64_t n, float scale) { return HWY_DYNAMIC_DISPATCH(ScaleRow)(x, n, scale); }
float exp_row(float* x, std::int64_t n, float shift) { return HWY_DYNAMIC_DISPATCH(ExpRow)(x, n, shift); }
float dot_row(const float* a, const float* b, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(DotRow)(a, b, n); }

}  // namespace tensorgrad::cpu
#endif
