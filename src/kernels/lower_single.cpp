// Kernels of one node: arg_reduce, scan, and sums by id. A fold becomes sums down columns.
#include <algorithm>

#include "kernels/lowering.h"
#include "support/fail.h"

namespace tensorgrad::kernels {

using ir::Core;
using ir::IndexMap;
using ir::Load;
using ir::NodeId;
using ir::Reg;
using ir::ScalarOp;

namespace {

// Rows run along the last axis.
void set_rows(ir::Lines& lines, const Shape& space) {
  lines.length = space.back();
  lines.lines = lines.length ? space.count() / lines.length : 0;
}

// Inserts zeros between the windows of g, so that they are one element apart.
IndexMap with_stride_1(IndexMap map, const ir::WindowAttrs& a, int& axis) {
  if (map.shape().rank() == kMaxRank) {  // the split needs one more axis
    Shape joined{1, map.shape()[axis], 1, a.size};
    for (int d = 0; d < kMaxRank - 1; ++d)
      if (d != axis) joined[d < axis ? 0 : 2] *= map.shape()[d];
    map = map.reshape(joined);
    axis = 1;
  }
  Shape split = map.shape();
  split.insert(axis + 1, 1);
  map = map.reshape(split).pad(axis + 1, 0, a.stride - 1, 0);
  Shape merged = map.shape();
  merged.erase(axis + 1);
  merged[axis] *= a.stride;
  return map.reshape(merged);
}

}  // namespace

ir::Kernel::Core Lowering::single() {
  const NodeId id = step_.group.nodes.back();
  switch (graph_[id].op->core) {
    case Core::arg_reduce:
      return arg_reduce(id);
    case Core::scan:
      return scan(id);
    case Core::segment_sum:
      return segment_sum(id);
    case Core::scatter_add:
      return scatter_add(id);
    case Core::fold:
      return fold(id);
    case Core::attention:
      return attention(id);
    case Core::attention_gradient:
      return attention_gradient(id);
    case Core::selective_scan:
      return selective_scan(id);
    case Core::selective_scan_gradient:
      return selective_scan_gradient(id);
    default:
      internal_error("no kernel for {}", ir::print_node(graph_, id));
  }
}

ir::ArgReduceKernel Lowering::arg_reduce(NodeId id) {
  const int axis = graph_[id].as<ir::AxisAttrs>().axis;
  ir::ArgReduceKernel out;
  out.combine = graph_[id].op->combine;
  set_rows(out, axis_last(IndexMap::contiguous(shape_of(graph_[id].inputs[0])), axis).shape());
  keep_last(out.program, value(
                             out.program, graph_[id].inputs[0],
                             [&](const IndexMap& map) { return axis_last(map, axis); }, false));
  out.store = only_store();
  return out;
}

ir::ScanKernel Lowering::scan(NodeId id) {
  const auto& a = graph_[id].as<ir::CumsumAttrs>();
  ir::ScanKernel out;
  out.reverse = a.reverse;
  out.store_map = axis_last(IndexMap::contiguous(graph_[id].type.shape), a.axis);
  set_rows(out, out.store_map.shape());
  out.store = only_store(value(
      out.program, graph_[id].inputs[0],
      [&](const IndexMap& map) { return axis_last(map, a.axis); }, false));
  return out;
}

ir::SegmentSumKernel Lowering::segment_sum(NodeId id) {
  ir::SegmentSumKernel out;
  out.extent = graph_[id].as<ir::RowsAttrs>().rows;
  const std::int64_t P = shape_of(graph_[id].inputs[1]).count(),
                     D = shape_of(graph_[id].inputs[0]).back();
  out.length = P, out.lines = D;
  Load values = operand(id, 0), ids = operand(id, 1);
  values.map = values.map.reshape({P, D});
  ids.map = ids.map.reshape({P});
  add(std::move(ids));
  add(std::move(values));
  out.store = only_store();
  return out;
}

ir::ScatterAddKernel Lowering::scatter_add(NodeId id) {
  const auto& a = graph_[id].as<ir::ScatterAttrs>();
  ir::ScatterAddKernel out;
  out.extent = a.size;
  out.store_map = axis_last(IndexMap::contiguous(graph_[id].type.shape), a.axis);
  Load values = operand(id, 0), ids = operand(id, 1);
  values.map = axis_last(values.map, a.axis);
  ids.map = axis_last(ids.map, a.axis);
  set_rows(out, values.map.shape());
  add(std::move(ids));
  add(std::move(values));
  out.store = only_store();
  return out;
}

// out[i] = sum over k of g[(i - k*dilation) / stride, k], where the division is exact. This is a
// sum over the last axis of a skewed view of g with zeros between the windows.
ir::ColumnsKernel Lowering::fold(NodeId id) {
  const auto& a = graph_[id].as<ir::WindowAttrs>();
  Load g = operand(id, 0);
  int axis = a.axis;
  IndexMap map = a.stride > 1 ? with_stride_1(g.map, a, axis) : g.map;
  const std::int64_t reach = (a.size - 1) * a.dilation;
  const std::int64_t behind = std::max<std::int64_t>(0, a.length - map.shape()[axis]);
  const int last = map.shape().rank() - 1;
  map = map.pad(axis, reach, behind, 0).skew(axis, last, a.dilation).narrow(axis, reach, a.length);
  // The few taps of a window come first, so that rows are long.
  std::vector<int> order{last};
  for (int d = 0; d < last; ++d) order.push_back(d);
  g.map = map.permute(order);
  ir::ColumnsKernel out;
  out.length = a.size;
  out.lines = graph_[id].type.shape.count();
  const DType dtype = g.dtype;
  const Reg x = out.program.load(add(std::move(g)), dtype);
  const Reg sum = out.program.push({.op = ScalarOp::reduce,
                                    .dtype = dtype,
                                    .a = x,
                                    .node = id,
                                    .combine = ir::Combine::add,
                                    .line = true});
  out.stores = {only_store(sum)};
  return out;
}

}  // namespace tensorgrad::kernels
