// Fused attention: softmax(scale q k^T) v without storing the scores, and its gradient.
#include <cmath>

#include "ir/sequence.h"
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::AttentionShape;
using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::Type;

std::string described(std::span<const Type> in) {
  return fmt::format("q is {}, k is {}, v is {}", in[0].text(), in[1].text(), in[2].text());
}

// Checks and returns the sizes of q, k and v. `cached`: a start operand follows. `operands`
// describes the operands in error messages.
AttentionShape checked_shape(std::span<const Type> in, bool cached, const Attrs& attrs,
                             const std::string& operands) {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  for (int i = 0; i < 3; ++i) fits = fits && in[usize(i)].dtype == DType::f32;
  fits = fits && k[0] == q[0] && v[0] == q[0] && k[3] == q[3] && v[1] == k[1] && v[2] == k[2];
  if (!fits) break_rule("", "needs q [B, H, T, D], k [B, G, S, D], v [B, G, S, V]: {}", operands);
  if (k[1] == 0 || q[1] == 0 ? q[1] != k[1] : q[1] % k[1] != 0)
    break_rule("", "the heads of k must divide those of q: {}", operands);
  if (cached && (in.back().dtype != DType::i32 || in.back().shape.rank() != 0))
    break_rule("", "the start must be one i32 scalar: start is {}", in.back().text());
  const auto& a = std::get<ir::AttentionAttrs>(attrs);
  if (cached && !a.causal)
    break_rule("leave the start out",
               "a start needs causal attention, because it selects the keys that a query sees");
  if (q[3] == 0 || v[3] == 0) break_rule("", "heads must have at least one element: {}", operands);
  AttentionShape shape{.B = q[0],
                       .H = q[1],
                       .G = k[1],
                       .T = q[2],
                       .S = k[2],
                       .D = q[3],
                       .V = v[3],
                       .causal = a.causal,
                       .cached = cached,
                       .scale = a.scale};
  if (shape.causal && !cached && shape.S < shape.T)
    break_rule("", "causal attention needs at least as many keys as queries: {}", operands);
  if (shape.S == 0 && shape.T > 0) break_rule("", "there are no keys to attend to: {}", operands);
  return shape;
}

// Extracts one part, [B, heads, positions, size], of a packed result.
Tensor unpack(const Tensor& packed, const ir::PackedPart& part, std::int64_t B, std::int64_t heads,
              std::int64_t positions, std::int64_t size) {
  const std::int64_t rows = B * positions, width = heads * size;
  // Parts that lie side by side are columns of one matrix; other parts are contiguous.
  const Tensor flat = part.row == width
                          ? narrow(packed, 0, part.offset, rows * width)
                          : narrow(reshape(packed, {rows, part.row}), 1, part.offset, width);
  return permute(reshape(flat, {B, positions, heads, size}), {0, 2, 1, 3});
}

AttentionShape shape_of(const std::vector<Tensor>& in, bool cached, const Attrs& attrs,
                        const std::string& operands = "") {
  std::vector<Type> types;
  for (const Tensor& t : in) types.push_back({t.dtype(), t.shape()});
  return checked_shape(types, cached, attrs, operands);
}

constexpr Primitive kAttentionGradient = {
    .name = "attention_gradient",
    .core = Core::attention_gradient,
    .arity = -1,
    .attrs = ir::attrs_index<ir::AttentionAttrs>(),
    .type = [](std::span<const Type> in, const Attrs& attrs) {
      if (in.size() != 5 && in.size() != 6)
        break_rule("",
                   "needs q, k, v, the result of attention, its gradient, and optionally a start");
      const AttentionShape shape = checked_shape(in, in.size() == 6, attrs, described(in));
      if (in[3] != Type{DType::f32, {shape.result_elements()}} ||
          in[4] != Type{DType::f32, {shape.B, shape.H, shape.T, shape.V}})
        break_rule("", "does not belong to q, k and v: {} and {}", in[3].text(), in[4].text());
      return Type{DType::f32, {shape.gradient_elements()}};
    }};

constexpr Primitive kAttention = {
    .name = "attention",
    .core = Core::attention,
    .arity = -1,
    .attrs = ir::attrs_index<ir::AttentionAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          if (in.size() != 3 && in.size() != 4)
            break_rule("", "needs q, k, v, and optionally a start");
          return Type{DType::f32,
                      {checked_shape(in, in.size() == 4, attrs, described(in)).result_elements()}};
        },
    // Only the rows have a gradient; the log-sum-exp is internal.
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      const AttentionShape s = shape_of(d.in, d.in.size() == 4, d.node.attrs);
      Call call("attention", Site::here());
      std::vector<Tensor> in{d.in[0], d.in[1], d.in[2], d.out,
                             unpack(d.g, s.out(), s.B, s.H, s.T, s.V)};
      if (s.cached) in.push_back(d.in[3]);
      const Tensor packed = call.emit(kAttentionGradient, in, d.node.attrs);
      std::vector<Tensor> out{unpack(packed, s.dq(), s.B, s.H, s.T, s.D),
                              unpack(packed, s.dk(), s.B, s.G, s.S, s.D),
                              unpack(packed, s.dv(), s.B, s.G, s.S, s.V)};
      out.resize(d.in.size());
      return out;
    }};

constexpr const Primitive* kFamily[] = {&kAttention, &kAttentionGradient};

Tensor attend(const Call& call, std::vector<Tensor> in, const AttentionOptions& options) {
  const bool cached = in.size() == 4;
  const double root = std::sqrt(
      static_cast<double>(std::max<std::int64_t>(1, in[0].rank() == 4 ? in[0].size(3) : 1)));
  const Attrs attrs = ir::AttentionAttrs{
      options.causal, options.scale ? static_cast<double>(*options.scale) : 1 / root};
  const std::string operands = fmt::format("{}, {}, {}", call.describe("q", in[0]),
                                           call.describe("k", in[1]), call.describe("v", in[2]));
  try {
    const AttentionShape s = shape_of(in, cached, attrs, operands);
    return unpack(call.emit(kAttention, in, attrs), s.out(), s.B, s.H, s.T, s.V);
  } catch (const BrokenRule& broken) {
    call.fail(broken.hint, "{}", broken.rule);
  }
}

}  // namespace

std::span<const Primitive* const> attention_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor attention(Operand q, Operand k, Operand v, AttentionOptions options) {
  Call call("attention", q.site());
  const Tensor query = call.tensor(q), key = call.tensor(k), value = call.tensor(v);
  return attend(call, {query, key, value}, options);
}

Tensor attention(Operand q, Operand k, Operand v, const Tensor& start, AttentionOptions options) {
  Call call("attention", q.site());
  const Tensor query = call.tensor(q), key = call.tensor(k), value = call.tensor(v),
               first = call.tensor(start);
  return attend(call, {query, key, value, first}, options);
}

Tensor replace_at(Operand x, Operand part, int axis, const Tensor& start) {
  Call call("replace_at", x.site());
  const Tensor t = call.tensor(x), p = call.tensor(part), first = call.tensor(start);
  const int at = call.axis(t, axis);
  Shape wanted = t.shape();
  if (p.rank() == t.rank()) wanted[at] = p.shape()[at];
  if (p.shape() != wanted || p.dtype() != t.dtype())
    call.fail("", "the part must have the type and shape of x, except along one axis: {}, {}",
              call.describe("x", t), call.describe("part", p));
  if (first.dtype() != i32 || first.rank() != 0)
    call.fail("", "the start must be one i32 scalar: {}", call.describe("start", first));
  const std::int64_t size = p.shape()[at];
  if (size == 0) return t;
  Shape along;
  for (int d = 0; d < t.rank(); ++d) along.push_back(d == at ? t.shape()[d] : 1);
  const Tensor place = reshape(arange(t.shape()[at]), along) - first;
  const Tensor inside = logical_and(place >= 0, place < size);
  const Tensor moved =
      size == 1 ? p
                : take_along_axis(p, minimum(maximum(place, 0), static_cast<int>(size - 1)), at);
  return where(inside, moved, t);
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> attention_ops() {
  static constexpr PublicOp all[] = {
      op(
          "attention",
          [](Operand q, Operand k, Operand v, bool causal, std::optional<float> scale,
             std::optional<Operand> start) {
            const AttentionOptions options{.causal = causal, .scale = scale};
            if (!start) return attention(q, k, v, options);
            return attention(q, k, v, TensorAccess::tensor(*start), options);
          },
          {"q", "k", "v", {"causal", true}, {"scale", kNothing}, {"start", kNothing}},
          "softmax(scale q k^T) v, for q [B, H, T, D], k [B, G, S, D], v [B, G, S, V]. G divides "
          "H. The scale is 1/sqrt(D) by default. With start, an i32 scalar, query t sees keys 0 .. "
          "start + t."),
      op(
          "replace_at",
          [](Operand x, Operand part, int axis, Operand start) {
            return replace_at(x, part, axis, TensorAccess::tensor(start));
          },
          {"x", "part", "axis", "start"},
          "x with elements start .. of one axis replaced by part. What falls outside is dropped."),
  };
  return all;
}

}  // namespace tensorgrad::ops
