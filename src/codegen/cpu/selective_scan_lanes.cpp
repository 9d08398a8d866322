#include "codegen/cpu/selective_scan_lanes.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/selective_scan_lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "codegen/cpu/power-inl.h"
#include "codegen/cpu/transpose-inl.h"
#include "codegen/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

using Tag = hn::CappedTag<float, 16>;
using V = hn::Vec<Tag>;
constexpr std::int64_t K = kScanChannels;

// log(1 + x) for 0 <= x <= 1: with z = x / (2 + x) it is 2 atanh(z), whose series converges fast
// for z <= 1/3 (error 1.4e-8).
HWY_INLINE V LogOfOnePlus(Tag d, V x) {
  const V z = hn::Div(x, hn::Add(x, hn::Set(d, 2.0f))), w = hn::Mul(z, z);
  V p = hn::MulAdd(w, hn::Set(d, 2.0f / 13), hn::Set(d, 2.0f / 11));
  p = hn::MulAdd(p, w, hn::Set(d, 2.0f / 9));
  p = hn::MulAdd(p, w, hn::Set(d, 2.0f / 7));
  p = hn::MulAdd(p, w, hn::Set(d, 2.0f / 5));
  p = hn::MulAdd(p, w, hn::Set(d, 2.0f / 3));
  p = hn::MulAdd(p, w, hn::Set(d, 2.0f));
  return hn::Mul(p, z);
}

// Results may alias the operands, here and in Decay.
void Softplus(const float* delta, std::int64_t count, float* dl, float* derivative) {
  const Tag d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const V x = hn::Load(d, delta + i);
    const V small = PowerOfProduct(d, hn::Abs(x), hn::Set(d, -kLog2E));
    hn::Store(hn::Add(hn::IfThenElse(hn::Lt(x, zero), zero, x), LogOfOnePlus(d, small)), d, dl + i);
    if (!derivative) continue;
    hn::Store(hn::Div(hn::IfThenElse(hn::Lt(x, zero), small, one), hn::Add(one, small)), d,
              derivative + i);
  }
}

void Decay(const float* A_log, std::int64_t count, float* A) {
  const Tag d;
  const V least = hn::Set(d, -1e-30f);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const V value = hn::Neg(math::Exp(d, hn::Load(d, A_log + i)));
    hn::Store(hn::IfThenElse(hn::Gt(value, least), least, value), d, A + i);
  }
}

// States processed together, so that shared operands are loaded once and their dependency chains
// overlap.
constexpr int kStates = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8 : 4;

// The decay of one step: a, or a - 1 with zero-order hold. `rate` is A / ln 2.
template <bool kZoh>
HWY_INLINE V Kept(Tag d, V dl, V rate) {
  if constexpr (kZoh)
    return PowerOfProductMinus1(d, dl, rate);
  else
    return PowerOfProduct(d, dl, rate);
}

// States n .. n + kCount - 1 of the channels of one vector, starting at v. `in` is dl u; zoh: u.
template <bool kZoh, int kCount>
HWY_INLINE void ForwardStates(const ScanSteps& s, std::int64_t n, std::int64_t v,
                              float* HWY_RESTRICT states, float* HWY_RESTRICT y) {
  const Tag d;
  V h[kCount], rate[kCount], inverse[kCount];
  for (int j = 0; j < kCount; ++j) {
    const V A = hn::Load(d, s.A + (n + j) * K + v);
    h[j] = hn::Load(d, states + (n + j) * K + v);
    rate[j] = hn::Mul(A, hn::Set(d, kLog2E));
    inverse[j] = kZoh ? hn::Div(hn::Set(d, 1.0f), A) : A;
  }
  const float *B = s.B + n, *C = s.C + n;
  for (std::int64_t t = 0; t < s.T; ++t, B += s.N, C += s.N) {
    const V u = hn::Load(d, s.u + t * K + v), dl = hn::Load(d, s.dl + t * K + v),
            in = kZoh ? u : hn::Mul(dl, u);
    V sum = hn::Load(d, y + t * K + v);
    for (int j = 0; j < kCount; ++j) {
      const V kept = Kept<kZoh>(d, dl, rate[j]), Bu = hn::Mul(in, hn::Set(d, B[j]));
      h[j] = kZoh ? hn::MulAdd(kept, hn::MulAdd(inverse[j], Bu, h[j]), h[j])
                  : hn::MulAdd(kept, h[j], Bu);
      sum = hn::MulAdd(hn::Set(d, C[j]), h[j], sum);
    }
    hn::Store(sum, d, y + t * K + v);
  }
  for (int j = 0; j < kCount; ++j) hn::Store(h[j], d, states + (n + j) * K + v);
}

template <bool kZoh>
void Forward(const ScanSteps& s, float* HWY_RESTRICT states, float* HWY_RESTRICT y) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t v = 0; v < s.width; v += lanes) {
    const V D = hn::Load(d, s.D + v);
    for (std::int64_t t = 0; t < s.T; ++t)
      hn::Store(hn::Mul(D, hn::Load(d, s.u + t * K + v)), d, y + t * K + v);
    std::int64_t n = 0;
    for (; n + kStates <= s.N; n += kStates) ForwardStates<kZoh, kStates>(s, n, v, states, y);
    for (; n < s.N; ++n) ForwardStates<kZoh, 1>(s, n, v, states, y);
  }
}

// Arrays of a chunk that Backward works with.
struct Work {
  float* in;     // [T, channels]: dl u; zoh: u
  float* to_u;   // [T, channels]: sum over n of G B; zoh: of G (a - 1) / A B
  float* to_dl;  // [T, channels]: sum over n of G A a h; zoh: of G a (A h + B u)
  float* h;      // [T + 1, states] vectors: before each step, and after the last
  float* kept;   // [T, states]: a; zoh: a - 1
  float* dB;     // [T, states]: sum over some vectors of the block
  float* dC;     // [T, states]
};

// For some states of one vector of channels: runs forward over the steps, keeping h and a, then
// backward. `begins` starts a sum over vectors.
template <bool kZoh, int kCount>
HWY_INLINE void BackwardStates(const ScanSteps& s, const ScanGradient& g, const Work& w,
                               std::int64_t n, std::int64_t v, bool begins) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), group = kCount * lanes;
  const V one = hn::Set(d, 1.0f);
  V h[kCount], A[kCount], inverse[kCount];
  for (int j = 0; j < kCount; ++j) {
    A[j] = hn::Load(d, s.A + (n + j) * K + v);
    inverse[j] = kZoh ? hn::Div(one, A[j]) : A[j];
    h[j] = hn::Load(d, g.h + (n + j) * K + v);
    hn::Store(h[j], d, w.h + j * lanes);
  }
  {
    V rate[kCount];
    for (int j = 0; j < kCount; ++j) rate[j] = hn::Mul(A[j], hn::Set(d, kLog2E));
    const float* B = s.B + n;
    for (std::int64_t t = 0; t < s.T; ++t, B += s.N) {
      const V dl = hn::Load(d, s.dl + t * K + v), in = hn::Load(d, w.in + t * K + v),
              dy = hn::Load(d, g.dy + t * K + v);
      float *const h_to = w.h + (t + 1) * group, *const kept_to = w.kept + t * group,
                   *const dC = w.dC + t * group;
      for (int j = 0; j < kCount; ++j) {
        const V kept = Kept<kZoh>(d, dl, rate[j]), Bu = hn::Mul(in, hn::Set(d, B[j]));
        h[j] = kZoh ? hn::MulAdd(kept, hn::MulAdd(inverse[j], Bu, h[j]), h[j])
                    : hn::MulAdd(kept, h[j], Bu);
        hn::Store(kept, d, kept_to + j * lanes);
        hn::Store(h[j], d, h_to + j * lanes);
        const V sum =
            begins ? hn::Mul(dy, h[j]) : hn::MulAdd(dy, h[j], hn::Load(d, dC + j * lanes));
        hn::Store(sum, d, dC + j * lanes);
      }
    }
  }
  V later[kCount], dA[kCount];
  for (int j = 0; j < kCount; ++j) {
    later[j] = hn::Load(d, g.later + (n + j) * K + v);
    dA[j] = hn::Load(d, g.dA + (n + j) * K + v);
  }
  for (std::int64_t t = s.T - 1; t >= 0; --t) {
    const std::int64_t row = t * K + v;
    const V in = hn::Load(d, w.in + row), dl = hn::Load(d, s.dl + row),
            dy = hn::Load(d, g.dy + row);
    const float *const h_from = w.h + t * group, *const kept_from = w.kept + t * group;
    const float *const B_row = s.B + t * s.N + n, *const C_row = s.C + t * s.N + n;
    float* const dB = w.dB + t * group;
    V to_u = hn::Load(d, w.to_u + row), to_dl = hn::Load(d, w.to_dl + row);
    for (int j = 0; j < kCount; ++j) {
      const V B = hn::Set(d, B_row[j]), kept = hn::Load(d, kept_from + j * lanes),
              before = hn::Load(d, h_from + j * lanes);
      const V G = hn::MulAdd(hn::Set(d, C_row[j]), dy, later[j]);
      V from_B = hn::Mul(G, in);
      if constexpr (kZoh) {
        const V a = hn::Add(kept, one), weight = hn::Mul(kept, inverse[j]);
        later[j] = hn::Mul(a, G);
        // The difference cancels where dl A is small, but readers of dA multiply it by A.
        const V bend = hn::Mul(hn::Mul(from_B, B), hn::Mul(hn::MulSub(dl, a, weight), inverse[j]));
        dA[j] = hn::Add(hn::MulAdd(hn::Mul(dl, later[j]), before, dA[j]), bend);
        to_dl = hn::MulAdd(later[j], hn::MulAdd(A[j], before, hn::Mul(B, in)), to_dl);
        to_u = hn::MulAdd(hn::Mul(G, B), weight, to_u);
        from_B = hn::Mul(from_B, weight);
      } else {
        later[j] = hn::Mul(kept, G);
        const V decayed = hn::Mul(later[j], before);
        dA[j] = hn::MulAdd(dl, decayed, dA[j]);
        to_dl = hn::MulAdd(A[j], decayed, to_dl);
        to_u = hn::MulAdd(G, B, to_u);
      }
      hn::Store(begins ? from_B : hn::Add(hn::Load(d, dB + j * lanes), from_B), d, dB + j * lanes);
    }
    hn::Store(to_u, d, w.to_u + row);
    hn::Store(to_dl, d, w.to_dl + row);
  }
  for (int j = 0; j < kCount; ++j) {
    hn::Store(later[j], d, g.later + (n + j) * K + v);
    hn::Store(dA[j], d, g.dA + (n + j) * K + v);
  }
}

// The same for all vectors of the block, and the sums over its channels. A sum covers a few vectors
// at a time, because a long float sum loses precision. (The count keeps the error over 40,000
// channels, in the op table, below half of the tolerance on every target.)
template <bool kZoh, int kCount>
void BackwardBlock(const ScanSteps& s, const ScanGradient& g, const Work& w, std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)),
             together = (lanes == 8 ? 2 : 4) * lanes;
  for (std::int64_t first = 0; first < s.width; first += together) {
    for (std::int64_t v = first; v < std::min(s.width, first + together); v += lanes)
      BackwardStates<kZoh, kCount>(s, g, w, n, v, v == first);
    for (std::int64_t t = 0; t < s.T; ++t)
      for (const auto& [from, to] : {std::pair(w.dB, g.dB), std::pair(w.dC, g.dC)}) {
        float sums[kCount];
        SumLanes<kCount>(d, from + t * kCount * lanes, sums);
        float* const row = to + t * s.N + n;
        for (int j = 0; j < kCount; ++j) row[j] = first == 0 ? sums[j] : row[j] + sums[j];
      }
  }
}

template <bool kZoh>
void Backward(const ScanSteps& s, const ScanGradient& g) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), group = kStates * lanes;
  Work w{};
  w.in = g.work;
  w.to_u = w.in + s.T * K;
  w.to_dl = w.to_u + s.T * K;
  w.h = w.to_dl + s.T * K;
  w.kept = w.h + (s.T + 1) * group;
  w.dB = w.kept + s.T * group;
  w.dC = w.dB + s.T * group;
  for (std::int64_t i = 0; i < s.T * K; i += lanes) {
    const V u = hn::Load(d, s.u + i);
    hn::Store(kZoh ? u : hn::Mul(u, hn::Load(d, s.dl + i)), d, w.in + i);
    hn::Store(hn::Zero(d), d, w.to_u + i);
    hn::Store(hn::Zero(d), d, w.to_dl + i);
  }
  std::int64_t n = 0;
  for (; n + kStates <= s.N; n += kStates) BackwardBlock<kZoh, kStates>(s, g, w, n);
  for (; n < s.N; ++n) BackwardBlock<kZoh, 1>(s, g, w, n);
  for (std::int64_t t = 0; t < s.T; ++t)
    for (std::int64_t v = 0; v < s.width; v += lanes) {
      const std::int64_t row = t * K + v;
      const V from_u = hn::Load(d, w.to_u + row), from_dl = hn::Load(d, w.to_dl + row),
              dl = hn::Load(d, s.dl + row);
      const V du = hn::MulAdd(hn::Load(d, s.D + v), hn::Load(d, g.dy + row),
                              kZoh ? from_u : hn::Mul(dl, from_u));
      const V ddl = kZoh ? from_dl : hn::MulAdd(hn::Load(d, s.u + row), from_u, from_dl);
      hn::Store(du, d, g.du + row);
      hn::Store(hn::Mul(ddl, hn::Load(d, g.slope + row)), d, g.ddelta + row);
    }
}

void TurnStates(const float* from, std::int64_t from_stride, std::int64_t rows,
                std::int64_t columns, float* to, std::int64_t to_stride) {
  Transpose(from, from_stride, rows, columns, to, to_stride);
}
void ForwardOf(const ScanSteps& s, float* h, float* y) {
  (s.zoh ? Forward<true> : Forward<false>)(s, h, y);
}
void BackwardOf(const ScanSteps& s, const ScanGradient& g) {
  (s.zoh ? Backward<true> : Backward<false>)(s, g);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(Softplus);
HWY_EXPORT(Decay);
HWY_EXPORT(TurnStates);
HWY_EXPORT(ForwardOf);
HWY_EXPORT(BackwardOf);

void scan_softplus(const float* delta, std::int64_t count, float* dl, float* derivative) {
  HWY_DYNAMIC_DISPATCH(Softplus)(delta, count, dl, derivative);
}
void scan_decay(const float* A_log, std::int64_t count, float* A) {
  HWY_DYNAMIC_DISPATCH(Decay)(A_log, count, A);
}
void scan_turn(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(TurnStates)(from, from_stride, rows, columns, to, to_stride);
}
void scan_forward(const ScanSteps& steps, float* h, float* y) {
  HWY_DYNAMIC_DISPATCH(ForwardOf)(steps, h, y);
}
void scan_backward(const ScanSteps& steps, const ScanGradient& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardOf)(steps, gradient);
}

}  // namespace tensorgrad::cpu
#endif
