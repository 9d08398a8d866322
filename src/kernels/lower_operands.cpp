// Reads operands: memory through index maps, inlined nodes as instructions of the program.
#include "kernels/lowering.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::kernels {

using ir::Core;
using ir::IndexMap;
using ir::Instr;
using ir::Load;
using ir::Node;
using ir::NodeId;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;

IndexMap axis_last(const IndexMap& map, int axis) {
  std::vector<int> order;
  for (int d = 0; d < map.shape().rank(); ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  return map.permute(order);
}

void keep_last(ScalarProgram& program, Reg value) {
  if (value == static_cast<Reg>(program.code.size()) - 1) return;
  program.code.push_back(program.code[usize(value)]);
}

Reg Lowering::value(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
  views_.clear();
  memo_.clear();
  return visit(program, id, finish, line);
}

std::vector<Reg> Lowering::values(ScalarProgram& program, NodeId id, bool line) {
  std::vector<Reg> out;
  for (const NodeId input : graph_[id].inputs) out.push_back(value(program, input, as_is, line));
  return out;
}

// `views_` are the views above the node, the nearest last.
Reg Lowering::visit(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
  const Node& node = graph_[id];
  if (node.op->core == Core::view) {
    views_.push_back(id);
    const Reg r = visit(program, node.inputs[0], finish, line);
    views_.pop_back();
    return r;
  }
  if (schedule::computes(node) && inlined(id)) {
    const std::pair key(id, views_);
    if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
    std::vector<Reg> regs;
    for (const NodeId input : node.inputs) regs.push_back(visit(program, input, finish, line));
    return memo_[key] = emit(program, id, regs, line);
  }
  if (const auto own = regs_.find(id); own != regs_.end()) return own->second;
  return load(program, id, finish, line);
}

// Computes the node's value from its operands, per line or per element like the node. (Scalars
// count as both kinds, so an op on scalars and lines could otherwise get the wrong kind.)
Reg Lowering::emit(ScalarProgram& program, NodeId id, const std::vector<Reg>& regs, bool line) {
  const std::size_t before = program.code.size();
  Reg r = graph_[id].op->scalar(program, regs, graph_[id].attrs);
  for (std::size_t i = before; i < program.code.size(); ++i) {
    program.code[i].node = id;
    if (line && program.code[i].op != ScalarOp::constant) program.code[i].line = true;
  }
  if (!line && program.line(r))
    r = program.push({.op = ScalarOp::spread, .dtype = program.dtype(r), .a = r});
  return r;
}

IndexMap Lowering::map_of(NodeId id) const {
  IndexMap map = IndexMap::contiguous(shape_of(id));
  for (auto view = views_.rbegin(); view != views_.rend(); ++view)
    map = graph_[*view].op->view(map, graph_[*view].attrs);
  return map;
}

Load Lowering::make_load(NodeId id, IndexMap map) const {
  Load out;
  out.dtype = graph_[id].type.dtype;
  out.map = std::move(map);
  if (graph_[id].op->core == Core::constant) {
    out.source = Load::Source::constant;
    out.value = graph_[id].as<ir::ConstantAttrs>().value;
  } else if (graph_[id].op->core == Core::iota) {
    out.source = Load::Source::iota;
  } else if (const auto& place = plan_.places[usize(id)]) {
    out.place = *place;
    out.elements = shape_of(id).count();
  } else {
    internal_error("a kernel reads a value that is not in memory: {}", ir::print_node(graph_, id));
  }
  return out;
}

Reg Lowering::load(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
  const Load made = make_load(id, finish(map_of(id)));
  if (made.source == Load::Source::constant && made.map.is_strided())
    return program.constant(made.value, made.dtype);
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instr& instr = program.code[i];
    if (instr.op != ScalarOp::load || instr.line != line) continue;
    const Load& other = loads_[usize(instr.slot)];
    if (other.source == made.source && other.place == made.place && other.value == made.value &&
        other.dtype == made.dtype && other.map == made.map)
      return static_cast<Reg>(i);
  }
  return program.push({.op = ScalarOp::load, .dtype = made.dtype, .slot = add(made), .line = line});
}

int Lowering::add(Load made) {
  loads_.push_back(std::move(made));
  return static_cast<int>(loads_.size()) - 1;
}

// An operand that is memory (or a scalar) seen through views, without a program.
Load Lowering::operand(NodeId node, std::size_t i) const {
  const schedule::Operand seen = schedule::operand_of(graph_, graph_[node].inputs[i]);
  return make_load(seen.base, seen.map);
}

ir::Store Lowering::store_of(const schedule::Stored& stored, Reg value) const {
  const ir::Type& type = graph_[stored.node].type;
  return {.place = stored.place,
          .elements = type.shape.count(),
          .dtype = type.dtype,
          .value = value,
          .node = stored.node};
}

// The store of a kernel of one node.
ir::Store Lowering::only_store(Reg value) const {
  if (step_.stored.size() != 1)
    internal_error("{} results of one node: {}", step_.stored.size(),
                   ir::print_node(graph_, step_.group.nodes.back()));
  return store_of(step_.stored[0], value);
}

}  // namespace tensorgrad::kernels
