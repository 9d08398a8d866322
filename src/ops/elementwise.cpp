// Elementwise arithmetic: the primitives, and composites made of them.
#include <cmath>
#include <numbers>

#include "ops/broadcast.h"
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::GradientArgs;
using ir::OpId;
using ir::Primitive;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;
using ir::Type;
using Regs = std::span<const Reg>;
using Tensors = std::vector<Tensor>;

// Type rules. All operands of an elementwise primitive have one shape; broadcasting is a view.

void same_types(std::span<const Type> in) {
  for (const Type& t : in)
    if (!(t == in[0])) break_rule("", "operands differ: {} against {}", in[0].text(), t.text());
}

Type number_type(std::span<const Type> in, const Attrs&) {
  same_types(in);
  if (in[0].dtype == DType::boolean)
    break_rule("cast to tg::i32 or tg::f32", "needs i32 or f32: {}", in[0].text());
  return in[0];
}

Type real_type(std::span<const Type> in, const Attrs&) {
  same_types(in);
  if (in[0].dtype != DType::f32) break_rule("cast to tg::f32", "needs f32: {}", in[0].text());
  return in[0];
}

template <ScalarOp op>
Reg unary_value(ScalarProgram& p, Regs in, const Attrs&) {
  return p.unary(op, in[0]);
}

template <ScalarOp op>
Reg binary_value(ScalarProgram& p, Regs in, const Attrs&) {
  return p.binary(op, in[0], in[1]);
}

using TypeRule = Type (*)(std::span<const Type>, const Attrs&);
using Value = Reg (*)(ScalarProgram&, Regs, const Attrs&);
using Gradient = Tensors (*)(const GradientArgs&);

constexpr Primitive unary(std::string_view name, TypeRule type, Value value, Gradient gradient,
                          OpId id = OpId::other) {
  return {.name = name, .id = id, .arity = 1, .type = type, .scalar = value, .gradient = gradient};
}
constexpr Primitive binary(std::string_view name, TypeRule type, Value value, Gradient gradient,
                           OpId id = OpId::other) {
  return {.name = name, .id = id, .arity = 2, .type = type, .scalar = value, .gradient = gradient};
}

constexpr Primitive kAdd = binary(
    "add", number_type, binary_value<ScalarOp::add>,
    [](const GradientArgs& d) -> Tensors {
      return {d.g, d.g};
    },
    OpId::add);

constexpr Primitive kSub = binary(
    "sub", number_type, binary_value<ScalarOp::sub>,
    [](const GradientArgs& d) -> Tensors {
      return {d.g, -d.g};
    },
    OpId::sub);

constexpr Primitive kMul = binary(
    "mul", number_type, binary_value<ScalarOp::mul>,
    [](const GradientArgs& d) -> Tensors {
      return {d.g * d.in[1], d.g * d.in[0]};
    },
    OpId::mul);

// d(a/b) = da/b - db * (a/b)/b
constexpr Primitive kDiv = binary(
    "div", real_type, binary_value<ScalarOp::div>,
    [](const GradientArgs& d) -> Tensors {
      const Tensor da = d.g / d.in[1];
      return {da, -(da * d.out)};
    },
    OpId::div);

// The larger (for minimum: smaller) side gets the gradient; at a tie each side gets half. A NaN
// side gets none.
Tensors split_by_order(const Tensor& g, const Tensor& winner, const Tensor& loser) {
  const Tensor half = where(equal(winner, loser), 0.5f, 0.0f);
  const auto share = [&](const Tensor& a, const Tensor& b) {
    return g * where(greater(a, b), 1.0f, half);
  };
  return {share(winner, loser), share(loser, winner)};
}

constexpr Primitive kMaximum =
    binary("maximum", number_type, binary_value<ScalarOp::maximum>,
           [](const GradientArgs& d) -> Tensors { return split_by_order(d.g, d.in[0], d.in[1]); });

constexpr Primitive kMinimum = binary(
    "minimum", number_type, binary_value<ScalarOp::minimum>,
    [](const GradientArgs& d) -> Tensors { return split_by_order(d.g, -d.in[0], -d.in[1]); });

// d(a^b) = b a^(b-1) da + a^b log(a) db. The first term is 0 for b = 0, the second for a = 0, b >=
// 0.
constexpr Primitive kPow =
    binary("pow", real_type, binary_value<ScalarOp::pow>, [](const GradientArgs& d) -> Tensors {
      const Tensor &a = d.in[0], &b = d.in[1];
      const Tensor da = where(equal(b, 0.0f), 0.0f, d.g * b * pow(a, b - 1.0f));
      const Tensor at_zero = logical_and(equal(a, 0.0f), b >= 0.0f);
      const Tensor db = where(at_zero, 0.0f, d.g * d.out * log(a));
      return {da, db};
    });

constexpr Primitive kNeg = unary(
    "neg", number_type, unary_value<ScalarOp::neg>,
    [](const GradientArgs& d) -> Tensors { return {-d.g}; }, OpId::neg);

constexpr Primitive kAbs =
    unary("abs", number_type, unary_value<ScalarOp::abs>,
          [](const GradientArgs& d) -> Tensors { return {d.g * sign(d.in[0])}; });

constexpr Primitive kSign = unary("sign", number_type, unary_value<ScalarOp::sign>, nullptr);

// 1/(2 sqrt(x))
constexpr Primitive kSqrt =
    unary("sqrt", real_type, unary_value<ScalarOp::sqrt>,
          [](const GradientArgs& d) -> Tensors { return {d.g * 0.5f / d.out}; });

// -x^(-3/2)/2
constexpr Primitive kRsqrt = unary(
    "rsqrt", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      return p.binary(ScalarOp::div, p.constant(1), p.unary(ScalarOp::sqrt, in[0]));
    },
    [](const GradientArgs& d) -> Tensors { return {d.g * -0.5f * d.out / d.in[0]}; });

constexpr Primitive kExp = unary("exp", real_type, unary_value<ScalarOp::exp>,
                                 [](const GradientArgs& d) -> Tensors { return {d.g * d.out}; });

constexpr Primitive kExpm1 =
    unary("expm1", real_type, unary_value<ScalarOp::expm1>,
          [](const GradientArgs& d) -> Tensors { return {d.g * (d.out + 1.0f)}; });

constexpr Primitive kLog = unary("log", real_type, unary_value<ScalarOp::log>,
                                 [](const GradientArgs& d) -> Tensors { return {d.g / d.in[0]}; });

constexpr Primitive kLog1p =
    unary("log1p", real_type, unary_value<ScalarOp::log1p>,
          [](const GradientArgs& d) -> Tensors { return {d.g / (d.in[0] + 1.0f)}; });

constexpr Primitive kSin =
    unary("sin", real_type, unary_value<ScalarOp::sin>,
          [](const GradientArgs& d) -> Tensors { return {d.g * cos(d.in[0])}; });

constexpr Primitive kCos =
    unary("cos", real_type, unary_value<ScalarOp::cos>,
          [](const GradientArgs& d) -> Tensors { return {-(d.g * sin(d.in[0]))}; });

// 1 - tanh(x)^2
constexpr Primitive kTanh =
    unary("tanh", real_type, unary_value<ScalarOp::tanh>,
          [](const GradientArgs& d) -> Tensors { return {d.g * (1.0f - d.out * d.out)}; });

// 1/(1 + exp(-x)), correct at both ends, where exp(-x) is infinite or 0. Gradient: s(1 - s)
constexpr Primitive kSigmoid = unary(
    "sigmoid", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg one = p.constant(1);
      const Reg e = p.unary(ScalarOp::exp, p.unary(ScalarOp::neg, in[0]));
      return p.binary(ScalarOp::div, one, p.binary(ScalarOp::add, one, e));
    },
    [](const GradientArgs& d) -> Tensors { return {d.g * d.out * (1.0f - d.out)}; });

// 2/sqrt(pi) exp(-x^2)
constexpr Primitive kErf =
    unary("erf", real_type, unary_value<ScalarOp::erf>, [](const GradientArgs& d) -> Tensors {
      return {d.g * static_cast<float>(2 * std::numbers::inv_sqrtpi) * exp(-(d.in[0] * d.in[0]))};
    });

// Not maximum(x, 0): here the gradient at 0 is 0, and NaN stays NaN. The gradient needs only the
// sign of the result, so x need not be kept.
constexpr Primitive kRelu = unary(
    "relu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg zero = p.constant(0);
      return p.select(p.compare(ScalarOp::less_equal, in[0], zero), zero, in[0]);
    },
    [](const GradientArgs& d) -> Tensors { return {where(d.out <= 0.0f, 0.0f, d.g)}; });

// gelu, its tanh form and silu are primitives, not composites: their gradients recompute everything
// from x, so only x is kept.

// The standard normal distribution function. Internal: only the gradient of gelu uses it, and it
// has no gradient.
constexpr Primitive kNormalCdf =
    unary("normal_cdf", real_type, unary_value<ScalarOp::normal_cdf>, nullptr);

Tensor normal_cdf(const Tensor& x) {
  Call call("normal_cdf", {});
  return call.emit(kNormalCdf, {x});
}

// The normal density, exp(-x^2 / 2) / sqrt(2 pi).
Tensor normal_density(const Tensor& x) {
  return exp(x * x * -0.5f) * static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

// x P(x), where P is the normal distribution function. Gradient: P(x) + x P'(x). Computing P from 1
// + erf would lose all digits below -5.
constexpr Primitive kGelu = unary(
    "gelu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      return p.binary(ScalarOp::mul, in[0], p.unary(ScalarOp::normal_cdf, in[0]));
    },
    [](const GradientArgs& d) -> Tensors {
      return {d.g * (normal_cdf(d.in[0]) + d.in[0] * normal_density(d.in[0]))};
    });

// x (1 + tanh(z / 2)) / 2, where z = x (a + c x^2), equals x s with s = sigmoid(z), which keeps its
// digits where tanh is near -1. With e = exp(-|z|) and r = 1 / (1 + e), s is r for z above 0 and e
// r below, and s (1 - s) is e r^2. Gradient: s + x s (1 - s) (a + 3 c x^2).
constexpr auto kTanhLinear = static_cast<float>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr auto kTanhCubic =
    static_cast<float>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi * 0.044715);

constexpr Primitive kGeluTanh = unary(
    "gelu_tanh", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg x = in[0], one = p.constant(1), square = p.binary(ScalarOp::mul, x, x);
      const Reg cubic = p.binary(ScalarOp::mul, square, p.constant(kTanhCubic));
      const Reg z =
          p.binary(ScalarOp::mul, x, p.binary(ScalarOp::add, cubic, p.constant(kTanhLinear)));
      const Reg e = p.unary(ScalarOp::exp, p.unary(ScalarOp::neg, p.unary(ScalarOp::abs, z)));
      const Reg r = p.binary(ScalarOp::div, one, p.binary(ScalarOp::add, e, one));
      const Reg s =
          p.select(p.compare(ScalarOp::less, p.constant(0), z), r, p.binary(ScalarOp::mul, e, r));
      return p.binary(ScalarOp::mul, x, s);
    },
    [](const GradientArgs& d) -> Tensors {
      const Tensor &x = d.in[0], square = x * x;
      const Tensor z = x * (square * kTanhCubic + kTanhLinear);
      const Tensor e = exp(-abs(z)), r = 1.0f / (e + 1.0f), low = e * r;
      return {d.g * (where(z > 0.0f, r, low) +
                     x * (low * r) * (square * (3 * kTanhCubic) + kTanhLinear))};
    });

// x s, where s = sigmoid(x). Gradient: s (1 + x (1 - s))
constexpr Primitive kSilu = unary(
    "silu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs& attrs) {
      return p.binary(ScalarOp::mul, in[0], kSigmoid.scalar(p, in, attrs));
    },
    [](const GradientArgs& d) -> Tensors {
      const Tensor s = sigmoid(d.in[0]);
      return {d.g * (s * (d.in[0] * (1.0f - s) + 1.0f))};
    });

constexpr Primitive kCast = {.name = "cast",
                             .arity = 1,
                             .attrs = ir::attrs_index<ir::CastAttrs>(),
                             .type =
                                 [](std::span<const Type> in, const Attrs& attrs) {
                                   return Type{std::get<ir::CastAttrs>(attrs).to, in[0].shape};
                                 },
                             .scalar =
                                 [](ScalarProgram& p, Regs in, const Attrs& attrs) {
                                   return p.convert(in[0], std::get<ir::CastAttrs>(attrs).to);
                                 }};

constexpr const Primitive* kFamily[] = {
    &kAdd,  &kSub,     &kMul,   &kDiv,  &kMaximum,   &kMinimum, &kPow,      &kNeg,  &kAbs,
    &kSign, &kSqrt,    &kRsqrt, &kExp,  &kExpm1,     &kLog,     &kLog1p,    &kSin,  &kCos,
    &kTanh, &kSigmoid, &kErf,   &kRelu, &kNormalCdf, &kGelu,    &kGeluTanh, &kSilu, &kCast};

Tensor real_unary(const Primitive& op, const Operand& x) {
  Call call(op.name, x.site());
  Tensor t = call.tensor(x);
  call.require_f32("x", t);
  return call.emit(op, {t});
}

Tensor number_unary(const Primitive& op, const Operand& x) {
  Call call(op.name, x.site());
  return call.emit(op, {call.tensor(x)});
}

Tensor number_binary(const Primitive& op, const Operand& a, const Operand& b) {
  Call call(op.name, a.site());
  auto [x, y] = promoted(call, a, b);
  return call.emit(op, {x, y});
}

}  // namespace

std::span<const Primitive* const> elementwise_family() { return kFamily; }

std::pair<Tensor, Tensor> promoted(const Call& call, const Operand& a, const Operand& b) {
  const auto dtype_of = [&](const Operand& o) {
    if (TensorAccess::is_scalar(o)) return TensorAccess::scalar_dtype(o);
    return TensorAccess::param(o) ? DType::f32 : TensorAccess::tensor(o).dtype();
  };
  const DType dtype = promote(dtype_of(a), dtype_of(b));
  Tensor x = call.tensor(a, dtype), y = call.tensor(b, dtype);
  const Shape shape = broadcast_shapes(call, {x, y});
  return {broadcast_to(cast(x, dtype), shape), broadcast_to(cast(y, dtype), shape)};
}

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor add(Operand a, Operand b) { return number_binary(kAdd, a, b); }
Tensor sub(Operand a, Operand b) { return number_binary(kSub, a, b); }
Tensor mul(Operand a, Operand b) { return number_binary(kMul, a, b); }
Tensor maximum(Operand a, Operand b) { return number_binary(kMaximum, a, b); }
Tensor minimum(Operand a, Operand b) { return number_binary(kMinimum, a, b); }

Tensor div(Operand a, Operand b) {
  Call call("div", a.site());
  auto [x, y] = promoted(call, a, b);
  if (x.dtype() != DType::f32)
    call.fail("cast one side to tg::f32 first", "integer division is not supported: {}, {}",
              call.describe("a", x), call.describe("b", y));
  return call.emit(kDiv, {x, y});
}

Tensor pow(Operand base, Operand exponent) {
  Call call("pow", base.site());
  if (TensorAccess::is_scalar(exponent) && TensorAccess::scalar(exponent) == 2) return square(base);
  auto [x, y] = promoted(call, base, exponent);
  call.require_f32("base", x);
  return call.emit(kPow, {x, y});
}

Tensor neg(Operand x) { return number_unary(kNeg, x); }
Tensor abs(Operand x) { return number_unary(kAbs, x); }
Tensor sign(Operand x) { return number_unary(kSign, x); }
Tensor sqrt(Operand x) { return real_unary(kSqrt, x); }
Tensor rsqrt(Operand x) { return real_unary(kRsqrt, x); }
Tensor exp(Operand x) { return real_unary(kExp, x); }
Tensor expm1(Operand x) { return real_unary(kExpm1, x); }
Tensor log(Operand x) { return real_unary(kLog, x); }
Tensor log1p(Operand x) { return real_unary(kLog1p, x); }
Tensor sin(Operand x) { return real_unary(kSin, x); }
Tensor cos(Operand x) { return real_unary(kCos, x); }
Tensor tanh(Operand x) { return real_unary(kTanh, x); }
Tensor sigmoid(Operand x) { return real_unary(kSigmoid, x); }
Tensor erf(Operand x) { return real_unary(kErf, x); }
Tensor relu(Operand x) { return real_unary(kRelu, x); }
Tensor gelu(Operand x) { return real_unary(kGelu, x); }
Tensor gelu_tanh(Operand x) { return real_unary(kGeluTanh, x); }
Tensor silu(Operand x) { return real_unary(kSilu, x); }

Tensor cast(Operand x, DType to) {
  Call call("cast", x.site());
  const Tensor t = call.tensor(x, to);
  return t.dtype() == to ? t : call.emit(kCast, {t}, ir::CastAttrs{to});
}

Tensor square(Operand x) {
  Call call("square", x.site());
  const Tensor t = call.tensor(x);
  return t * t;
}

Tensor leaky_relu(Operand x, float slope) {
  Call call("leaky_relu", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  return where(t > 0.0f, t, t * slope);
}

// max(x, 0) + log(1 + exp(-|x|)): exact at large |x|. At 0, the rules for ties give the gradient
// 1/2.
Tensor softplus(Operand x) {
  Call call("softplus", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  return maximum(t, 0.0f) + log1p(exp(-abs(t)));
}

Tensor clamp(Operand x, float min, float max) {
  Call call("clamp", x.site());
  if (std::isnan(min) || std::isnan(max))
    call.fail("", "the bounds must not be NaN: {} and {}", min, max);
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  const Tensor low = where(t < min, min, t);
  return where(low > max, max, low);
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> elementwise_ops() {
  static constexpr PublicOp all[] = {
      op<add>("add", {"a", "b"},
              "a + b. Mixed operands are promoted to the wider type: bool, i32, f32."),
      op<sub>("sub", {"a", "b"}, "a - b."),
      op<mul>("mul", {"a", "b"}, "a * b."),
      op<div>("div", {"a", "b"},
              "a / b, f32 only. Cast integers first, so that nothing is rounded silently."),
      op<maximum>("maximum", {"a", "b"},
                  "The larger one. At a tie, each operand gets half of the gradient."),
      op<minimum>("minimum", {"a", "b"},
                  "The smaller one. At a tie, each operand gets half of the gradient."),
      op<pow>("pow", {"base", "exponent"}, "base to the power of exponent."),
      op<neg>("neg", {"x"}, "-x."),
      op<abs>("abs", {"x"}, "The absolute value. The gradient at 0 is 0."),
      op<sign>("sign", {"x"}, "-1, 0 or 1."),
      op<square>("square", {"x"}, "x * x."),
      op<sqrt>("sqrt", {"x"}, "The square root."),
      op<rsqrt>("rsqrt", {"x"}, "1 / sqrt(x)."),
      op<exp>("exp", {"x"}, "e to the power of x."),
      op<expm1>("expm1", {"x"}, "exp(x) - 1, exact for small x."),
      op<log>("log", {"x"}, "The natural logarithm."),
      op<log1p>("log1p", {"x"}, "log(1 + x), exact for small x."),
      op<sin>("sin", {"x"}, "The sine."),
      op<cos>("cos", {"x"}, "The cosine."),
      op<tanh>("tanh", {"x"}, "The hyperbolic tangent."),
      op<sigmoid>("sigmoid", {"x"}, "1 / (1 + exp(-x))."),
      op<erf>("erf", {"x"}, "The error function."),
      op<relu>("relu", {"x"}, "max(x, 0)."),
      op<leaky_relu>("leaky_relu", {"x", {"slope", 0.01}},
                     "x where it is positive, slope * x elsewhere."),
      op<gelu>("gelu", {"x"}, "The Gaussian error linear unit in its exact form, with erf."),
      op<gelu_tanh>("gelu_tanh", {"x"}, "The approximation of gelu by tanh."),
      op<silu>("silu", {"x"}, "x * sigmoid(x)."),
      op<softplus>("softplus", {"x"}, "log(1 + exp(x))."),
      op<clamp>("clamp",
                {"x",
                 {"min", -std::numeric_limits<double>::infinity()},
                 {"max", std::numeric_limits<double>::infinity()}},
                "Limits every element to min .. max. Passes the gradient at the bounds."),
      op<cast>("cast", {"x", "to"},
               "Converts the type. f32 to i32 truncates; to bool means \"not zero\"."),
  };
  return all;
}

}  // namespace tensorgrad::ops
