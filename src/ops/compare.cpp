// Comparison, logic and selection. Bool results have no gradient; `where` passes it to the chosen
// side.
#include "ops/broadcast.h"
#include "ops/builder.h"
#include "ops/registry.h"
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

Type compare_type(std::span<const Type> in, const Attrs&) {
  if (!(in[0] == in[1]))
    break_rule("", "operands differ: {} against {}", in[0].text(), in[1].text());
  return {DType::boolean, in[0].shape};
}

Type logic_type(std::span<const Type> in, const Attrs&) {
  for (const Type& t : in)
    if (t.dtype != DType::boolean || t.shape != in[0].shape)
      break_rule("compare first, or cast to tg::boolean", "needs bool operands of one shape: {}",
                 t.text());
  return in[0];
}

template <ScalarOp op>
constexpr Primitive comparison(std::string_view name) {
  return {.name = name,
          .arity = 2,
          .type = compare_type,
          .scalar = [](ScalarProgram& p, Regs in, const Attrs&) {
            return p.compare(op, in[0], in[1]);
          }};
}

constexpr Primitive kLess = comparison<ScalarOp::less>("less");
constexpr Primitive kLessEqual = comparison<ScalarOp::less_equal>("less_equal");
constexpr Primitive kEqual = comparison<ScalarOp::equal>("equal");

template <ScalarOp op>
constexpr Primitive connective(std::string_view name) {
  return {
      .name = name,
      .arity = 2,
      .type = logic_type,
      .scalar = [](ScalarProgram& p, Regs in, const Attrs&) { return p.binary(op, in[0], in[1]); }};
}

constexpr Primitive kAnd = connective<ScalarOp::logical_and>("logical_and");
constexpr Primitive kOr = connective<ScalarOp::logical_or>("logical_or");

constexpr Primitive kNot = {.name = "logical_not",
                            .arity = 1,
                            .type = logic_type,
                            .scalar = [](ScalarProgram& p, Regs in, const Attrs&) {
                              return p.unary(ScalarOp::logical_not, in[0]);
                            }};

constexpr Primitive kIsFinite = {
    .name = "is_finite",
    .arity = 1,
    .type =
        [](std::span<const Type> in, const Attrs&) {
          if (in[0].dtype != DType::f32) break_rule("", "needs f32: {}", in[0].text());
          return Type{DType::boolean, in[0].shape};
        },
    .scalar =
        [](ScalarProgram& p, Regs in, const Attrs&) {
          return p.push({.op = ScalarOp::is_finite, .dtype = DType::boolean, .a = in[0]});
        }};

constexpr Primitive kWhere = {
    .name = "where",
    .id = ir::OpId::where,
    .arity = 3,
    .type =
        [](std::span<const Type> in, const Attrs&) {
          if (in[0].dtype != DType::boolean || in[0].shape != in[1].shape || !(in[1] == in[2]))
            break_rule("", "needs a bool condition and two operands of one type: {}, {}, {}",
                       in[0].text(), in[1].text(), in[2].text());
          return in[1];
        },
    .scalar = [](ScalarProgram& p, Regs in, const Attrs&) { return p.select(in[0], in[1], in[2]); },
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      return {{}, where(d.in[0], d.g, 0.0f), where(d.in[0], 0.0f, d.g)};
    }};

constexpr const Primitive* kFamily[] = {&kLess, &kLessEqual, &kEqual,    &kAnd,
                                        &kOr,   &kNot,       &kIsFinite, &kWhere};

Tensor compare(std::string_view name, const Primitive& op, const Operand& a, const Operand& b,
               Site site) {
  Call call(name, site);
  auto [x, y] = promoted(call, a, b);
  return call.emit(op, {x, y});
}

Tensor as_bool(const Call& call, const Operand& x) {
  return cast(call.tensor(x, DType::boolean), DType::boolean);
}

Tensor logic(const Primitive& op, const Operand& a, const Operand& b) {
  Call call(op.name, a.site());
  const Tensor x = as_bool(call, a), y = as_bool(call, b);
  const Shape shape = broadcast_shapes(call, {x, y});
  return call.emit(op, {broadcast_to(x, shape), broadcast_to(y, shape)});
}

}  // namespace

std::span<const Primitive* const> compare_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor less(Operand a, Operand b) { return compare("less", kLess, a, b, a.site()); }
Tensor less_equal(Operand a, Operand b) {
  return compare("less_equal", kLessEqual, a, b, a.site());
}
Tensor greater(Operand a, Operand b) { return compare("greater", kLess, b, a, a.site()); }
Tensor greater_equal(Operand a, Operand b) {
  return compare("greater_equal", kLessEqual, b, a, a.site());
}
Tensor equal(Operand a, Operand b) { return compare("equal", kEqual, a, b, a.site()); }

Tensor not_equal(Operand a, Operand b) {
  Call call("not_equal", a.site());
  return logical_not(equal(a, b));
}

Tensor logical_and(Operand a, Operand b) { return logic(kAnd, a, b); }
Tensor logical_or(Operand a, Operand b) { return logic(kOr, a, b); }

Tensor logical_not(Operand x) {
  Call call("logical_not", x.site());
  return call.emit(kNot, {as_bool(call, x)});
}

Tensor is_finite(Operand x) {
  Call call("is_finite", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  return call.emit(kIsFinite, {t});
}

Tensor where(Operand condition, Operand a, Operand b) {
  Call call("where", condition.site());
  const Tensor c = as_bool(call, condition);
  auto [x, y] = promoted(call, a, b);
  const Shape shape = broadcast_shapes(call, {c, x, y}, {"condition", "a", "b"});
  return call.emit(kWhere,
                   {broadcast_to(c, shape), broadcast_to(x, shape), broadcast_to(y, shape)});
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> compare_ops() {
  static constexpr PublicOp all[] = {
      op<less>("less", {"a", "b"}, "a < b, as bool."),
      op<less_equal>("less_equal", {"a", "b"}, "a <= b, as bool."),
      op<greater>("greater", {"a", "b"}, "a > b, as bool."),
      op<greater_equal>("greater_equal", {"a", "b"}, "a >= b, as bool."),
      op<equal>("equal", {"a", "b"}, "a == b, as bool."),
      op<not_equal>("not_equal", {"a", "b"}, "a != b, as bool."),
      op<logical_and>("logical_and", {"a", "b"}, "True where both are true."),
      op<logical_or>("logical_or", {"a", "b"}, "True where one of them is true."),
      op<logical_not>("logical_not", {"x"}, "True where x is false."),
      op<is_finite>("is_finite", {"x"}, "True where x is neither NaN nor infinite."),
      op<where>("where", {"condition", "a", "b"}, "a where the condition is true, b elsewhere."),
  };
  return all;
}

}  // namespace tensorgrad::ops
