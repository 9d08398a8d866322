#include "schedule/operand.h"

#include <algorithm>

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

// The program of a single elementwise node.
struct Alone {
  ir::ScalarProgram program;
  std::vector<ir::Reg> operands;
  ir::Reg value = -1;

  Alone(const Graph& graph, NodeId id) {
    const Node& node = graph[id];
    for (const NodeId input : node.inputs)
      operands.push_back(program.load(static_cast<int>(operands.size()), graph[input].type.dtype));
    value = node.op->scalar(program, operands, node.attrs);
  }
};

}  // namespace

bool is_alias(const Graph& graph, NodeId id) { return operand_of(graph, id).is_alias(graph); }

bool computes(const Node& node) {
  switch (node.op->core) {
    case Core::input:
    case Core::parameter:
    case Core::flat_parameters:
    case Core::state:
    case Core::flat_state:
    case Core::constant:
    case Core::iota:
    case Core::view:
      return false;
    default:
      return true;
  }
}

bool reads_memory(Core core, std::size_t index) {
  switch (core) {
    case Core::gather:
    case Core::take:
      return index == 0;
    case Core::segment_sum:
    case Core::scatter_add:
    case Core::fold:
    case Core::attention:
    case Core::attention_gradient:
    case Core::selective_scan:
    case Core::selective_scan_gradient:
      return true;
    default:
      return false;
  }
}

std::int64_t operations(const Graph& graph, NodeId id) {
  const Alone alone(graph, id);
  return std::count_if(alone.program.code.begin(), alone.program.code.end(),
                       [](const ir::Instr& instr) { return ir::is_arithmetic(instr.op); });
}

bool is_costly(const Graph& graph, NodeId id) {
  if (graph[id].op->core != Core::elementwise) return false;
  const Alone alone(graph, id);
  return std::any_of(alone.program.code.begin(), alone.program.code.end(),
                     [](const ir::Instr& instr) { return ir::is_costly(instr.op); });
}

bool passes_through(const Graph& graph, NodeId id) {
  if (graph[id].op->core != Core::elementwise) return false;
  const Alone alone(graph, id);
  return std::find(alone.operands.begin(), alone.operands.end(), alone.value) !=
         alone.operands.end();
}

ReduceShape reduce_shape(const Graph& graph, NodeId id) {
  const auto& axes = graph[id].as<ir::AxesAttrs>().axes;
  const Shape& shape = graph[graph[id].inputs[0]].type.shape;
  ReduceShape out;
  std::vector<int> kept;
  bool seen_reduced = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    (reduced ? out.length : out.lines) *= shape[d];
    if (!reduced) kept.push_back(d);
    if (shape[d] == 1) continue;
    if (reduced)
      seen_reduced = true;
    else if (seen_reduced)
      out.along_rows = false;
  }
  out.order = out.along_rows ? kept : axes;
  const std::vector<int>& rest = out.along_rows ? axes : kept;
  out.order.insert(out.order.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace tensorgrad::schedule
