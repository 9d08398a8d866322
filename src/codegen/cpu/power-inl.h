// 2^x for vectors, fast enough for the inner loops of attention and of the selective scan. Include
// it once per SIMD target, outside of any namespace.
#if defined(TENSORGRAD_CPU_POWER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_POWER_INL_H
#undef TENSORGRAD_CPU_POWER_INL_H
#else
#define TENSORGRAD_CPU_POWER_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kLog2E = 1.44269504f;

// 2^(a b) = scale * (1 + rest), for exponents below 128; `vanishes` where it is less than 2^-126.
// Adding kWhole rounds to an integer and leaves it, with the exponent bias, in the low bits. NaN
// does not vanish.
template <class D, class V = hn::Vec<D>>
struct PowerParts {
  V scale, rest;
  hn::Mask<D> vanishes;
};

inline constexpr float kWhole = 12582912.0f + 127.0f;

// Takes the exponent in two parts: `sum` = exponent + kWhole, rounded, and the remainder in -1/2 ..
// 1/2. The polynomial is the minimax one of its degree (2.6e-9); with rounding, 1 + rest is within
// 1e-7 of the exact value.
template <class D, class V = hn::Vec<D>>
HWY_INLINE PowerParts<D> TakeApart(D d, V sum, V r) {
  const hn::RebindToUnsigned<D> du;
  V p = hn::MulAdd(hn::Set(d, 1.55948394e-4f), r, hn::Set(d, 1.34067051e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.61769186e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.55031039e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.40226522e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.93147242e-1f));
  return {hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, sum))), hn::Mul(p, r),
          hn::Lt(sum, hn::Set(d, kWhole - 126.0f))};
}

// 2^(a b) for a product below 128, and 0 where the result is less than 2^-126. Also 2^(a b) - 1,
// without cancellation where that is small.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfProduct(D d, V a, V b) {
  const V whole = hn::Set(d, kWhole), sum = hn::MulAdd(a, b, whole);
  const PowerParts<D> y = TakeApart(d, sum, hn::MulSub(a, b, hn::Sub(sum, whole)));
  return hn::IfThenZeroElse(y.vanishes, hn::MulAdd(y.scale, y.rest, y.scale));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfProductMinus1(D d, V a, V b) {
  const V whole = hn::Set(d, kWhole), one = hn::Set(d, 1.0f), sum = hn::MulAdd(a, b, whole);
  const PowerParts<D> y = TakeApart(d, sum, hn::MulSub(a, b, hn::Sub(sum, whole)));
  return hn::IfThenElse(y.vanishes, hn::Neg(one),
                        hn::MulAdd(y.scale, y.rest, hn::Sub(y.scale, one)));
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
