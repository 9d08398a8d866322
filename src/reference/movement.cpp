// Primitives that only move elements, and fold, which adds windows back. Most treat their operand
// as [outer, size, inner] around one axis.
#include <algorithm>

#include "reference/evaluate.h"
#include "support/integers.h"

namespace tensorgrad::reference {
namespace {

using ir::Node;

Value reshape(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const Shape& shape = node.as<ir::ShapeAttrs>().shape;
  expect(shape.count() == x.type.shape.count(), node, "{} into {}", x.type.shape.text(),
         shape.text());
  return {{x.type.dtype, shape}, x.data};
}

// Axis d of the result is axis order[d] of x.
Value permute(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const std::vector<int>& order = node.as<ir::OrderAttrs>().order;
  const int rank = x.type.shape.rank();
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  expect(static_cast<int>(order.size()) == rank, node, "{} axes for rank {}", order.size(), rank);
  for (int d = 0; d < rank; ++d)
    expect(sorted[usize(d)] == d, node, "axis {} is missing or repeated", d);
  const PerAxis stride = strides(x.type.shape);
  Shape shape;
  PerAxis step{};
  for (std::size_t d = 0; d < order.size(); ++d) {
    shape.push_back(x.type.shape[order[d]]);
    step[d] = stride[usize(order[d])];
  }
  Value out = make_value(x.type.dtype, shape);
  walk(shape, step, [&](std::int64_t i, std::int64_t place) { out.data[i] = x.data[place]; });
  return out;
}

// Axes are aligned from the right. Missing axes and axes of size 1 are repeated.
Value broadcast_to(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const Shape& from = x.type.shape;
  const Shape& shape = node.as<ir::ShapeAttrs>().shape;
  const int missing = shape.rank() - from.rank();
  expect(missing >= 0, node, "{} to {}", from.text(), shape.text());
  const PerAxis stride = strides(from);
  PerAxis step{};
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == 1) continue;
    expect(from[d] == shape[missing + d], node, "{} to {}", from.text(), shape.text());
    step[usize(missing + d)] = stride[usize(d)];
  }
  Value out = make_value(x.type.dtype, shape);
  walk(shape, step, [&](std::int64_t i, std::int64_t place) { out.data[i] = x.data[place]; });
  return out;
}

Value narrow(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto& [axis, start, length] = node.as<ir::NarrowAttrs>();
  const auto [outer, size, inner] = around(node, x.type.shape, axis);
  expect(start >= 0 && length >= 0 && start + length <= size, node, "{} elements from {} of {}",
         length, start, size);
  Shape shape = x.type.shape;
  shape[axis] = length;
  Value out = make_value(x.type.dtype, shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t r = 0; r < inner; ++r)
        out.data[(o * length + i) * inner + r] = x.data[(o * size + start + i) * inner + r];
  return out;
}

Value pad(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto& [axis, before, after, value] = node.as<ir::PadAttrs>();
  const auto [outer, size, inner] = around(node, x.type.shape, axis);
  expect(before >= 0 && after >= 0, node, "{} before and {} after", before, after);
  const std::int64_t length = before + size + after;
  Shape shape = x.type.shape;
  shape[axis] = length;
  Value out = make_value(x.type.dtype, shape);
  std::fill(out.data.begin(), out.data.end(), number(value, x.type.dtype));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t r = 0; r < inner; ++r)
        out.data[(o * length + before + i) * inner + r] = x.data[(o * size + i) * inner + r];
  return out;
}

Value flip(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto [outer, size, inner] = around(node, x.type.shape, node.as<ir::AxisAttrs>().axis);
  Value out = make_value(x.type.dtype, x.type.shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t r = 0; r < inner; ++r)
        out.data[(o * size + i) * inner + r] = x.data[(o * size + size - 1 - i) * inner + r];
  return out;
}

// Fills the axis of the result from the front, part by part.
Value concat(const Node& node, Inputs in) {
  const int axis = node.as<ir::AxisAttrs>().axis;
  ir::Type type = in[0]->type;
  const auto [outer, first, inner] = around(node, type.shape, axis);
  std::int64_t length = first;
  for (const Value* part : in.subspan(1)) {
    ir::Type same = part->type;
    expect(same.shape.rank() == type.shape.rank(), node, "ranks differ");
    length += same.shape[axis];
    same.shape[axis] = first;
    expect(same == type, node, "{} beside {}", part->type.shape.text(), type.shape.text());
  }
  type.shape[axis] = length;
  Value out = make_value(type.dtype, type.shape);
  std::int64_t start = 0;
  for (const Value* part : in) {
    const std::int64_t size = part->type.shape[axis];
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t r = 0; r < inner; ++r)
          out.data[(o * length + start + i) * inner + r] = part->data[(o * size + i) * inner + r];
    start += size;
  }
  return out;
}

std::int64_t window_count(const Node& node, const ir::WindowAttrs& w) {
  expect(w.size >= 1 && w.stride >= 1 && w.dilation >= 1, node, "size {}, stride {}, dilation {}",
         w.size, w.stride, w.dilation);
  const std::int64_t last = w.length - w.dilation * (w.size - 1) - 1;  // start of the last window
  expect(last >= 0, node, "a window of {} with dilation {} in {} elements", w.size, w.dilation,
         w.length);
  return last / w.stride + 1;
}

// out[..., w, ..., k] = x[..., w * stride + k * dilation, ...]
Value windows(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto& attrs = node.as<ir::WindowAttrs>();
  const auto [outer, length, inner] = around(node, x.type.shape, attrs.axis);
  expect(length == attrs.length, node, "length {} for an axis of {}", attrs.length, length);
  const std::int64_t count = window_count(node, attrs);
  Shape shape = x.type.shape;
  shape[attrs.axis] = count;
  shape.push_back(attrs.size);
  Value out = make_value(x.type.dtype, shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t w = 0; w < count; ++w)
      for (std::int64_t r = 0; r < inner; ++r)
        for (std::int64_t k = 0; k < attrs.size; ++k) {
          const std::int64_t at = w * attrs.stride + k * attrs.dilation;
          out.data[((o * count + w) * inner + r) * attrs.size + k] =
              x.data[(o * length + at) * inner + r];
        }
  return out;
}

// out[..., w * stride + k * dilation, ...] += x[..., w, ..., k]
Value fold(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto& attrs = node.as<ir::WindowAttrs>();
  const std::int64_t count = window_count(node, attrs);
  expect_number(node, x);
  Shape shape = x.type.shape;
  expect(shape.rank() >= 2 && shape.back() == attrs.size, node, "windows of {} in {}", attrs.size,
         shape.text());
  shape.erase(-1);
  const auto [outer, given, inner] = around(node, shape, attrs.axis);
  expect(given == count, node, "{} windows, not {}, along axis {} of {}", given, count, attrs.axis,
         x.type.shape.text());
  shape[attrs.axis] = attrs.length;
  Value out = make_value(x.type.dtype, shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t w = 0; w < count; ++w)
      for (std::int64_t r = 0; r < inner; ++r)
        for (std::int64_t k = 0; k < attrs.size; ++k) {
          const std::int64_t at = w * attrs.stride + k * attrs.dilation;
          double& sum = out.data[(o * attrs.length + at) * inner + r];
          sum = add(x.type.dtype, sum, x.data[((o * count + w) * inner + r) * attrs.size + k]);
        }
  return out;
}

constexpr Evaluation kTable[] = {
    {"reshape", 1, reshape}, {"permute", 1, permute}, {"broadcast_to", 1, broadcast_to},
    {"narrow", 1, narrow},   {"pad", 1, pad},         {"flip", 1, flip},
    {"windows", 1, windows}, {"fold", 1, fold},       {"concat", -1, concat},
};

}  // namespace

std::span<const Evaluation> movement_table() { return kTable; }

}  // namespace tensorgrad::reference
