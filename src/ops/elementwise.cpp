// Elementwise arithmetic: records of the primitives, and the composites made of them.
#include <numbers>

#include "ops/broadcast.h"
#include "ops/builder.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::GradientArgs;
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
    if (!(t == in[0]))
      break_rule("", "operands differ: {} against {}", in[0].text(), t.text());
}

Type number_type(std::span<const Type> in, const Attrs&) {
  same_types(in);
  if (in[0].dtype == DType::boolean) break_rule("cast to tg::i32 or tg::f32", "needs numbers: {}", in[0].text());
  return in[0];
}

Type real_type(std::span<const Type> in, const Attrs&) {
  same_types(in);
  if (in[0].dtype != DType::f32) break_rule("cast to tg::f32", "needs f32: {}", in[0].text());
  return in[0];
}

template <ScalarOp op>
Reg unary_value(ScalarProgram& p, Regs in, const Attrs&) { return p.unary(op, in[0]); }

template <ScalarOp op>
Reg binary_value(ScalarProgram& p, Regs in, const Attrs&) { return p.binary(op, in[0], in[1]); }

using TypeRule = Type (*)(std::span<const Type>, const Attrs&);
using Value = Reg (*)(ScalarProgram&, Regs, const Attrs&);
using Gradient = Tensors (*)(const GradientArgs&);

constexpr Primitive unary(std::string_view name, TypeRule type, Value value, Gradient gradient) {
  return {.name = name, .arity = 1, .type = type, .scalar = value, .gradient = gradient};
}
constexpr Primitive binary(std::string_view name, TypeRule type, Value value, Gradient gradient) {
  return {.name = name, .arity = 2, .type = type, .scalar = value, .gradient = gradient};
}

constexpr Primitive kAdd = binary("add", number_type, binary_value<ScalarOp::add>,
    [](const GradientArgs& d) -> Tensors { return {d.g, d.g}; });

constexpr Primitive kSub = binary("sub", number_type, binary_value<ScalarOp::sub>,
    [](const GradientArgs& d) -> Tensors { return {d.g, -d.g}; });

constexpr Primitive kMul = binary("mul", number_type, binary_value<ScalarOp::mul>,
    [](const GradientArgs& d) -> Tensors { return {d.g * d.in[1], d.g * d.in[0]}; });

// d(a/b) = da/b - db * (a/b)/b
constexpr Primitive kDiv = binary("div", real_type, binary_value<ScalarOp::div>,
    [](const GradientArgs& d) -> Tensors {
      const Tensor da = d.g / d.in[1];
      return {da, -(da * d.out)};
    });

// The larger (smaller) side gets the gradient; at a tie each gets half. A NaN side gets none.
Tensors split_by_order(const Tensor& g, const Tensor& winner, const Tensor& loser) {
  const Tensor half = where(equal(winner, loser), 0.5f, 0.0f);
  const auto share = [&](const Tensor& a, const Tensor& b) {
    return g * where(greater(a, b), 1.0f, half);
  };
  return {share(winner, loser), share(loser, winner)};
}

constexpr Primitive kMaximum = binary("maximum", number_type, binary_value<ScalarOp::maximum>,
    [](const GradientArgs& d) -> Tensors { return split_by_order(d.g, d.in[0], d.in[1]); });

constexpr Primitive kMinimum = binary("minimum", number_type, binary_value<ScalarOp::minimum>,
    [](const GradientArgs& d) -> Tensors { return split_by_order(d.g, -d.in[0], -d.in[1]); });

// d(a^b) = b a^(b-1) da + a^b log(a) db; the first is 0 for b = 0, the second 0 for a = 0, b >= 0.
constexpr Primitive kPow = binary("pow", real_type, binary_value<ScalarOp::pow>,
    [](const GradientArgs& d) -> Tensors {
      const Tensor &a = d.in[0], &b = d.in[1];
      const Tensor da = where(equal(b, 0.0f), 0.0f, d.g * b * pow(a, b - 1.0f));
      const Tensor at_zero = logical_and(equal(a, 0.0f), b >= 0.0f);
      const Tensor db = where(at_zero, 0.0f, d.g * d.out * log(a));
      return {da, db};
    });

constexpr Primitive kNeg = unary("neg", number_type, unary_value<ScalarOp::neg>,
    [](const GradientArgs& d) -> Tensors { return {-d.g}; });

constexpr Primitive kAbs = unary("abs", number_type, unary_value<ScalarOp::abs>,
    [](const GradientArgs& d) -> Tensors { return {d.g * sign(d.in[0])}; });

constexpr Primitive kSign = unary("sign", number_type, unary_value<ScalarOp::sign>, nullptr);

// 1/(2 sqrt(x))
constexpr Primitive kSqrt = unary("sqrt", real_type, unary_value<ScalarOp::sqrt>,
    [](const GradientArgs& d) -> Tensors { return {d.g * 0.5f / d.out}; });

// -x^(-3/2)/2
constexpr Primitive kRsqrt = unary("rsqrt", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      return p.binary(ScalarOp::div, p.constant(1), p.unary(ScalarOp::sqrt, in[0]));
    },
    [](const GradientArgs& d) -> Tensors { return {d.g * -0.5f * d.out / d.in[0]}; });

constexpr Primitive kExp = unary("exp", real_type, unary_value<ScalarOp::exp>,
    [](const GradientArgs& d) -> Tensors { return {d.g * d.out}; });

constexpr Primitive kExpm1 = unary("expm1", real_type, unary_value<ScalarOp::expm1>,
    [](const GradientArgs& d) -> Tensors { return {d.g * (d.out + 1.0f)}; });

constexpr Primitive kLog = unary("log", real_type, unary_value<ScalarOp::log>,
    [](const GradientArgs& d) -> Tensors { return {d.g / d.in[0]}; });

constexpr Primitive kLog1p = unary("log1p", real_type, unary_value<ScalarOp::log1p>,
    [](const GradientArgs& d) -> Tensors { return {d.g / (d.in[0] + 1.0f)}; });

constexpr Primitive kSin = unary("sin", real_type, unary_value<ScalarOp::sin>,
    [](const GradientArgs& d) -> Tensors { return {d.g * cos(d.in[0])}; });

constexpr Primitive kCos = unary("cos", real_type, unary_value<ScalarOp::cos>,
    [](const GradientArgs& d) -> Tensors { return {-(d.g * sin(d.in[0]))}; });

// 1 - tanh(x)^2
constexpr Primitive kTanh = unary("tanh", real_type, unary_value<ScalarOp::tanh>,
    [](const GradientArgs& d) -> Tensors { return {d.g * (1.0f - d.out * d.out)}; });

// 1/(1 + exp(-x)), which is right at both ends: exp(-x) is infinite or 0 there. s(1 - s)
constexpr Primitive kSigmoid = unary("sigmoid", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg one = p.constant(1);
      const Reg e = p.unary(ScalarOp::exp, p.unary(ScalarOp::neg, in[0]));
      return p.binary(ScalarOp::div, one, p.binary(ScalarOp::add, one, e));
    },
    [](const GradientArgs& d) -> Tensors { return {d.g * d.out * (1.0f - d.out)}; });

// 2/sqrt(pi) exp(-x^2)
constexpr Primitive kErf = unary("erf", real_type, unary_value<ScalarOp::erf>,
    [](const GradientArgs& d) -> Tensors {
      return {d.g * static_cast<float>(2 * std::numbers::inv_sqrtpi) * exp(-(d.in[0] * d.in[0]))};
    });

// Not maximum(x, 0): the gradient at 0 is 0, and NaN stays NaN. The sign of the result is enough for
// the gradient, so that x need not be kept.
constexpr Primitive kRelu = unary("relu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg zero = p.constant(0);
      return p.select(p.compare(ScalarOp::less_equal, in[0], zero), zero, in[0]);
    },
    [](const GradientArgs& d) -> Tensors { return {where(d.out <= 0.0f, 0.0f, d.g)}; });

// The next three are primitives, not composites, so that their gradients start again from x and
// nothing but x need be kept.

Reg normal_cdf(ScalarProgram& p, Reg x) {
  const Reg e = p.unary(ScalarOp::erf, p.binary(ScalarOp::mul, x, p.constant(1 / std::numbers::sqrt2)));
  return p.binary(ScalarOp::mul, p.binary(ScalarOp::add, e, p.constant(1)), p.constant(0.5));
}

// x P(x), P the normal distribution; P(x) + x P'(x)
constexpr Primitive kGelu = unary("gelu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      return p.binary(ScalarOp::mul, in[0], normal_cdf(p, in[0]));
    },
    [](const GradientArgs& d) -> Tensors {
      const Tensor& x = d.in[0];
      const Tensor cdf = (erf(x * static_cast<float>(1 / std::numbers::sqrt2)) + 1.0f) * 0.5f;
      const auto peak = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
      return {d.g * (cdf + x * exp(x * x * -0.5f) * peak)};
    });

constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kTanhCubic = 0.044715;

// x (1 + t)/2, t = tanh(a (x + c x^3)); (1 + t)/2 + x (1 - t^2)/2 a (1 + 3 c x^2)
constexpr Primitive kGeluTanh = unary("gelu_tanh", real_type,
    [](ScalarProgram& p, Regs in, const Attrs&) {
      const Reg x = in[0], cube = p.binary(ScalarOp::mul, p.binary(ScalarOp::mul, x, x), x);
      const Reg inner = p.binary(ScalarOp::add, x, p.binary(ScalarOp::mul, cube, p.constant(kTanhCubic)));
      const Reg t = p.unary(ScalarOp::tanh, p.binary(ScalarOp::mul, inner, p.constant(kTanhScale)));
      return p.binary(ScalarOp::mul, p.binary(ScalarOp::mul, x, p.constant(0.5)), p.binary(ScalarOp::add, t, p.constant(1)));
    },
    [](const GradientArgs& d) -> Tensors {
      const Tensor& x = d.in[0];
      const auto a = static_cast<float>(kTanhScale), c = static_cast<float>(kTanhCubic);
      const Tensor t = tanh((x + x * x * x * c) * a);
      return {d.g * ((t + 1.0f) * 0.5f + x * 0.5f * (1.0f - t * t) * ((x * x * (3 * c) + 1.0f) * a))};
    });

// x s, s = sigmoid(x); s (1 + x (1 - s))
constexpr Primitive kSilu = unary("silu", real_type,
    [](ScalarProgram& p, Regs in, const Attrs& attrs) {
      return p.binary(ScalarOp::mul, in[0], kSigmoid.scalar(p, in, attrs));
    },
    [](const GradientArgs& d) -> Tensors {
      const Tensor s = sigmoid(d.in[0]);
      return {d.g * (s * (d.in[0] * (1.0f - s) + 1.0f))};
    });

constexpr Primitive kCast = {
    .name = "cast", .arity = 1, .attrs = ir::attrs_index<ir::CastAttrs>(),
    .type = [](std::span<const Type> in, const Attrs& attrs) {
      return Type{std::get<ir::CastAttrs>(attrs).to, in[0].shape};
    },
    .scalar = [](ScalarProgram& p, Regs in, const Attrs& attrs) {
      return p.convert(in[0], std::get<ir::CastAttrs>(attrs).to);
    }};

constexpr const Primitive* kFamily[] = {
    &kAdd, &kSub, &kMul, &kDiv, &kMaximum, &kMinimum, &kPow, &kNeg, &kAbs, &kSign, &kSqrt, &kRsqrt,
    &kExp, &kExpm1, &kLog, &kLog1p, &kSin, &kCos, &kTanh, &kSigmoid, &kErf, &kRelu, &kGelu,
    &kGeluTanh, &kSilu, &kCast};

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
    call.fail("cast one side to tg::f32 first", "integers are not divided: {}, {}",
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

// max(x, 0) + log(1 + exp(-|x|)): exact at large |x|; the ties give the gradient 1/2 at 0.
Tensor softplus(Operand x) {
  Call call("softplus", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  return maximum(t, 0.0f) + log1p(exp(-abs(t)));
}

Tensor clamp(Operand x, float min, float max) {
  Call call("clamp", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  const Tensor low = where(t < min, min, t);
  return where(low > max, max, low);
}

}  // namespace tensorgrad
