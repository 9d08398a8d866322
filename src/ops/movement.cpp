// Movement ops: views, which are index maps, and concat. Nothing here computes.
#include <algorithm>
#include <numeric>

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
using ir::IndexMap;
using ir::Primitive;
using ir::Type;
using Tensors = std::vector<Tensor>;

void check_axis(const Type& x, int axis) {
  if (axis < 0 || axis >= x.shape.rank())
    break_rule("", "axis {} does not exist: x is {}", axis, x.text());
}

constexpr Primitive kReshape = {
    .name = "reshape",
    .id = ir::OpId::reshape,
    .core = Core::view,
    .attrs = ir::attrs_index<ir::ShapeAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const Shape& shape = std::get<ir::ShapeAttrs>(attrs).shape;
          if (shape.count() != in[0].shape.count())
            break_rule(
                "", "the number of elements differs: x is {}, the new shape is {} ({} against {})",
                in[0].text(), shape.text(), in[0].shape.count(), shape.count());
          return Type{in[0].dtype, shape};
        },
    .view = [](const IndexMap& in,
               const Attrs& attrs) { return in.reshape(std::get<ir::ShapeAttrs>(attrs).shape); },
    .gradient = [](const GradientArgs& d) -> Tensors { return {reshape(d.g, d.in[0].shape())}; }};

constexpr Primitive kPermute = {
    .name = "permute",
    .id = ir::OpId::permute,
    .core = Core::view,
    .attrs = ir::attrs_index<ir::OrderAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& order = std::get<ir::OrderAttrs>(attrs).order;
          std::vector<int> sorted = order;
          std::sort(sorted.begin(), sorted.end());
          bool ok = static_cast<int>(order.size()) == in[0].shape.rank();
          for (std::size_t i = 0; ok && i < sorted.size(); ++i)
            ok = sorted[i] == static_cast<int>(i);
          if (!ok)
            break_rule("", "the order must name every axis once: x is {}, the order is [{}]",
                       in[0].text(), fmt::join(order, ","));
          Type out{in[0].dtype, {}};
          for (const int axis : order) out.shape.push_back(in[0].shape[axis]);
          return out;
        },
    .view = [](const IndexMap& in,
               const Attrs& attrs) { return in.permute(std::get<ir::OrderAttrs>(attrs).order); },
    .gradient = [](const GradientArgs& d) -> Tensors {
      const auto& order = d.as<ir::OrderAttrs>().order;
      std::vector<int> inverse(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) inverse[usize(order[i])] = static_cast<int>(i);
      return {permute(d.g, inverse)};
    }};

constexpr Primitive kBroadcast = {
    .name = "broadcast_to",
    .id = ir::OpId::broadcast_to,
    .core = Core::view,
    .attrs = ir::attrs_index<ir::ShapeAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const Shape& to = std::get<ir::ShapeAttrs>(attrs).shape;
          const Shape& from = in[0].shape;
          bool ok = to.rank() >= from.rank();
          for (int d = 1; ok && d <= from.rank(); ++d) ok = from[-d] == to[-d] || from[-d] == 1;
          if (!ok) break_rule("", "{} does not broadcast to {}", in[0].text(), to.text());
          return Type{in[0].dtype, to};
        },
    .view = [](const IndexMap& in,
               const Attrs& attrs) { return in.broadcast(std::get<ir::ShapeAttrs>(attrs).shape); },
    // Sums over the broadcast axes.
    .gradient = [](const GradientArgs& d) -> Tensors {
      const Shape &from = d.in[0].shape(), &to = d.out.shape();
      std::vector<int> repeated;
      for (int axis = 0; axis < to.rank(); ++axis) {
        const int own = axis - (to.rank() - from.rank());
        if (own < 0 || (from[own] == 1 && to[axis] != 1)) repeated.push_back(axis);
      }
      return {reshape(repeated.empty() ? d.g : sum(d.g, repeated), from)};
    }};

constexpr Primitive kNarrow = {
    .name = "narrow",
    .id = ir::OpId::narrow,
    .core = Core::view,
    .attrs = ir::attrs_index<ir::NarrowAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& a = std::get<ir::NarrowAttrs>(attrs);
          check_axis(in[0], a.axis);
          const std::int64_t size = in[0].shape[a.axis];
          if (a.start < 0 || a.length < 0 || a.start > size || a.length > size - a.start)
            break_rule("", "start {} and length {} do not fit into axis {}: x is {}", a.start,
                       a.length, a.axis, in[0].text());
          Type out = in[0];
          out.shape[a.axis] = a.length;
          return out;
        },
    .view =
        [](const IndexMap& in, const Attrs& attrs) {
          const auto& a = std::get<ir::NarrowAttrs>(attrs);
          return in.narrow(a.axis, a.start, a.length);
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      const auto& a = d.as<ir::NarrowAttrs>();
      return {pad(d.g, a.axis, a.start, d.in[0].shape()[a.axis] - a.start - a.length)};
    }};

constexpr Primitive kPad = {
    .name = "pad",
    .id = ir::OpId::pad,
    .core = Core::view,
    .attrs = ir::attrs_index<ir::PadAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& a = std::get<ir::PadAttrs>(attrs);
          check_axis(in[0], a.axis);
          if (a.before < 0 || a.after < 0)
            break_rule("use narrow to cut", "padding must not be negative: {} before, {} after",
                       a.before, a.after);
          if (std::max(a.before, a.after) >= std::int64_t{1} << 40)
            break_rule("", "padding must be below 2^40: {} before, {} after", a.before, a.after);
          if (in[0].dtype != DType::f32 && !(a.value >= -0x1p31 && a.value < 0x1p31))
            break_rule("", "{} does not fit {}", a.value, name(in[0].dtype));
          Type out = in[0];
          out.shape[a.axis] += a.before + a.after;
          return out;
        },
    .view =
        [](const IndexMap& in, const Attrs& attrs) {
          const auto& a = std::get<ir::PadAttrs>(attrs);
          return in.pad(a.axis, a.before, a.after, a.value);
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      const auto& a = d.as<ir::PadAttrs>();
      return {narrow(d.g, a.axis, a.before, d.in[0].shape()[a.axis])};
    }};

constexpr Primitive kFlip = {
    .name = "flip",
    .core = Core::view,
    .attrs = ir::attrs_index<ir::AxisAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          check_axis(in[0], std::get<ir::AxisAttrs>(attrs).axis);
          return in[0];
        },
    .view = [](const IndexMap& in,
               const Attrs& attrs) { return in.flip(std::get<ir::AxisAttrs>(attrs).axis); },
    .gradient = [](const GradientArgs& d) -> Tensors {
      return {flip(d.g, d.as<ir::AxisAttrs>().axis)};
    }};

// The identity; blocks the gradient.
constexpr Primitive kStopGradient = {
    .name = "stop_gradient",
    .id = ir::OpId::stop_gradient,
    .core = Core::view,
    .type = [](std::span<const Type> in, const Attrs&) { return in[0]; },
    .view = [](const IndexMap& in, const Attrs&) { return in; }};

// The identity, computed: stores a view in memory. Only passes create it, after differentiation.
constexpr Primitive kCopy = {
    .name = "copy",
    .id = ir::OpId::copy,
    .type = [](std::span<const Type> in, const Attrs&) { return in[0]; },
    .scalar = [](ir::ScalarProgram&, std::span<const ir::Reg> in, const Attrs&) { return in[0]; }};

constexpr Primitive kConcat = {.name = "concat",
                               .id = ir::OpId::concat,
                               .core = Core::concat,
                               .arity = -1,
                               .attrs = ir::attrs_index<ir::AxisAttrs>(),
                               .type =
                                   [](std::span<const Type> in, const Attrs& attrs) {
                                     const int axis = std::get<ir::AxisAttrs>(attrs).axis;
                                     check_axis(in[0], axis);
                                     Type out = in[0];
                                     out.shape[axis] = 0;
                                     for (const Type& t : in) {
                                       Type same = t;
                                       if (t.shape.rank() == out.shape.rank())
                                         same.shape[axis] = 0, out.shape[axis] += t.shape[axis];
                                       Type first = in[0];
                                       first.shape[axis] = 0;
                                       if (!(same == first))
                                         break_rule("",
                                                    "parts differ outside axis {}: {} against {}",
                                                    axis, in[0].text(), t.text());
                                     }
                                     return out;
                                   },
                               .gradient = [](const GradientArgs& d) -> Tensors {
                                 const int axis = d.as<ir::AxisAttrs>().axis;
                                 Tensors out;
                                 std::int64_t start = 0;
                                 for (const Tensor& part : d.in) {
                                   out.push_back(narrow(d.g, axis, start, part.shape()[axis]));
                                   start += part.shape()[axis];
                                 }
                                 return out;
                               }};

constexpr const Primitive* kFamily[] = {&kReshape, &kPermute,      &kBroadcast, &kNarrow, &kPad,
                                        &kFlip,    &kStopGradient, &kCopy,      &kConcat};

}  // namespace

std::span<const Primitive* const> movement_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor reshape(Operand x, const std::vector<std::int64_t>& sizes) {
  Call call("reshape", x.site());
  const Tensor t = call.tensor(x);
  std::int64_t known = 1;
  int free = -1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < -1) call.fail("", "sizes must not be negative: [{}]", fmt::join(sizes, ","));
    if (sizes[d] >= 0) {
      known *= sizes[d];
    } else {
      if (free >= 0) call.fail("", "only one size may be -1: [{}]", fmt::join(sizes, ","));
      free = static_cast<int>(d);
    }
  }
  std::vector<std::int64_t> full = sizes;
  if (static_cast<int>(full.size()) > kMaxRank)
    call.fail("", "at most {} axes: [{}]", kMaxRank, fmt::join(sizes, ","));
  if (free >= 0) {
    if (known == 0 || t.count() % known != 0)
      call.fail("", "no size fits the -1: {}, the new shape is [{}]", call.describe("x", t),
                fmt::join(sizes, ","));
    full[usize(free)] = t.count() / known;
  }
  const Shape shape(full);
  return t.shape() == shape ? t : call.emit(kReshape, {t}, ir::ShapeAttrs{shape});
}

Tensor permute(Operand x, const std::vector<int>& order) {
  Call call("permute", x.site());
  const Tensor t = call.tensor(x);
  std::vector<int> axes;
  for (const int axis : order) axes.push_back(call.axis(t, axis));
  if (std::is_sorted(axes.begin(), axes.end()) && static_cast<int>(axes.size()) == t.rank() &&
      std::adjacent_find(axes.begin(), axes.end()) == axes.end())
    return t;
  return call.emit(kPermute, {t}, ir::OrderAttrs{axes});
}

Tensor swap_axes(Operand x, int a, int b) {
  Call call("swap_axes", x.site());
  const Tensor t = call.tensor(x);
  std::vector<int> order(usize(t.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[usize(call.axis(t, a))], order[usize(call.axis(t, b))]);
  return permute(t, order);
}

Tensor broadcast_to(Operand x, const Shape& shape) {
  Call call("broadcast_to", x.site());
  const Tensor t = call.tensor(x);
  return t.shape() == shape ? t : call.emit(kBroadcast, {t}, ir::ShapeAttrs{shape});
}

Tensor narrow(Operand x, int axis, std::int64_t start, std::int64_t length) {
  Call call("narrow", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  if (start == 0 && length == t.shape()[at]) return t;
  return call.emit(kNarrow, {t}, ir::NarrowAttrs{at, start, length});
}

std::vector<Tensor> split(Operand x, int sections, int axis) {
  Call call("split", x.site());
  const Tensor t = call.tensor(x);
  const std::int64_t size = t.shape()[call.axis(t, axis)];
  if (sections < 1 || size % sections != 0)
    call.fail("", "axis {} does not divide into {} sections: {}", axis, sections,
              call.describe("x", t));
  return split(t, std::vector<std::int64_t>(usize(sections), size / sections), axis);
}

std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& sizes, int axis) {
  Call call("split", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != t.shape()[at])
    call.fail("", "the sizes [{}] do not add up to axis {}: {}", fmt::join(sizes, ","), axis,
              call.describe("x", t));
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(narrow(t, at, start, size));
    start += size;
  }
  return parts;
}

Tensor concat(Operands parts, int axis) {
  Call call("concat", parts.site());
  if (parts.items().empty()) call.fail("", "needs at least one part");
  std::vector<Tensor> tensors;
  DType dtype = DType::boolean;
  for (const Operand& part : parts.items()) {
    tensors.push_back(call.tensor(part));
    dtype = promote(dtype, tensors.back().dtype());
  }
  const int at = call.axis(tensors[0], axis);
  if (tensors.size() == 1) return tensors[0];
  for (Tensor& t : tensors) t = cast(t, dtype);
  return call.emit(kConcat, tensors, ir::AxisAttrs{at});
}

Tensor stack(Operands parts, int axis) {
  Call call("stack", parts.site());
  if (parts.items().empty()) call.fail("", "needs at least one part");
  std::vector<Tensor> tensors;
  for (const Operand& part : parts.items()) {
    const Tensor t = call.tensor(part);
    if (!tensors.empty() && t.shape() != call.tensor(parts.items()[0]).shape())
      call.fail("", "parts differ in shape: {}, {}",
                call.describe("the first", call.tensor(parts.items()[0])),
                call.describe("another", t));
    tensors.push_back(unsqueeze(t, call.axis(t, axis, 1)));
  }
  return concat(tensors, call.axis(tensors[0], axis));
}

Tensor unsqueeze(Operand x, int axis) {
  Call call("unsqueeze", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis, 1);
  if (t.rank() == kMaxRank) call.fail("", "at most {} axes: {}", kMaxRank, call.describe("x", t));
  Shape shape = t.shape();
  shape.insert(at, 1);
  return reshape(t, shape);
}

Tensor squeeze(Operand x, int axis) {
  Call call("squeeze", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  if (t.shape()[at] != 1)
    call.fail("", "axis {} is not of size 1: {}", axis, call.describe("x", t));
  Shape shape = t.shape();
  shape.erase(at);
  return reshape(t, shape);
}

Tensor flip(Operand x, Axes axes) {
  Call call("flip", x.site());
  Tensor t = call.tensor(x);
  for (const int axis : call.axes(t, axes)) t = call.emit(kFlip, {t}, ir::AxisAttrs{axis});
  return t;
}

Tensor pad(Operand x, int axis, std::int64_t before, std::int64_t after, PadMode mode,
           float value) {
  Call call("pad", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  if (before == 0 && after == 0) return t;
  if (mode == PadMode::constant)
    return call.emit(kPad, {t}, ir::PadAttrs{at, before, after, value});
  const std::int64_t size = t.shape()[at], most = mode == PadMode::reflect ? size - 1 : size;
  if (before < 0 || after < 0 || before > most || after > most)
    call.fail("", "{} padding of {} and {} needs 0 to {} elements: {}",
              mode == PadMode::reflect ? "reflect" : "circular", before, after, most,
              call.describe("x", t));
  std::vector<Tensor> parts;
  if (mode == PadMode::reflect) {
    if (before) parts.push_back(flip(narrow(t, at, 1, before), at));
    parts.push_back(t);
    if (after) parts.push_back(flip(narrow(t, at, size - 1 - after, after), at));
  } else {
    if (before) parts.push_back(narrow(t, at, size - before, before));
    parts.push_back(t);
    if (after) parts.push_back(narrow(t, at, 0, after));
  }
  return concat(parts, at);
}

// Without a batch axis, the batch is 1.
Tensor split_heads(Operand x, int heads) {
  Call call("split_heads", x.site());
  const Tensor t = call.tensor(x);
  if (t.rank() < 2 || t.rank() > 3 || heads < 1 || t.size(-1) % heads != 0)
    call.fail("", "needs [B, T, H*D] or [T, H*D] with H = {}: {}", heads, call.describe("x", t));
  if (t.rank() == 2) return squeeze(split_heads(unsqueeze(t, 0), heads), 0);
  return permute(reshape(t, {t.size(0), t.size(1), heads, t.size(2) / heads}), {0, 2, 1, 3});
}

Tensor merge_heads(Operand x) {
  Call call("merge_heads", x.site());
  const Tensor t = call.tensor(x);
  if (t.rank() < 3 || t.rank() > 4)
    call.fail("", "needs [B, H, T, D] or [H, T, D]: {}", call.describe("x", t));
  if (t.rank() == 3) return squeeze(merge_heads(unsqueeze(t, 0)), 0);
  return reshape(permute(t, {0, 2, 1, 3}), {t.size(0), t.size(2), t.size(1) * t.size(3)});
}

Tensor stop_gradient(Operand x) {
  Call call("stop_gradient", x.site());
  return call.emit(kStopGradient, {call.tensor(x)});
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> movement_ops() {
  static constexpr PublicOp all[] = {
      op<reshape>("reshape", {"x", "shape"},
                  "The elements in another shape. One size may be -1: it is inferred."),
      op<permute>("permute", {"x", "order"}, "The axes in another order."),
      op<swap_axes>("swap_axes", {"x", "a", "b"}, "Exchanges two axes."),
      op<broadcast_to>("broadcast_to", {"x", "shape"},
                       "Repeats axes of size 1, and adds axes in front."),
      op<narrow>("narrow", {"x", "axis", "start", "length"},
                 "The elements start .. start + length - 1 of one axis."),
      op(
          "split",
          [](Operand x, std::optional<int> sections, std::optional<Integers> sizes, int axis) {
            if (sections.has_value() == sizes.has_value())
              fail_in_call("split", "needs either sections or sizes", x.site());
            return sections ? split(x, *sections, axis) : split(x, *sizes, axis);
          },
          {"x", {"sections", kNothing}, {"sizes", kNothing}, {"axis", -1}},
          "Cuts one axis into equal sections, or into parts of these sizes. Returns several "
          "tensors."),
      op<concat>("concat", {"parts", {"axis", 0}}, "Joins tensors along an axis."),
      op<stack>("stack", {"parts", {"axis", 0}}, "Joins tensors along a new axis."),
      op<pad>(
          "pad", {"x", "axis", "before", "after", {"mode", "constant"}, {"value", 0.0}},
          "Adds elements before and after one axis: a constant, or by reflection, or circularly."),
      op<flip>("flip", {"x", "axes"}, "Reverses the order of the elements along the axes."),
      op<unsqueeze>("unsqueeze", {"x", "axis"}, "Adds an axis of size 1."),
      op<squeeze>("squeeze", {"x", "axis"}, "Removes an axis of size 1."),
      op<split_heads>("split_heads", {"x", "heads"},
                      "[B, T, H*D] -> [B, H, T, D]. The batch axis is optional."),
      op<merge_heads>("merge_heads", {"x"},
                      "[B, H, T, D] -> [B, T, H*D]. The batch axis is optional."),
      op<stop_gradient>("stop_gradient", {"x"}, "x, without passing a gradient to it."),
  };
  return all;
}

}  // namespace tensorgrad::ops
