// The ops of a scalar program on vectors. Blocks hold f32 or i32 (bool is 0 or 1). All types are
// passed as float vectors and bit-cast to their own type.
#if defined(TENSORGRAD_CPU_VECTOR_OPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_VECTOR_OPS_INL_H
#undef TENSORGRAD_CPU_VECTOR_OPS_INL_H
#else
#define TENSORGRAD_CPU_VECTOR_OPS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "codegen/cpu/vector_math-inl.h"
#include "support/integers.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;
using VI = hn::Vec<IntTag>;

// Loads the first n < lanes elements; the other lanes are zero. Accesses no memory beyond them.
HWY_INLINE V LoadSome(Tag d, const float* p, std::int64_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float some[hn::MaxLanes(Tag())] = {};
  std::copy_n(p, n, some);
  return hn::Load(d, some);
#else
  return hn::MaskedLoad(hn::FirstN(d, usize(n)), d, p);
#endif
}
HWY_INLINE void StoreSome(V v, Tag d, float* p, std::int64_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float some[hn::MaxLanes(Tag())];
  hn::Store(v, d, some);
  std::copy_n(some, n, p);
#else
  hn::BlendedStore(v, hn::FirstN(d, usize(n)), d, p);
#endif
}

HWY_INLINE VI Ints(V v) { return hn::BitCast(IntTag(), v); }
HWY_INLINE V Floats(VI v) { return hn::BitCast(Tag(), v); }
// 1 where the mask is set, else 0.
template <class Mask>
HWY_INLINE V Truth(Tag d, Mask mask) {
  return hn::IfThenElseZero(mask, hn::BitCast(d, hn::Set(IntTag(), 1)));
}
template <class Mask>
HWY_INLINE V IntTruth(Mask mask) {
  return Floats(hn::IfThenElseZero(mask, hn::Set(IntTag(), 1)));
}

struct Add {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::Add(a, b); }
};
struct Sub {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::Sub(a, b); }
};
struct Mul {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::Mul(a, b); }
};
struct Div {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::Div(a, b); }
};
// Propagates NaN: a + b is NaN when either is.
HWY_INLINE V OrNan(V a, V b, V other) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), other);
}
struct Min {
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return OrNan(a, b, hn::IfThenElse(hn::Lt(b, a), b, a));
  }
};
struct Max {
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return OrNan(a, b, hn::IfThenElse(hn::Lt(a, b), b, a));
  }
};
struct AddInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return Floats(hn::Add(Ints(a), Ints(b))); }
};
struct SubInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return Floats(hn::Sub(Ints(a), Ints(b))); }
};
struct MulInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return Floats(hn::Mul(Ints(a), Ints(b))); }
};
struct MinInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return Floats(hn::Min(Ints(a), Ints(b))); }
};
struct MaxInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return Floats(hn::Max(Ints(a), Ints(b))); }
};

struct Less {
  HWY_INLINE V operator()(Tag d, V a, V b) const { return Truth(d, hn::Lt(a, b)); }
};
struct LessEqual {
  HWY_INLINE V operator()(Tag d, V a, V b) const { return Truth(d, hn::Le(a, b)); }
};
struct Equal {
  HWY_INLINE V operator()(Tag d, V a, V b) const { return Truth(d, hn::Eq(a, b)); }
};
struct LessInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return IntTruth(hn::Lt(Ints(a), Ints(b))); }
};
struct LessEqualInt {
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return IntTruth(hn::Not(hn::Lt(Ints(b), Ints(a))));
  }
};
struct EqualInt {
  HWY_INLINE V operator()(Tag, V a, V b) const { return IntTruth(hn::Eq(Ints(a), Ints(b))); }
};
struct And {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::And(a, b); }
};
struct Or {
  HWY_INLINE V operator()(Tag, V a, V b) const { return hn::Or(a, b); }
};

// The condition is 0 or 1.
struct Select {
  HWY_INLINE V operator()(Tag d, V a, V b, V c) const {
    return hn::IfThenElse(hn::RebindMask(d, hn::Ne(Ints(a), hn::Zero(IntTag()))), b, c);
  }
};
// Not fused: the product is rounded separately.
struct ProductPlus {
  HWY_INLINE V operator()(Tag, V a, V b, V c) const { return hn::Add(hn::Mul(a, b), c); }
};
struct ProductMinus {
  HWY_INLINE V operator()(Tag, V a, V b, V c) const { return hn::Sub(hn::Mul(a, b), c); }
};
struct ProductFrom {
  HWY_INLINE V operator()(Tag, V a, V b, V c) const { return hn::Sub(c, hn::Mul(a, b)); }
};

struct Neg {
  HWY_INLINE V operator()(Tag, V a) const { return hn::Neg(a); }
};
struct Abs {
  HWY_INLINE V operator()(Tag, V a) const { return hn::Abs(a); }
};
struct Sign {
  HWY_INLINE V operator()(Tag d, V a) const {
    const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
    const V sign =
        hn::Sub(hn::IfThenElseZero(hn::Gt(a, zero), one), hn::IfThenElseZero(hn::Lt(a, zero), one));
    return hn::IfThenElse(hn::IsNaN(a), a, sign);
  }
};
struct Sqrt {
  HWY_INLINE V operator()(Tag, V a) const { return hn::Sqrt(a); }
};
struct Exp {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Exp(d, a); }
};
struct Expm1 {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Expm1(d, a); }
};
struct Log {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Log(d, a); }
};
struct Log1p {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Log1p(d, a); }
};
struct Tanh {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Tanh(d, a); }
};
struct Erf {
  HWY_INLINE V operator()(Tag d, V a) const { return math::Erf(d, a); }
};
struct NormalCdf {
  HWY_INLINE V operator()(Tag d, V a) const { return math::NormalCdf(d, a); }
};
struct NegInt {
  HWY_INLINE V operator()(Tag, V a) const { return Floats(hn::Sub(hn::Zero(IntTag()), Ints(a))); }
};
struct AbsInt {
  HWY_INLINE V operator()(Tag d, V a) const { return MaxInt()(d, a, NegInt()(d, a)); }
};
struct SignInt {
  HWY_INLINE V operator()(Tag, V a) const {
    const auto zero = hn::Zero(IntTag()), one = hn::Set(IntTag(), 1);
    return Floats(hn::Sub(hn::IfThenElseZero(hn::Gt(Ints(a), zero), one),
                          hn::IfThenElseZero(hn::Lt(Ints(a), zero), one)));
  }
};
struct Not {
  HWY_INLINE V operator()(Tag, V a) const { return Floats(hn::Xor(Ints(a), hn::Set(IntTag(), 1))); }
};

struct Same {
  HWY_INLINE V operator()(Tag, V a) const { return a; }
};
struct ToReal {
  HWY_INLINE V operator()(Tag d, V a) const { return hn::ConvertTo(d, Ints(a)); }
};
// Rounds towards zero. NaN gives 0; values out of range saturate.
struct ToInt {
  HWY_INLINE V operator()(Tag d, V a) const {
    const IntTag di;
    const V inside = hn::Min(hn::Max(hn::IfThenZeroElse(hn::IsNaN(a), a), hn::Set(d, -0x1p31f)),
                             hn::Set(d, 0x1.fffffep30f));
    const auto large = hn::RebindMask(di, hn::Ge(a, hn::Set(d, 0x1p31f)));
    return Floats(hn::IfThenElse(large, hn::Set(di, std::numeric_limits<std::int32_t>::max()),
                                 hn::ConvertTo(di, inside)));
  }
};
struct ToBool {
  HWY_INLINE V operator()(Tag d, V a) const {
    return Truth(d, hn::Not(hn::Eq(a, hn::Zero(d))));
  }  // NaN is true
};
struct ToBoolInt {
  HWY_INLINE V operator()(Tag, V a) const { return IntTruth(hn::Ne(Ints(a), hn::Zero(IntTag()))); }
};
struct IsFinite {
  HWY_INLINE V operator()(Tag, V a) const {
    const auto exponent = hn::Set(IntTag(), 0x7f800000);
    return IntTruth(hn::Ne(hn::And(Ints(a), exponent), exponent));
  }
};

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
