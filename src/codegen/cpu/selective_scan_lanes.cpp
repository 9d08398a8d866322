#include "codegen/cpu/selective_scan_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/selective_scan_lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kScanChannels>;
using V = hn::Vec<Tag>;
constexpr std::int64_t K = kScanChannels;

// For x <= 0: exp(x) = scale * rest + scale. x is taken apart into whole powers of two and what is left,
// |r| <= ln(2) / 2, whose exp(r) - 1 is Cephes' polynomial. NaN stays NaN, unlike in Highway's own Exp.
HWY_INLINE void TakeApart(Tag d, V x, V& scale, V& rest) {
  const hn::RebindToSigned<Tag> di;
  const auto q = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V whole = hn::ConvertTo(d, q);
  V r = hn::NegMulAdd(whole, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  rest = hn::MulAdd(hn::Mul(r, r), p, r);
  scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(q, hn::Set(di, 127))));
}

constexpr float kVanishes = -87.0f;  // below, scale would be no normal number; exp(x) is taken for 0

HWY_INLINE V ExpOfNegative(Tag d, V x) {
  V scale, rest;
  TakeApart(d, x, scale, rest);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kVanishes)), hn::MulAdd(scale, rest, scale));
}

HWY_INLINE V ExpMinus1OfNegative(Tag d, V x) {
  V scale, rest;
  TakeApart(d, x, scale, rest);
  const V one = hn::Set(d, 1.0f), value = hn::MulAdd(scale, rest, hn::Sub(scale, one));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, kVanishes)), hn::Neg(one), value);
}

// Results may lie where the operands do; so they may in Decay.
void Softplus(const float* delta, std::int64_t count, float* dl, float* derivative) {
  const Tag d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const V x = hn::Load(d, delta + i);
    const V small = ExpOfNegative(d, hn::Neg(hn::Abs(x)));
    const V value = hn::Add(hn::IfThenElse(hn::Lt(x, zero), zero, x), hn::Log1p(d, small));
    hn::Store(hn::IfThenElse(hn::IsNaN(x), x, value), d, dl + i);
    if (!derivative) continue;
    hn::Store(hn::Div(hn::IfThenElse(hn::Lt(x, zero), small, one), hn::Add(one, small)), d, derivative + i);
  }
}

void Decay(const float* A_log, std::int64_t count, float* A) {
  const Tag d;
  const V least = hn::Set(d, -1e-30f), most = hn::Set(d, 100.0f);  // Exp is wrong from 176 on; this is infinity already
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const V x = hn::Load(d, A_log + i);
    const V value = hn::IfThenElse(hn::IsNaN(x), x, hn::Neg(hn::Exp(d, hn::Min(x, most))));
    hn::Store(hn::IfThenElse(hn::Gt(value, least), least, value), d, A + i);
  }
}

template <bool kZoh>
void Forward(const ScanSteps& s, float* HWY_RESTRICT states, float* HWY_RESTRICT y) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t v = 0; v < s.width; v += lanes) {
    const V D = hn::Load(d, s.D + v);
    for (std::int64_t t = 0; t < s.T; ++t) hn::Store(hn::Mul(D, hn::Load(d, s.u + t * K + v)), d, y + t * K + v);
  }
  for (std::int64_t n = 0; n < s.N; ++n)
    for (std::int64_t v = 0; v < s.width; v += lanes) {
      const V A = hn::Load(d, s.A + n * K + v);
      const V inverse = hn::Div(hn::Set(d, 1.0f), A);
      V h = hn::Load(d, states + n * K + v);
      for (std::int64_t t = 0; t < s.T; ++t) {
        const V u = hn::Load(d, s.u + t * K + v), dl = hn::Load(d, s.dl + t * K + v);
        const V B = hn::Set(d, s.B[t * s.N + n]);
        const V x = hn::Mul(dl, A);
        if constexpr (kZoh) {
          const V e = ExpMinus1OfNegative(d, x);
          h = hn::MulAdd(e, hn::MulAdd(hn::Mul(inverse, u), B, h), h);
        } else {
          h = hn::MulAdd(ExpOfNegative(d, x), h, hn::Mul(hn::Mul(dl, u), B));
        }
        float* const to = y + t * K + v;
        hn::Store(hn::MulAdd(hn::Set(d, s.C[t * s.N + n]), h, hn::Load(d, to)), d, to);
      }
      hn::Store(h, d, states + n * K + v);
    }
}

// For one state of a vector of channels: forward over the steps, keeping h and a, and back.
template <bool kZoh>
void Backward(const ScanSteps& s, const ScanGradient& g) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V one = hn::Set(d, 1.0f);
  float* const in = g.work;                          // [T, channels]: dl u; zoh: u
  float* const to_u = in + s.T * K;                  // [T, channels]: sums over n of G B; zoh: of G (a - 1) / A B
  float* const to_dl = to_u + s.T * K;               // [T, channels]: of G A a h; zoh: of G a (A h + B u)
  float* const h_kept = to_dl + s.T * K;             // [T + 1] vectors: before each step, and behind the last
  float* const a_kept = h_kept + (s.T + 1) * lanes;  // [T]: a; zoh: a - 1
  float* const dB = a_kept + s.T * lanes;            // [T]: sums over the vectors of the block
  float* const dC = dB + s.T * lanes;                // [T]
  for (std::int64_t i = 0; i < s.T * K; i += lanes) {
    const V u = hn::Load(d, s.u + i);
    hn::Store(kZoh ? u : hn::Mul(u, hn::Load(d, s.dl + i)), d, in + i);
    hn::Store(hn::Zero(d), d, to_u + i);
    hn::Store(hn::Zero(d), d, to_dl + i);
  }
  for (std::int64_t n = 0; n < s.N; ++n) {
    for (std::int64_t v = 0; v < s.width; v += lanes) {
      const V A = hn::Load(d, s.A + n * K + v);
      const V inverse = hn::Div(one, A);
      V h = hn::Load(d, g.h + n * K + v);
      hn::Store(h, d, h_kept);
      for (std::int64_t t = 0; t < s.T; ++t) {
        const V x = hn::Mul(hn::Load(d, s.dl + t * K + v), A);
        const V Bu = hn::Mul(hn::Load(d, in + t * K + v), hn::Set(d, s.B[t * s.N + n]));
        if constexpr (kZoh) {
          const V e = ExpMinus1OfNegative(d, x);
          h = hn::MulAdd(e, hn::MulAdd(inverse, Bu, h), h);
          hn::Store(e, d, a_kept + t * lanes);
        } else {
          const V a = ExpOfNegative(d, x);
          h = hn::MulAdd(a, h, Bu);
          hn::Store(a, d, a_kept + t * lanes);
        }
        hn::Store(h, d, h_kept + (t + 1) * lanes);
        const V dy = hn::Load(d, g.dy + t * K + v);
        hn::Store(v == 0 ? hn::Mul(dy, h) : hn::MulAdd(dy, h, hn::Load(d, dC + t * lanes)), d, dC + t * lanes);
      }
      V later = hn::Load(d, g.later + n * K + v);
      V dA = hn::Load(d, g.dA + n * K + v);
      for (std::int64_t t = s.T - 1; t >= 0; --t) {
        const std::int64_t row = t * K + v;
        const V B = hn::Set(d, s.B[t * s.N + n]), kept = hn::Load(d, a_kept + t * lanes), u = hn::Load(d, in + row);
        const V before = hn::Load(d, h_kept + t * lanes), dl = hn::Load(d, s.dl + row);
        const V G = hn::MulAdd(hn::Set(d, s.C[t * s.N + n]), hn::Load(d, g.dy + row), later);
        V from_B = hn::Mul(G, u), from_u = hn::Mul(G, B), from_dl;
        if constexpr (kZoh) {
          const V a = hn::Add(kept, one), weight = hn::Mul(kept, inverse);
          later = hn::Mul(a, G);
          // The difference loses digits where dl A is small; but who reads dA multiplies it by A.
          const V bend = hn::Mul(hn::Mul(from_B, B), hn::Mul(hn::MulSub(dl, a, weight), inverse));
          dA = hn::Add(hn::MulAdd(hn::Mul(dl, later), before, dA), bend);
          from_dl = hn::Mul(later, hn::MulAdd(A, before, hn::Mul(B, u)));
          from_B = hn::Mul(from_B, weight);
          from_u = hn::Mul(from_u, weight);
        } else {
          later = hn::Mul(kept, G);
          const V decayed = hn::Mul(later, before);
          dA = hn::MulAdd(dl, decayed, dA);
          from_dl = hn::Mul(A, decayed);
        }
        hn::Store(hn::Add(hn::Load(d, to_u + row), from_u), d, to_u + row);
        hn::Store(hn::Add(hn::Load(d, to_dl + row), from_dl), d, to_dl + row);
        hn::Store(v == 0 ? from_B : hn::Add(hn::Load(d, dB + t * lanes), from_B), d, dB + t * lanes);
      }
      hn::Store(later, d, g.later + n * K + v);
      hn::Store(dA, d, g.dA + n * K + v);
    }
    for (std::int64_t t = 0; t < s.T; ++t) {
      g.dB[t * s.N + n] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, dB + t * lanes)));
      g.dC[t * s.N + n] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, dC + t * lanes)));
    }
  }
  for (std::int64_t t = 0; t < s.T; ++t)
    for (std::int64_t v = 0; v < s.width; v += lanes) {
      const std::int64_t row = t * K + v;
      const V from_u = hn::Load(d, to_u + row), from_dl = hn::Load(d, to_dl + row), dl = hn::Load(d, s.dl + row);
      const V du = hn::MulAdd(hn::Load(d, s.D + v), hn::Load(d, g.dy + row), kZoh ? from_u : hn::Mul(dl, from_u));
      const V ddl = kZoh ? from_dl : hn::MulAdd(hn::Load(d, s.u + row), from_u, from_dl);
      hn::Store(du, d, g.du + row);
      hn::Store(hn::Mul(ddl, hn::Load(d, g.slope + row)), d, g.ddelta + row);
    }
}

void ForwardOf(const ScanSteps& s, float* h, float* y) { (s.zoh ? Forward<true> : Forward<false>)(s, h, y); }
void BackwardOf(const ScanSteps& s, const ScanGradient& g) { (s.zoh ? Backward<true> : Backward<false>)(s, g); }

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(Softplus);
HWY_EXPORT(Decay);
HWY_EXPORT(ForwardOf);
HWY_EXPORT(BackwardOf);

void scan_softplus(const float* delta, std::int64_t count, float* dl, float* derivative) {
  HWY_DYNAMIC_DISPATCH(Softplus)(delta, count, dl, derivative);
}
void scan_decay(const float* A_log, std::int64_t count, float* A) { HWY_DYNAMIC_DISPATCH(Decay)(A_log, count, A); }
void scan_forward(const ScanSteps& steps, float* h, float* y) { HWY_DYNAMIC_DISPATCH(ForwardOf)(steps, h, y); }
void scan_backward(const ScanSteps& steps, const ScanGradient& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardOf)(steps, gradient);
}

}  // namespace tensorgrad::cpu
#endif
