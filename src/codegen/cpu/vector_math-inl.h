// Math functions on vectors of floats, for files that are compiled once per SIMD target. Include it
// after <hwy/highway.h>. Largest errors against the true value, in units in the last place
// (tests/cpu/vector_math_test.cpp checks points of all exponents on all targets):
//   exp 1.2   expm1 1.7   log 1.0   log1p 1.5   tanh 2.5   erf 1.5   normal_cdf 6.0
// Infinities, NaN, signed zeros, overflow and subnormals behave as in libm. Programs run them in a
// mode where arithmetic flushes subnormals to zero (runtime/cpu/subnormals.h).
#if defined(TENSORGRAD_CPU_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_VECTOR_MATH_INL_H
#undef TENSORGRAD_CPU_VECTOR_MATH_INL_H
#else
#define TENSORGRAD_CPU_VECTOR_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE::math {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Horner's rule: first + x * (next + x * (...)).
template <class D, class V>
HWY_INLINE V Polynomial(D d, V /*x*/, float first) {
  return hn::Set(d, first);
}
template <class D, class V, class... More>
HWY_INLINE V Polynomial(D d, V x, float first, More... more) {
  return hn::MulAdd(x, Polynomial(d, x, more...), hn::Set(d, first));
}

// 2^n; the result must be a normal number.
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// ln 2 in two parts: n times the first is exact.
inline constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-6f;

// x / ln 2, rounded to an integer.
template <class D, class V>
HWY_INLINE auto NearestPower(D d, V x) {
  return hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504088896f)));
}

// x - n ln 2.
template <class D, class V, class VI>
HWY_INLINE V Remainder(D d, V x, VI n) {
  const V whole = hn::ConvertTo(d, n);
  return hn::NegMulAdd(whole, hn::Set(d, kLn2Low), hn::NegMulAdd(whole, hn::Set(d, kLn2High), x));
}

// exp(r) - 1, for |r| up to ln(2) / 2.
template <class D, class V>
HWY_INLINE V SmallExpm1(D d, V r) {
  const V q = Polynomial(d, r, 0.500000006204f, 0.166665426764f, 0.0416662811802f,
                         0.00836663140795f, 0.00139465247756f);
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

// exp(x) = 2^n (1 + p); returns p. (On some targets vectors cannot be struct members.)
template <class D, class V, class VI>
HWY_INLINE V Reduce(D d, V x, VI& n) {
  n = NearestPower(d, x);
  return SmallExpm1(d, Remainder(d, x, n));
}

// y 2^n, in two steps, because 2^n itself may underflow or overflow.
template <class D, class V, class VI>
HWY_INLINE V TimesPowerOfTwo(D d, V y, VI n) {
  const auto half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(n, half)));
}

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const V inside = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  auto n = hn::Zero(hn::RebindToSigned<D>());
  const V p = Reduce(d, inside, n);
  const V y = TimesPowerOfTwo(d, hn::Add(p, hn::Set(d, 1.0f)), n);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V inside = hn::Min(hn::Max(x, hn::Set(d, -30.0f)), hn::Set(d, 89.0f));
  auto n = hn::Zero(hn::RebindToSigned<D>());
  const V p = Reduce(d, inside, n);
  // Half of the result, because 2^128 overflows.
  const V scale = PowerOfTwo(d, hn::Sub(n, hn::Set(di, 1)));
  const V half = hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 0.5f)));
  // Below 1e-10 the result is x, which preserves subnormals and the sign of zero. NaN fails the
  // comparison.
  const V y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, hn::Add(half, half));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// Splits a positive normal number into 2^e * m with m in [sqrt(1/2), sqrt(2)); returns m.
template <class D, class V>
HWY_INLINE V SplitExponent(D d, V x, V& e) {
  const hn::RebindToSigned<D> di;
  const auto root = hn::Set(di, 0x3f3504f3);  // the bits of sqrt(1/2)
  const auto t = hn::Sub(hn::BitCast(di, x), root);
  const auto m = hn::Add(hn::And(t, hn::Set(di, 0x7fffff)), root);
  e = hn::ConvertTo(d, hn::ShiftRight<23>(t));
  return hn::BitCast(d, m);
}

// log(1 + f) + e ln 2 + small, for f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <class D, class V>
HWY_INLINE V LogOfParts(D d, V f, V e, V small) {
  const V square = hn::Mul(f, f);
  const V p = Polynomial(d, f, 0.333333105203f, -0.249999865751f, 0.20002223559f, -0.166692517713f,
                         0.142186893098f, -0.123843119173f, 0.118728591439f, -0.117902243804f,
                         0.069160477744f);
  V y = hn::MulAdd(hn::Mul(square, f), p, hn::MulAdd(e, hn::Set(d, kLn2Low), small));
  y = hn::NegMulAdd(hn::Set(d, 0.5f), square, y);
  return hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(f, y));
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const V zero = hn::Zero(d);
  const auto denormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  V e = zero;
  const V m = SplitExponent(d, hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x), e);
  const V exponent = hn::Add(e, hn::IfThenElseZero(denormal, hn::Set(d, -23.0f)));
  V y = LogOfParts(d, hn::Sub(m, hn::Set(d, 1.0f)), exponent, zero);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInfinity)), x, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -kInfinity), y);
  return hn::IfThenElse(hn::Ge(x, zero), y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(one, x);
  V e = hn::Zero(d);
  const V m = SplitExponent(d, u, e);
  // The rounding error of u = 1 + x, divided by u. Near 1 there is no error: f is x.
  const V lost =
      hn::IfThenElse(hn::Ge(x, one), hn::Sub(one, hn::Sub(u, x)), hn::Sub(x, hn::Sub(u, one)));
  const auto near = hn::Eq(e, hn::Zero(d));
  const V f = hn::IfThenElse(near, x, hn::Sub(m, one));
  V y = LogOfParts(d, f, e, hn::IfThenZeroElse(near, hn::Div(lost, u)));
  y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, y);  // keeps the sign of zero
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInfinity)), x, y);
  y = hn::IfThenElse(hn::Eq(u, hn::Zero(d)), hn::Set(d, -kInfinity), y);
  return hn::IfThenElse(hn::Ge(u, hn::Zero(d)), y,
                        hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

// With t = exp(2 |x|) - 1: t / (t + 2).
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  const V a = hn::Min(hn::Abs(x), hn::Set(d, 10.0f));
  auto n = hn::Zero(hn::RebindToSigned<D>());
  const V p = Reduce(d, hn::Add(a, a), n);
  const V scale = PowerOfTwo(d, n);
  const V t = hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 1.0f)));
  const V y = hn::CopySign(hn::Div(t, hn::Add(t, two)), x);
  const auto small =
      hn::Lt(hn::Abs(x), hn::Set(d, 1e-5f));  // tanh(x) is x; subnormals keep their bits
  return hn::IfThenElse(hn::Or(small, hn::IsNaN(x)), x, y);
}

// Below 1, a polynomial. Above, 1 - exp(p), where p approximates log(1 - erf(x)).
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V low =
      Polynomial(d, hn::Mul(x, x), 0.12837916573f, -0.376126258234f, 0.112835851377f,
                 -0.0268538114939f, 0.00518832688428f, -0.000801018686244f, 7.85383975579e-5f);
  const V t = hn::Min(a, hn::Set(d, 4.0f));
  const V exponent =
      Polynomial(d, t, -0.00035375685246f, -1.12703987484f, -0.638225960312f, -0.10303711005f,
                 0.0218051886636f, -0.0029395735184f, 0.000185570433453f);
  auto n = hn::Zero(hn::RebindToSigned<D>());
  const V p = Reduce(d, exponent, n);
  const V rest = hn::Mul(hn::Add(p, one), PowerOfTwo(d, n));
  const V y =
      hn::IfThenElse(hn::Lt(a, one), hn::MulAdd(x, low, x), hn::CopySign(hn::Sub(one, rest), x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// The standard normal CDF. With t = |x|: exp(-t^2 / 2) times a polynomial in 1 / (1 + 0.295 t) is
// the probability below -t to full precision; for x > 0 the result is 1 minus that. The square of
// the first 12 bits of t is exact, so the exponent has no rounding error.
template <class D, class V>
HWY_INLINE V NormalCdf(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, 1.0f), minus_half = hn::Set(d, -0.5f);
  const V t = hn::Min(hn::Abs(x), hn::Set(d, 15.0f));
  const V u = hn::Div(one, hn::MulAdd(t, hn::Set(d, 0.295f), one));
  const V q = Polynomial(d, u, 1.81113173e-05f, 0.117268912f, 0.121857829f, 0.0840709656f,
                         0.168008953f, -0.119773746f, 0.273574769f, -0.184742779f, 0.0397169851f);
  const V head = hn::BitCast(d, hn::And(hn::BitCast(du, t), hn::Set(du, 0xfffff000u)));
  const V high = hn::Mul(hn::Mul(head, head), minus_half);
  const V low = hn::Mul(hn::Mul(hn::Sub(t, head), hn::Add(t, head)), minus_half);
  const auto n = NearestPower(d, hn::Add(high, low));
  const V p = SmallExpm1(d, hn::Add(Remainder(d, high, n), low));
  const V tail = TimesPowerOfTwo(d, hn::MulAdd(p, q, q), n);
  const V y = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(one, tail), tail);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();

#endif
