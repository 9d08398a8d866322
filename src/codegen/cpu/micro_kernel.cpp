#include "codegen/cpu/micro_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/micro_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

int PanelColumns() { return static_cast<int>(2 * hn::Lanes(hn::ScalableTag<float>())); }

void MicroKernel(const LeftPanel& left, const RightPanel& right, std::int64_t K, float* HWY_RESTRICT c,
                 std::int64_t stride, bool first) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const float *HWY_RESTRICT a = left.data, *HWY_RESTRICT b = right.data;
  const std::int64_t row = left.row, a_step = left.depth, b_step = right.depth;
  auto c00 = hn::Zero(d), c01 = hn::Zero(d), c10 = hn::Zero(d), c11 = hn::Zero(d);
  auto c20 = hn::Zero(d), c21 = hn::Zero(d), c30 = hn::Zero(d), c31 = hn::Zero(d);
  auto c40 = hn::Zero(d), c41 = hn::Zero(d), c50 = hn::Zero(d), c51 = hn::Zero(d);
  for (std::int64_t k = 0; k < K; ++k) {
    const auto b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
    const auto a0 = hn::Set(d, a[0]), a1 = hn::Set(d, a[row]), a2 = hn::Set(d, a[2 * row]);
    c00 = hn::MulAdd(a0, b0, c00), c01 = hn::MulAdd(a0, b1, c01);
    c10 = hn::MulAdd(a1, b0, c10), c11 = hn::MulAdd(a1, b1, c11);
    c20 = hn::MulAdd(a2, b0, c20), c21 = hn::MulAdd(a2, b1, c21);
    const auto a3 = hn::Set(d, a[3 * row]), a4 = hn::Set(d, a[4 * row]), a5 = hn::Set(d, a[5 * row]);
    c30 = hn::MulAdd(a3, b0, c30), c31 = hn::MulAdd(a3, b1, c31);
    c40 = hn::MulAdd(a4, b0, c40), c41 = hn::MulAdd(a4, b1, c41);
    c50 = hn::MulAdd(a5, b0, c50), c51 = hn::MulAdd(a5, b1, c51);
    a += a_step;
    b += b_step;
  }
  const auto store = [&](int r, auto low, auto high) {
    float* const to = c + r * stride;
    if (!first) {
      low = hn::Add(hn::LoadU(d, to), low);
      high = hn::Add(hn::LoadU(d, to + lanes), high);
    }
    hn::StoreU(low, d, to);
    hn::StoreU(high, d, to + lanes);
  };
  store(0, c00, c01), store(1, c10, c11), store(2, c20, c21);
  store(3, c30, c31), store(4, c40, c41), store(5, c50, c51);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(PanelColumns);
HWY_EXPORT(MicroKernel);

int panel_columns() { return HWY_DYNAMIC_DISPATCH(PanelColumns)(); }

void micro_kernel(const LeftPanel& a, const RightPanel& b, std::int64_t K, float* c, std::int64_t stride, bool first) {
  HWY_DYNAMIC_DISPATCH(MicroKernel)(a, b, K, c, stride, first);
}

}  // namespace tensorgrad::cpu
#endif
