#include "codegen/cpu/micro_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/micro_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Sums take two registers a row; two more hold the right operand, one or two the left. With 32 registers 8
// rows are as fast as 14, and divide the sizes that people choose.
#if HWY_TARGET <= HWY_AVX3 || (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON)
constexpr int kRows = kMaxPanelRows;
#else
constexpr int kRows = kMinPanelRows;
#endif

int PanelRows() { return kRows; }
int PanelColumns() { return static_cast<int>(2 * hn::Lanes(hn::ScalableTag<float>())); }

// The first n lanes of a vector.
template <class D, class V>
void StorePart(D d, V v, std::size_t n, float* HWY_RESTRICT to) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::copy_n(lanes, n, to);
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, to);
#endif
}

template <class D>
hn::Vec<D> LoadPart(D d, std::size_t n, const float* HWY_RESTRICT from) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
  std::copy_n(from, n, lanes);
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, from);
#endif
}

// R rows of V vectors. Few rows are not enough sums to hide how long an addition takes: then U values of k
// have sums of their own, which are added at the end.
template <int R, int V>
void Panel(const LeftPanel& left, const RightPanel& right, int columns, std::int64_t K, float* HWY_RESTRICT c,
           std::int64_t stride, bool first, const Ahead& next) {
  constexpr int S = R * V, U = S >= 8 ? 1 : S >= 4 ? 2 : 4;
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const float *HWY_RESTRICT a = left.data, *HWY_RESTRICT b = right.data;
  const std::int64_t row = left.row, a_step = left.depth, b_step = right.depth;
  const char* ahead = static_cast<const char*>(next.data ? next.data : b);
  using Vector = hn::Vec<decltype(d)>;
  Vector sum[U * S];
  const auto each = [&]<std::size_t... I>(std::index_sequence<I...>, auto f) HWY_ATTR {
    (f(std::integral_constant<int, I>()), ...);
  };
  each(std::make_index_sequence<U * S>(), [&](auto i) HWY_ATTR { sum[i] = hn::Zero(d); });
  const auto step = [&](auto u) HWY_ATTR {
    Vector y[V];
    y[0] = hn::LoadU(d, b);
    if constexpr (V == 2) y[1] = hn::LoadU(d, b + lanes);
    each(std::make_index_sequence<R>(), [&](auto r) HWY_ATTR {
      const auto x = hn::Set(d, a[r * row]);
      each(std::make_index_sequence<V>(), [&](auto v) HWY_ATTR {
        constexpr int i = decltype(u)::value * S + decltype(r)::value * V + decltype(v)::value;
        sum[i] = hn::MulAdd(x, y[v], sum[i]);
      });
    });
    a += a_step;
    b += b_step;
    __builtin_prefetch(ahead, 0, 2);
    ahead += next.step;
  };
  each(std::make_index_sequence<S>(), [&](auto i) HWY_ATTR {  // needed at the end
    hwy::Prefetch(c + decltype(i)::value / V * stride + decltype(i)::value % V * 16);
  });
  std::int64_t k = 0;
  for (; k + U <= K; k += U) each(std::make_index_sequence<U>(), step);
  if constexpr (U > 1) {
    for (; k < K; ++k) step(std::integral_constant<int, 0>());
    for (int n = U / 2; n > 0; n /= 2)
      for (int i = 0; i < n * S; ++i) sum[i] = hn::Add(sum[i], sum[i + n * S]);
  }
  const std::size_t rest = static_cast<std::size_t>(columns) - (V - 1) * lanes;
  each(std::make_index_sequence<S>(), [&](auto i) HWY_ATTR {
    constexpr int r = decltype(i)::value / V, v = decltype(i)::value % V;
    float* const to = c + r * stride + v * static_cast<std::int64_t>(lanes);
    if (v == V - 1 && rest < lanes)
      StorePart(d, first ? sum[i] : hn::Add(LoadPart(d, rest, to), sum[i]), rest, to);
    else
      hn::StoreU(first ? sum[i] : hn::Add(hn::LoadU(d, to), sum[i]), d, to);
  });
}

using Function = void (*)(const LeftPanel&, const RightPanel&, int, std::int64_t, float*, std::int64_t, bool,
                          const Ahead&);

template <int V, std::size_t... R>
constexpr std::array<Function, sizeof...(R)> Functions(std::index_sequence<R...>) {
  return {Panel<static_cast<int>(R) + 1, V>...};
}

void MicroKernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K, float* c,
                 std::int64_t stride, bool first, const Ahead& next) {
  static constexpr auto kOne = Functions<1>(std::make_index_sequence<kRows>());
  static constexpr auto kTwo = Functions<2>(std::make_index_sequence<kRows>());
  const auto i = static_cast<std::size_t>(rows - 1);
  (2 * columns <= PanelColumns() ? kOne[i] : kTwo[i])(a, b, columns, K, c, stride, first, next);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(PanelRows);
HWY_EXPORT(PanelColumns);
HWY_EXPORT(MicroKernel);

int panel_rows() { return HWY_DYNAMIC_DISPATCH(PanelRows)(); }
int panel_columns() { return HWY_DYNAMIC_DISPATCH(PanelColumns)(); }

void micro_kernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K, float* c,
                  std::int64_t stride, bool first, const Ahead& next) {
  HWY_DYNAMIC_DISPATCH(MicroKernel)(a, b, rows, columns, K, c, stride, first, next);
}

}  // namespace tensorgrad::cpu
#endif
