// Kernels of kind `rows` and `columns`.
#include "kernels/lowering.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::kernels {

using ir::Core;
using ir::IndexMap;
using ir::Load;
using ir::Node;
using ir::NodeId;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;

ir::RowsKernel Lowering::rows() {
  ir::RowsKernel out;
  out.lines = step_.group.lines, out.length = step_.group.length;
  for (const NodeId id : step_.group.nodes)
    if (!inlined(id)) regs_[id] = row_value(out.program, id);
  store_members(out);
  return out;
}

Reg Lowering::row_value(ScalarProgram& p, NodeId id) {
  const bool line = plan_.fused.line[usize(id)];
  switch (graph_[id].op->core) {
    case Core::elementwise:
      return emit(p, id, values(p, id, line), line);
    case Core::reduce:
      return reduction(p, id, value(p, graph_[id].inputs[0], as_is, false));
    case Core::gather:
      return gather(p, id);
    case Core::take:
      return take(p, id);
    case Core::concat:
      return concat(p, id);
    default:
      internal_error("not a row op: {}", ir::print_node(graph_, id));
  }
}

Reg Lowering::reduction(ScalarProgram& p, NodeId id, Reg operand) {
  return p.push({.op = ScalarOp::reduce,
                 .dtype = graph_[id].type.dtype,
                 .a = operand,
                 .node = id,
                 .combine = graph_[id].op->combine,
                 .line = true});
}

// Stores a load or a scalar through a register of its own. Spreads a value per line that is stored
// per element (a copy of a spread).
void Lowering::store_members(ir::LinesKernel& kernel) {
  ScalarProgram& p = kernel.program;
  for (const schedule::Stored& stored : step_.stored) {
    Reg r = regs_.at(stored.node);
    if (p.line(r) && !plan_.fused.line[usize(stored.node)])
      r = p.push({.op = ScalarOp::spread, .dtype = p.dtype(r), .a = r});
    if (!p.line(r) && plan_.fused.line[usize(stored.node)]) {
      // Only a scalar can be both. It becomes a value per line.
      ir::Instr scalar = p.code[usize(r)];
      scalar.line = true;
      r = p.push(scalar);
    }
    kernel.stores.push_back(store_of(stored, r));
  }
}

// [..., D]: row ids[...] of the table.
Reg Lowering::gather(ScalarProgram& p, NodeId id) {
  const Node& node = graph_[id];
  const Shape space = node.type.shape, table_shape = shape_of(node.inputs[0]);
  Load table = operand(id, 0);
  const std::int64_t stride = table.map.stride(0);
  table.map = table.map.narrow(0, 0, 1).reshape({table_shape[1]}).broadcast(space);
  const Reg ids = value(
      p, node.inputs[1],
      [&](const IndexMap& map) {
        Shape with_one = map.shape();
        with_one.push_back(1);
        return map.reshape(with_one).broadcast(space);
      },
      false);
  return indirect(p, id, std::move(table), ids, table_shape[0], stride);
}

Reg Lowering::take(ScalarProgram& p, NodeId id) {
  const Node& node = graph_[id];
  const int axis = node.as<ir::AxisAttrs>().axis;
  Load x = operand(id, 0);
  const std::int64_t stride = x.map.stride(axis);
  x.map = x.map.narrow(axis, 0, 1).broadcast(node.type.shape);
  const Reg ids = value(p, node.inputs[1], as_is, false);
  return indirect(p, id, std::move(x), ids, shape_of(node.inputs[0])[axis], stride);
}

Reg Lowering::indirect(ScalarProgram& p, NodeId id, Load data, Reg ids, std::int64_t extent,
                       std::int64_t stride) {
  const DType dtype = data.dtype;
  const int slot = add(std::move(data));
  return p.push({.op = ScalarOp::gather,
                 .dtype = dtype,
                 .a = ids,
                 .slot = slot,
                 .extent = extent,
                 .stride = stride,
                 .node = id});
}

// Reads each part in its own range of the axis. Outside of that range its value is not used.
Reg Lowering::concat(ScalarProgram& p, NodeId id) {
  const Node& node = graph_[id];
  const int axis = node.as<ir::AxisAttrs>().axis;
  const Shape& space = node.type.shape;
  const std::int64_t total = space[axis];
  Load position;
  position.source = Load::Source::iota;
  position.dtype = DType::i32;
  Shape along;
  for (int d = 0; d < space.rank(); ++d) along.push_back(d == axis ? space[d] : 1);
  position.map = IndexMap::contiguous({total}).reshape(along).broadcast(space);
  const Reg where = p.load(add(position), DType::i32);
  Reg out = -1;
  std::int64_t end = total;
  for (std::size_t i = node.inputs.size(); i-- > 0;) {
    const std::int64_t size = shape_of(node.inputs[i])[axis], start = end - size;
    const Reg part = value(
        p, node.inputs[i],
        [&](const IndexMap& map) { return map.pad(axis, start, total - end, 0); }, false);
    if (out < 0) {
      out = part;
    } else {
      const Reg bound = p.constant(static_cast<double>(end), DType::i32);
      out = p.select(p.compare(ScalarOp::less, where, bound), part, out);
    }
    end = start;
  }
  return out;
}

ir::ColumnsKernel Lowering::columns() {
  ir::ColumnsKernel out;
  out.lines = step_.group.lines, out.length = step_.group.length;
  ScalarProgram& p = out.program;
  for (const NodeId id : step_.group.nodes) {
    if (inlined(id)) continue;
    if (graph_[id].op->core == Core::reduce) {
      const std::vector<int> order = schedule::reduce_shape(graph_, id).order;
      const Reg operand = value(
          p, graph_[id].inputs[0], [&](const IndexMap& map) { return map.permute(order); }, false);
      regs_[id] = reduction(p, id, operand);
    } else {
      regs_[id] = emit(p, id, values(p, id, true), true);
    }
  }
  store_members(out);
  return out;
}

// Copies memory to memory.
ir::RowsKernel Lowering::copy() {
  ir::RowsKernel out;
  out.length = shape_of(step_.copied).count();
  const Load from = make_load(step_.copied, IndexMap::contiguous(shape_of(step_.copied)));
  const Reg r = out.program.load(add(from), from.dtype);
  for (const schedule::Stored& stored : step_.stored) out.stores.push_back(store_of(stored, r));
  return out;
}

}  // namespace tensorgrad::kernels
