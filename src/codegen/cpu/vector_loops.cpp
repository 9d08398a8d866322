#include "codegen/cpu/vector_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/threefry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/vector_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codegen/cpu/double_math-inl.h"
#include "codegen/cpu/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

using ir::ScalarOp;

template <class Op>
void Unary(const Stretch& s) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  const float* const a = s.a;
  float* const out = s.out;
  const std::int64_t n = s.length;
  std::int64_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(Op()(d, hn::LoadU(d, a + i)), d, out + i);
  if (i < n) StoreSome(Op()(d, LoadSome(d, a + i, n - i)), d, out + i, n - i);
}

template <class Op, unsigned kOnes>
void Binary(const Stretch& s) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  const float *a = s.a, *b = s.b;
  float* out = s.out;
  const std::int64_t n = s.length;
  for (std::int64_t l = 0; l < s.lines; ++l, a += s.a_step, b += s.b_step, out += n) {
    const auto one = hn::Set(d, kOnes == kOneA ? *a : kOnes == kOneB ? *b : 0.0f);
    const auto apply = [&](auto load, std::int64_t at) {
      if constexpr (kOnes == kOneA)
        return Op()(d, one, load(b + at));
      else if constexpr (kOnes == kOneB)
        return Op()(d, load(a + at), one);
      else
        return Op()(d, load(a + at), load(b + at));
    };
    const auto whole = [&](const float* p) { return hn::LoadU(d, p); };
    std::int64_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
      const auto x = apply(whole, i), y = apply(whole, i + N);
      hn::StoreU(x, d, out + i);
      hn::StoreU(y, d, out + i + N);
    }
    for (; i + N <= n; i += N) hn::StoreU(apply(whole, i), d, out + i);
    if (i < n)
      StoreSome(apply([&](const float* p) { return LoadSome(d, p, n - i); }, i), d, out + i, n - i);
  }
}

// Three operands, of which b and c may be scalars.
template <class Op, unsigned kOnes>
void Ternary(const Stretch& s) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t n = s.length;
  const float *a = s.a, *b = s.b, *c = s.c;
  float* out = s.out;
  for (std::int64_t l = 0; l < s.lines;
       ++l, a += s.a_step, b += s.b_step, c += s.c_step, out += n) {
    const auto one_b = hn::Set(d, kOnes & kOneB ? *b : 0.0f),
               one_c = hn::Set(d, kOnes & kOneC ? *c : 0.0f);
    const auto apply = [&](auto load, std::int64_t at) {
      const auto x = load(a + at);
      if constexpr (kOnes == kNoOnes)
        return Op()(d, x, load(b + at), load(c + at));
      else if constexpr (kOnes == kOneB)
        return Op()(d, x, one_b, load(c + at));
      else if constexpr (kOnes == kOneC)
        return Op()(d, x, load(b + at), one_c);
      else
        return Op()(d, x, one_b, one_c);
    };
    std::int64_t i = 0;
    for (; i + N <= n; i += N)
      hn::StoreU(apply([&](const float* p) { return hn::LoadU(d, p); }, i), d, out + i);
    if (i < n)
      StoreSome(apply([&](const float* p) { return LoadSome(d, p, n - i); }, i), d, out + i, n - i);
  }
}

// Plain loops that the compiler vectorizes; libm recomputes elements that they cannot handle.
template <std::uint64_t kQuarter>
void Angle(const Stretch& s) {
  const float* const a = s.a;
  float* const out = s.out;
  // One piece at a time, so that `a` may alias `out`.
  constexpr std::int64_t kPiece = 64;
  float piece[kPiece];
  for (std::int64_t at = 0; at < s.length; at += kPiece) {
    const std::int64_t n = std::min(kPiece, s.length - at);
    int plain = 1;
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = a[at + i];
      piece[i] = math::SinOrCos(x, kQuarter);
      plain &= std::fabs(x) <= math::kLargestAngle;
    }
    for (std::int64_t i = 0; !plain && i < n; ++i)
      if (!(std::fabs(a[at + i]) <= math::kLargestAngle))
        piece[i] = kQuarter ? std::cos(a[at + i]) : std::sin(a[at + i]);
    std::copy_n(piece, n, out + at);
  }
}

template <unsigned kOnes>
void Pow(const Stretch& s) {
  constexpr std::int64_t kPiece = 64;
  float piece[kPiece];
  for (std::int64_t l = 0; l < s.lines; ++l)
    for (std::int64_t at = 0; at < s.length; at += kPiece) {
      const std::int64_t n = std::min(kPiece, s.length - at);
      const float* const a = s.a + l * s.a_step + (kOnes == kOneA ? 0 : at);
      const float* const b = s.b + l * s.b_step + (kOnes == kOneB ? 0 : at);
      const auto x = [&](std::int64_t i) { return a[kOnes == kOneA ? 0 : i]; };
      const auto y = [&](std::int64_t i) { return b[kOnes == kOneB ? 0 : i]; };
      int plain = 1;
      for (std::int64_t i = 0; i < n; ++i) {
        piece[i] = math::Power(x(i), y(i));
        plain &= math::PlainPower(x(i), y(i));
      }
      for (std::int64_t i = 0; !plain && i < n; ++i)
        if (!math::PlainPower(x(i), y(i))) piece[i] = std::pow(x(i), y(i));
      std::copy_n(piece, n, s.out + l * s.length + at);
    }
}

template <class Op>
Loop BinaryLoop(unsigned ones) {
  switch (ones) {
    case kNoOnes:
      return Binary<Op, kNoOnes>;
    case kOneA:
      return Binary<Op, kOneA>;
    case kOneB:
      return Binary<Op, kOneB>;
    default:
      return nullptr;
  }
}

Loop PowLoop(unsigned ones) {
  switch (ones) {
    case kNoOnes:
      return Pow<kNoOnes>;
    case kOneA:
      return Pow<kOneA>;
    case kOneB:
      return Pow<kOneB>;
    default:
      return nullptr;
  }
}

template <class Op>
Loop TernaryLoop(unsigned ones) {
  switch (ones) {
    case kNoOnes:
      return Ternary<Op, kNoOnes>;
    case kOneB:
      return Ternary<Op, kOneB>;
    case kOneC:
      return Ternary<Op, kOneC>;
    case kOneB | kOneC:
      return Ternary<Op, kOneB | kOneC>;
    default:
      return nullptr;
  }
}

Loop FindProductLoop(ProductForm form, unsigned ones) {
  switch (form) {
    case ProductForm::plus:
      return TernaryLoop<ProductPlus>(ones);
    case ProductForm::minus:
      return TernaryLoop<ProductMinus>(ones);
    case ProductForm::from:
      return TernaryLoop<ProductFrom>(ones);
  }
  return nullptr;
}

template <class Real, class Int>
Loop BinaryLoop(bool real, unsigned ones) {
  return real ? BinaryLoop<Real>(ones) : BinaryLoop<Int>(ones);
}

Loop UnaryLoop(ScalarOp op, bool real) {
  switch (op) {
    case ScalarOp::neg:
      return real ? Unary<Neg> : Unary<NegInt>;
    case ScalarOp::abs:
      return real ? Unary<Abs> : Unary<AbsInt>;
    case ScalarOp::sign:
      return real ? Unary<Sign> : Unary<SignInt>;
    case ScalarOp::sqrt:
      return Unary<Sqrt>;
    case ScalarOp::exp:
      return Unary<Exp>;
    case ScalarOp::expm1:
      return Unary<Expm1>;
    case ScalarOp::log:
      return Unary<Log>;
    case ScalarOp::log1p:
      return Unary<Log1p>;
    case ScalarOp::sin:
      return Angle<0>;
    case ScalarOp::cos:
      return Angle<1>;
    case ScalarOp::tanh:
      return Unary<Tanh>;
    case ScalarOp::erf:
      return Unary<Erf>;
    case ScalarOp::normal_cdf:
      return Unary<NormalCdf>;
    case ScalarOp::logical_not:
      return Unary<Not>;
    case ScalarOp::to_f32:
      return Unary<ToReal>;
    case ScalarOp::to_i32:
      return real ? Unary<ToInt> : Unary<Same>;
    case ScalarOp::to_bool:
      return real ? Unary<ToBool> : Unary<ToBoolInt>;
    case ScalarOp::is_finite:
      return Unary<IsFinite>;
    default:
      return nullptr;
  }
}

Loop FindLoop(ScalarOp op, bool real, unsigned ones) {
  switch (op) {
    case ScalarOp::add:
      return BinaryLoop<Add, AddInt>(real, ones);
    case ScalarOp::sub:
      return BinaryLoop<Sub, SubInt>(real, ones);
    case ScalarOp::mul:
      return BinaryLoop<Mul, MulInt>(real, ones);
    case ScalarOp::div:
      return BinaryLoop<Div>(ones);
    case ScalarOp::minimum:
      return BinaryLoop<Min, MinInt>(real, ones);
    case ScalarOp::maximum:
      return BinaryLoop<Max, MaxInt>(real, ones);
    case ScalarOp::pow:
      return PowLoop(ones);
    case ScalarOp::less:
      return BinaryLoop<Less, LessInt>(real, ones);
    case ScalarOp::less_equal:
      return BinaryLoop<LessEqual, LessEqualInt>(real, ones);
    case ScalarOp::equal:
      return BinaryLoop<Equal, EqualInt>(real, ones);
    case ScalarOp::logical_and:
      return BinaryLoop<And>(ones);
    case ScalarOp::logical_or:
      return BinaryLoop<Or>(ones);
    case ScalarOp::select:
      return TernaryLoop<Select>(ones);
    default:
      return ones == kNoOnes ? UnaryLoop(op, real) : nullptr;
  }
}

void RandomLoop(const float* a, const float* b, const float* c, std::uint32_t site, float* out,
                std::int64_t n) {
  const auto* const key0 = reinterpret_cast<const std::uint32_t*>(a);
  const auto* const key1 = reinterpret_cast<const std::uint32_t*>(b);
  const auto* const counter = reinterpret_cast<const std::uint32_t*>(c);
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = unit_float(threefry(key0[i], key1[i], site, counter[i])[0]);
}

void IotaLoop(std::uint32_t start, std::uint32_t stride, float* out, std::int64_t n) {
  auto* const numbers = reinterpret_cast<std::uint32_t*>(out);
  for (std::int64_t i = 0; i < n; ++i) numbers[i] = start + static_cast<std::uint32_t>(i) * stride;
}

void EverySecond(const float* HWY_RESTRICT from, std::int64_t down, std::int64_t rows,
                 std::int64_t n, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < rows; ++r, from += down, to += n) {
    std::int64_t i = 0;
    for (; i + lanes < n; i += lanes) {  // reads a float behind its last one
      hn::Vec<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, from + 2 * i, even, odd);
      hn::StoreU(even, d, to + i);
    }
    for (; i < n; ++i) to[i] = from[2 * i];
  }
}

void AddInto(float* to, const float* from, std::int64_t n) {
  Binary<Add, kNoOnes>({.a = to, .b = from, .out = to, .lines = 1, .length = n});
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(FindLoop);
HWY_EXPORT(FindProductLoop);
HWY_EXPORT(RandomLoop);
HWY_EXPORT(IotaLoop);
HWY_EXPORT(EverySecond);
HWY_EXPORT(AddInto);

Loop find_loop(ir::ScalarOp op, bool real, unsigned ones) {
  return HWY_DYNAMIC_DISPATCH(FindLoop)(op, real, ones);
}
Loop find_product_loop(ProductForm form, unsigned ones) {
  return HWY_DYNAMIC_DISPATCH(FindProductLoop)(form, ones);
}
void random_loop(const float* a, const float* b, const float* c, std::uint32_t site, float* out,
                 std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(RandomLoop)(a, b, c, site, out, n);
}
void iota_loop(std::uint32_t start, std::uint32_t stride, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(IotaLoop)(start, stride, out, n);
}
void every_second(const float* from, std::int64_t down, std::int64_t rows, std::int64_t n,
                  float* to) {
  HWY_DYNAMIC_DISPATCH(EverySecond)(from, down, rows, n, to);
}
void add_into(float* to, const float* from, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddInto)(to, from, n);
}

}  // namespace tensorgrad::cpu
#endif
