// Indexing by i32 ids: rows of a table, elements along an axis, and their gradients. The gradients
// add in the order of the ids, so that every run gives the same result.
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;
using ir::Type;
using Tensors = std::vector<Tensor>;

Tensor segment_sum(const Tensor& values, const Tensor& ids, std::int64_t rows);
Tensor scatter_add(const Tensor& values, const Tensor& ids, int axis, std::int64_t size);

void require_ids(const Type& ids) {
  if (ids.dtype != DType::i32)
    break_rule("cast(ids, tg::i32)?", "ids must be i32: ids is {}", ids.text());
}

// table [V, D], ids [...] -> [..., D]
constexpr Primitive kEmbedding = {
    .name = "embedding",
    .core = Core::gather,
    .arity = 2,
    .type =
        [](std::span<const Type> in, const Attrs&) {
          if (in[0].shape.rank() != 2)
            break_rule("", "the table must be [V, D]: table is {}", in[0].text());
          require_ids(in[1]);
          Type out{in[0].dtype, in[1].shape};
          if (out.shape.rank() == kMaxRank)
            break_rule("", "at most {} axes: ids is {}", kMaxRank - 1, in[1].text());
          out.shape.push_back(in[0].shape[1]);
          return out;
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      return {segment_sum(d.g, d.in[1], d.in[0].shape()[0]), {}};
    }};

// values [..., D], ids [...] -> [rows, D]: row r is the sum of the values whose id is r
constexpr Primitive kSegmentSum = {
    .name = "segment_sum",
    .core = Core::segment_sum,
    .arity = 2,
    .attrs = ir::attrs_index<ir::RowsAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          require_ids(in[1]);
          Shape rows = in[0].shape;
          if (rows.rank() > 0) rows.erase(-1);
          if (in[0].dtype != DType::f32 || in[0].shape.rank() == 0 || rows != in[1].shape)
            break_rule("", "needs values [..., D] and ids [...]: values is {}, ids is {}",
                       in[0].text(), in[1].text());
          return Type{DType::f32, {std::get<ir::RowsAttrs>(attrs).rows, in[0].shape.back()}};
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      return {embedding(d.g, d.in[1]), {}};
    }};

void same_but_axis(const Type& x, const Type& ids, int axis) {
  require_ids(ids);
  bool ok = x.shape.rank() == ids.shape.rank() && axis >= 0 && axis < x.shape.rank();
  for (int d = 0; ok && d < x.shape.rank(); ++d) ok = d == axis || x.shape[d] == ids.shape[d];
  if (!ok)
    break_rule("", "shapes differ outside axis {}: x is {}, ids is {}", axis, x.text(), ids.text());
}

constexpr Primitive kTake = {
    .name = "take_along_axis",
    .core = Core::take,
    .arity = 2,
    .attrs = ir::attrs_index<ir::AxisAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          same_but_axis(in[0], in[1], std::get<ir::AxisAttrs>(attrs).axis);
          return Type{in[0].dtype, in[1].shape};
        },
    // With one id per row, the gradient is a comparison instead of a scatter, and no one-hot is
    // stored.
    .gradient = [](const GradientArgs& d) -> Tensors {
      const int axis = d.as<ir::AxisAttrs>().axis;
      const std::int64_t size = d.in[0].shape()[axis];
      if (d.in[1].shape()[axis] != 1) return {scatter_add(d.g, d.in[1], axis, size), {}};
      std::vector<std::int64_t> along(usize(d.g.rank()), 1);
      along[usize(axis)] = size;
      return {where(equal(reshape(arange(size), along), d.in[1]), d.g, 0.0f), {}};
    }};

constexpr Primitive kScatterAdd = {
    .name = "scatter_add",
    .core = Core::scatter_add,
    .arity = 2,
    .attrs = ir::attrs_index<ir::ScatterAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& a = std::get<ir::ScatterAttrs>(attrs);
          require_ids(in[1]);
          if (in[0].dtype != DType::f32 || in[0].shape != in[1].shape || a.axis < 0 ||
              a.axis >= in[0].shape.rank() || a.size < 0)
            break_rule("", "needs values and ids of one shape: values is {}, ids is {}",
                       in[0].text(), in[1].text());
          Type out = in[0];
          out.shape[a.axis] = a.size;
          return out;
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      return {take_along_axis(d.g, d.in[1], d.as<ir::ScatterAttrs>().axis), {}};
    }};

constexpr Primitive kCheckIndex = {
    .name = "check_index",
    .arity = 1,
    .attrs = ir::attrs_index<ir::CheckAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs&) {
          require_ids(in[0]);
          return in[0];
        },
    .scalar =
        [](ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) {
          return p.push({.op = ScalarOp::check_index,
                         .dtype = DType::i32,
                         .a = in[0],
                         .extent = std::get<ir::CheckAttrs>(attrs).size});
        }};

constexpr const Primitive* kFamily[] = {&kEmbedding, &kSegmentSum, &kTake, &kScatterAdd,
                                        &kCheckIndex};

Tensor segment_sum(const Tensor& values, const Tensor& ids, std::int64_t rows) {
  Call call("segment_sum", {});
  return call.emit(kSegmentSum, {values, ids}, ir::RowsAttrs{rows});
}

Tensor scatter_add(const Tensor& values, const Tensor& ids, int axis, std::int64_t size) {
  Call call("scatter_add", {});
  return call.emit(kScatterAdd, {values, ids}, ir::ScatterAttrs{axis, size});
}

}  // namespace

std::span<const Primitive* const> gather_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor embedding(Operand table, Operand ids) {
  Call call("embedding", table.site());
  const Tensor t = call.tensor(table), i = call.tensor(ids, i32);
  return call.emit(kEmbedding, {t, i});
}

Tensor take_along_axis(Operand x, Operand ids, int axis) {
  Call call("take_along_axis", x.site());
  const Tensor t = call.tensor(x), i = call.tensor(ids, i32);
  if (t.rank() != i.rank())
    call.fail("", "the operands must have the same rank: {}, {}", call.describe("x", t),
              call.describe("ids", i));
  const int at = call.axis(t, axis);
  Shape shape_x = t.shape(), shape_i = i.shape();
  for (int d = 0; d < t.rank(); ++d) {
    if (d == at) continue;
    if (shape_x[d] == 1) shape_x[d] = shape_i[d];
    if (shape_i[d] == 1) shape_i[d] = shape_x[d];
    if (shape_x[d] != shape_i[d])
      call.fail("", "shapes do not broadcast outside axis {}: {}, {}", axis, call.describe("x", t),
                call.describe("ids", i));
  }
  return call.emit(kTake, {broadcast_to(t, shape_x), broadcast_to(i, shape_i)}, ir::AxisAttrs{at});
}

Tensor gather(Operand x, int axis, Operand ids) {
  Call call("gather", x.site());
  Tensor t = call.tensor(x);
  const Tensor i = call.tensor(ids, i32);
  if (t.rank() != i.rank())
    call.fail("", "the operands must have the same rank: {}, {}", call.describe("x", t),
              call.describe("ids", i));
  const int at = call.axis(t, axis);
  for (int d = 0; d < t.rank(); ++d) {
    if (d == at) continue;
    if (i.shape()[d] > t.shape()[d])
      call.fail("", "axis {} of ids is larger than that of x: {}, {}", d, call.describe("x", t),
                call.describe("ids", i));
    t = narrow(t, d, 0, i.shape()[d]);
  }
  return call.emit(kTake, {t, i}, ir::AxisAttrs{at});
}

Tensor one_hot(Operand ids, std::int64_t depth, DType dtype) {
  Call call("one_hot", ids.site());
  const Tensor i = call.tensor(ids, i32);
  call.require_i32("ids", i);
  if (depth < 1) call.fail("", "the depth must be at least 1: {}", depth);
  const Tensor checked = call.emit(kCheckIndex, {i}, ir::CheckAttrs{depth});
  return cast(equal(unsqueeze(checked, -1), arange(depth)), dtype);
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> gather_ops() {
  static constexpr PublicOp all[] = {
      op<embedding>("embedding", {"table", "ids"},
                    "Row ids[...] of a table [V, D] for each id: [..., D]."),
      op<gather>(
          "gather", {"x", "axis", "ids"},
          "x[..., ids[..., k, ...], ...] along one axis. The other axes of ids are no larger than "
          "those of x."),
      op<take_along_axis>("take_along_axis", {"x", "ids", "axis"},
                          "Like gather, but all other axes must match or broadcast."),
      op<one_hot>("one_hot", {"ids", "depth", {"dtype", "f32"}},
                  "1 at the id and 0 elsewhere, along a new last axis of size depth."),
  };
  return all;
}

}  // namespace tensorgrad::ops
