// Reductions over axes, argmax and argmin, cumulative sums.
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Combine;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::Type;
using Tensors = std::vector<Tensor>;

Shape without(const Shape& shape, const std::vector<int>& axes, bool keepdims) {
  Shape out;
  std::size_t next = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (next < axes.size() && axes[next] == d) {
      ++next;
      if (keepdims) out.push_back(1);
    } else {
      out.push_back(shape[d]);
    }
  }
  return out;
}

Type reduce_type(std::span<const Type> in, const Attrs& attrs) {
  const auto& axes = std::get<ir::AxesAttrs>(attrs).axes;
  int before = -1;
  for (const int axis : axes) {
    if (axis <= before || axis >= in[0].shape.rank())
      break_rule("", "axes [{}] do not fit: x is {}", fmt::join(axes, ","), in[0].text());
    before = axis;
  }
  if (in[0].dtype == DType::boolean)
    break_rule("cast to tg::i32", "needs i32 or f32: x is {}", in[0].text());
  return {in[0].dtype, without(in[0].shape, axes, false)};
}

// Broadcasts the result, or its gradient, back to the operand's shape.
Tensor spread(const GradientArgs& d, const Tensor& t) {
  const Shape& shape = d.in[0].shape();
  return broadcast_to(reshape(t, without(shape, d.as<ir::AxesAttrs>().axes, true)), shape);
}

constexpr Primitive reduction(std::string_view name, Combine combine,
                              Tensors (*gradient)(const GradientArgs&)) {
  return {.name = name,
          .core = Core::reduce,
          .attrs = ir::attrs_index<ir::AxesAttrs>(),
          .type = reduce_type,
          .combine = combine,
          .gradient = gradient};
}

constexpr Primitive kSum = reduction(
    "reduce_sum", Combine::add, [](const GradientArgs& d) -> Tensors { return {spread(d, d.g)}; });

// All elements equal to the result share the gradient evenly.
Tensors share_among_best(const GradientArgs& d) {
  const Tensor best = cast(equal(d.in[0], spread(d, d.out)), f32);
  const Tensor ties = sum(best, d.as<ir::AxesAttrs>().axes);
  return {best * spread(d, d.g / ties)};
}

constexpr Primitive kMax = reduction("reduce_max", Combine::max, share_among_best);
constexpr Primitive kMin = reduction("reduce_min", Combine::min, share_among_best);

// The gradient of an element is the product of the others. Without zeros it is out/x. With one
// zero, only that element has a gradient; with two or more, none has.
constexpr Primitive kProd =
    reduction("reduce_prod", Combine::mul, [](const GradientArgs& d) -> Tensors {
      const auto& axes = d.as<ir::AxesAttrs>().axes;
      const Tensor zero = equal(d.in[0], 0.0f);
      const Tensor zeros_in_row = spread(d, sum(cast(zero, f32), axes));
      const Tensor filled = where(zero, 1.0f, d.in[0]);
      const Tensor rest = spread(d, prod(filled, axes)) / filled;
      const Tensor alone = logical_and(zero, equal(zeros_in_row, 1.0f));
      const Tensor counts = logical_or(equal(zeros_in_row, 0.0f), alone);
      return {spread(d, d.g) * where(counts, rest, 0.0f)};
    });

constexpr Primitive arg(std::string_view name, Combine combine) {
  return {.name = name,
          .core = Core::arg_reduce,
          .attrs = ir::attrs_index<ir::AxisAttrs>(),
          .type =
              [](std::span<const Type> in, const Attrs& attrs) {
                const int axis = std::get<ir::AxisAttrs>(attrs).axis;
                if (axis < 0 || axis >= in[0].shape.rank())
                  break_rule("", "axis {} does not exist: x is {}", axis, in[0].text());
                if (in[0].dtype == DType::boolean)
                  break_rule("cast to tg::i32", "needs i32 or f32: x is {}", in[0].text());
                if (in[0].shape[axis] == 0)
                  break_rule("", "axis {} is empty: x is {}", axis, in[0].text());
                return Type{DType::i32, without(in[0].shape, {axis}, false)};
              },
          .combine = combine};
}

constexpr Primitive kArgmax = arg("argmax", Combine::max);
constexpr Primitive kArgmin = arg("argmin", Combine::min);

constexpr Primitive kCumsum = {
    .name = "cumsum",
    .core = Core::scan,
    .attrs = ir::attrs_index<ir::CumsumAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const int axis = std::get<ir::CumsumAttrs>(attrs).axis;
          if (axis < 0 || axis >= in[0].shape.rank())
            break_rule("", "axis {} does not exist: x is {}", axis, in[0].text());
          if (in[0].dtype == DType::boolean)
            break_rule("cast to tg::i32", "needs i32 or f32: x is {}", in[0].text());
          return in[0];
        },
    .combine = Combine::add,
    // The gradient is the cumulative sum in the other direction.
    .gradient = [](const GradientArgs& d) -> Tensors {
      const auto& a = d.as<ir::CumsumAttrs>();
      return {a.reverse ? cumsum(d.g, a.axis) : flip(cumsum(flip(d.g, a.axis), a.axis), a.axis)};
    }};

constexpr const Primitive* kFamily[] = {&kSum, &kMax, &kMin, &kProd, &kArgmax, &kArgmin, &kCumsum};

Tensor reduce(std::string_view name, const Primitive& op, const Operand& x, const Axes& axes,
              bool keepdims) {
  Call call(name, x.site());
  Tensor t = call.tensor(x);
  if (t.dtype() == DType::boolean) t = cast(t, i32);
  const std::vector<int> where = call.axes(t, axes);
  if (op.combine == Combine::max || op.combine == Combine::min)
    for (const int axis : where)
      if (t.shape()[axis] == 0)
        call.fail("", "axis {} is empty and has no largest or smallest element: {}", axis,
                  call.describe("x", t));
  if (where.empty()) return t;
  const Tensor out = call.emit(op, {t}, ir::AxesAttrs{where});
  return keepdims ? reshape(out, without(t.shape(), where, true)) : out;
}

Tensor arg_reduce(const Primitive& op, const Operand& x, int axis, bool keepdims) {
  Call call(op.name, x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  const Tensor out = call.emit(op, {t}, ir::AxisAttrs{at});
  return keepdims ? unsqueeze(out, at) : out;
}

}  // namespace

std::span<const Primitive* const> reduce_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor sum(Operand x, Axes axes, bool keepdims) { return reduce("sum", kSum, x, axes, keepdims); }
Tensor max(Operand x, Axes axes, bool keepdims) { return reduce("max", kMax, x, axes, keepdims); }
Tensor min(Operand x, Axes axes, bool keepdims) { return reduce("min", kMin, x, axes, keepdims); }
Tensor prod(Operand x, Axes axes, bool keepdims) {
  return reduce("prod", kProd, x, axes, keepdims);
}
Tensor argmax(Operand x, int axis, bool keepdims) { return arg_reduce(kArgmax, x, axis, keepdims); }
Tensor argmin(Operand x, int axis, bool keepdims) { return arg_reduce(kArgmin, x, axis, keepdims); }

Tensor mean(Operand x, Axes axes, bool keepdims) {
  Call call("mean", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  double n = 1;
  for (const int axis : call.axes(t, axes)) {
    if (t.shape()[axis] == 0)
      call.fail("a batch of at least 1", "axis {} is empty and has no mean: {}", axis,
                call.describe("x", t));
    n *= static_cast<double>(t.shape()[axis]);
  }
  return sum(t, axes, keepdims) / n;
}

Tensor var(Operand x, Axes axes, bool keepdims, int correction) {
  Call call("var", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  double n = 1;
  for (const int axis : call.axes(t, axes)) n *= static_cast<double>(t.shape()[axis]);
  const Tensor centered = t - mean(t, axes, true);
  return sum(centered * centered, axes, keepdims) / std::max(0.0, n - correction);
}

// Passes no gradient where the variance is 0, as PyTorch does: the gradient of sqrt is infinite
// there.
Tensor stddev(Operand x, Axes axes, bool keepdims, int correction) {
  Call call("stddev", x.site());
  const Tensor v = var(x, axes, keepdims, correction), zero = equal(v, 0.0f);
  return where(zero, 0.0f, sqrt(where(zero, 1.0f, v)));
}

Tensor cumsum(Operand x, int axis) {
  Call call("cumsum", x.site());
  Tensor t = call.tensor(x);
  if (t.dtype() == DType::boolean) t = cast(t, i32);
  return call.emit(kCumsum, {t}, ir::CumsumAttrs{call.axis(t, axis), false});
}

Tensor logsumexp(Operand x, Axes axes, bool keepdims) {
  Call call("logsumexp", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  const Tensor top = stop_gradient(max(t, axes, true));
  // A shift of infinity would give inf - inf.
  const Tensor shift = where(is_finite(top), top, 0.0f);
  const Tensor out = log(sum(exp(t - shift), axes, true)) + shift;
  if (keepdims) return out;
  return reshape(out, without(t.shape(), call.axes(t, axes), false));
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> reduce_ops() {
  static constexpr PublicOp all[] = {
      op<sum>("sum", {"x", {"axes", kNothing}, {"keepdims", false}},
              "The sum over the axes; over all of them without axes."),
      op<mean>("mean", {"x", {"axes", kNothing}, {"keepdims", false}},
               "The mean over the axes. An empty axis is an error, not NaN."),
      op<max>("max", {"x", {"axes", kNothing}, {"keepdims", false}},
              "The largest element over the axes. Ties share the gradient evenly."),
      op<min>("min", {"x", {"axes", kNothing}, {"keepdims", false}},
              "The smallest element over the axes. Ties share the gradient evenly."),
      op<prod>("prod", {"x", {"axes", kNothing}, {"keepdims", false}},
               "The product over the axes."),
      op<var>("var", {"x", {"axes", kNothing}, {"keepdims", false}, {"correction", 1}},
              "The variance over the axes. Divides by n - correction."),
      op<stddev>(
          "stddev", {"x", {"axes", kNothing}, {"keepdims", false}, {"correction", 1}},
          "The standard deviation over the axes. The gradient is 0 where all elements are equal."),
      op<argmax>("argmax", {"x", {"axis", -1}, {"keepdims", false}},
                 "The index of the first largest element, i32."),
      op<argmin>("argmin", {"x", {"axis", -1}, {"keepdims", false}},
                 "The index of the first smallest element, i32."),
      op<cumsum>("cumsum", {"x", "axis"}, "The sums of the elements up to each one."),
      op<logsumexp>("logsumexp", {"x", {"axes", kNothing}, {"keepdims", false}},
                    "log(sum(exp(x))) over the axes, without overflow."),
  };
  return all;
}

}  // namespace tensorgrad::ops
