#include "codegen/cpu/micro_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/micro_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "support/integers.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Register allocation: one accumulator per row and vector, one register per vector of the right
// operand, and one for the left operand. Of the tiles that fit, six rows by four vectors need the
// fewest loads per multiplication. That matters when another hyper-thread uses half of the core.
// With 16 registers two vectors fit.
#if HWY_TARGET <= HWY_AVX3 || (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON)
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif
static_assert(kVectors * hn::MaxLanes(hn::ScalableTag<float>()) <= kMaxPanelColumns);

int PanelLanes() { return static_cast<int>(hn::Lanes(hn::ScalableTag<float>())); }
int PanelColumns() { return kVectors * PanelLanes(); }

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

// R rows of V vectors. Few rows give too few accumulators to hide the latency of an addition. Then
// U values of k get separate accumulators, which are added at the end.
template <int R, int V>
void Panel(const LeftPanel& left, const RightPanel& right, int columns, std::int64_t K,
           const Before& before, float* c, std::int64_t stride, const Ahead& next) {
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
  const auto step = [&](auto u) HWY_ATTR __attribute__((always_inline)) {
    Vector y[V];
    each(std::make_index_sequence<V>(),
         [&](auto v) HWY_ATTR { y[v] = hn::LoadU(d, b + v * lanes); });
    each(std::make_index_sequence<R>(), [&](auto r) HWY_ATTR {
      const auto x = hn::Set(d, a[r * row]);
      each(std::make_index_sequence<V>(), [&](auto v) HWY_ATTR {
        constexpr int i = decltype(u)::value * S + decltype(r)::value * V + decltype(v)::value;
        sum[i] = hn::MulAdd(x, y[v], sum[i]);
      });
    });
    a += a_step;
    b += b_step;
  };
  // Prefetches at most two cache lines: enough for the panels of a tile, though not for a few rows
  // alone.
  const auto look_ahead = [&](int steps) HWY_ATTR {
    __builtin_prefetch(ahead, 0, 2);
    if (steps * next.step > 64) __builtin_prefetch(ahead + 64, 0, 2);
    ahead += steps * next.step;
  };
  const float* const needed = before.data ? before.data : c;  // read or written at the end
  const std::int64_t apart = before.data ? before.row : stride;
  each(std::make_index_sequence<S>(), [&](auto i) HWY_ATTR {
    hwy::Prefetch(needed + decltype(i)::value / V * apart +
                  decltype(i)::value % V * static_cast<int>(lanes));
  });
  std::int64_t k = 0;
  constexpr std::integral_constant<int, 0> kFirst;
  if constexpr (U == 1) {
    for (; k + 2 <= K; k += 2) {
      step(kFirst), step(kFirst);
      look_ahead(2);
    }
  } else {
    for (; k + U <= K; k += U) {
      each(std::make_index_sequence<U>(), step);
      look_ahead(U);
    }
  }
  for (; k < K; ++k) step(kFirst);
  if constexpr (U > 1) {
    for (int n = U / 2; n > 0; n /= 2)
      for (int i = 0; i < n * S; ++i) sum[i] = hn::Add(sum[i], sum[i + n * S]);
  }
  const std::size_t rest = usize(columns) - (V - 1) * lanes;
  each(std::make_index_sequence<S>(), [&](auto i) HWY_ATTR {
    constexpr int r = decltype(i)::value / V, v = decltype(i)::value % V;
    const std::int64_t column = v * static_cast<std::int64_t>(lanes);
    const std::int64_t from = r * before.row + column;
    float* const to = c + r * stride + column;
    if (v == V - 1 && rest < lanes)
      StorePart(d, before.data ? hn::Add(LoadPart(d, rest, before.data + from), sum[i]) : sum[i],
                rest, to);
    else
      hn::StoreU(before.data ? hn::Add(hn::LoadU(d, before.data + from), sum[i]) : sum[i], d, to);
  });
}

using Function = void (*)(const LeftPanel&, const RightPanel&, int, std::int64_t, const Before&,
                          float*, std::int64_t, const Ahead&);

// Indexed by vectors, then by rows.
template <std::size_t... I>
constexpr std::array<Function, sizeof...(I)> Functions(std::index_sequence<I...>) {
  return {Panel<static_cast<int>(I) % kPanelRows + 1, static_cast<int>(I) / kPanelRows + 1>...};
}

void MicroKernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K,
                 const Before& before, float* c, std::int64_t stride, const Ahead& next) {
  static constexpr auto kFunctions = Functions(std::make_index_sequence<kVectors * kPanelRows>());
  const int vectors = (columns + PanelLanes() - 1) / PanelLanes();
  const auto i = usize((vectors - 1) * kPanelRows + rows - 1);
  kFunctions[i](a, b, columns, K, before, c, stride, next);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(PanelLanes);
HWY_EXPORT(PanelColumns);
HWY_EXPORT(MicroKernel);

int panel_lanes() { return HWY_DYNAMIC_DISPATCH(PanelLanes)(); }
int panel_columns() { return HWY_DYNAMIC_DISPATCH(PanelColumns)(); }

void micro_kernel(const LeftPanel& a, const RightPanel& b, int rows, int columns, std::int64_t K,
                  const Before& before, float* c, std::int64_t stride, const Ahead& next) {
  HWY_DYNAMIC_DISPATCH(MicroKernel)(a, b, rows, columns, K, before, c, stride, next);
}

}  // namespace tensorgrad::cpu
#endif
