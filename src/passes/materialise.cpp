#include "passes/materialise.h"

#include "ir/operand.h"
#include "ir/primitive.h"
#include "ops/table.h"
#include "passes/rewrite.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::NodeId;

namespace {

bool is_number(const Graph& graph, NodeId id) {
  return graph[id].op->core == Core::constant || graph[id].op->core == Core::iota;
}

}  // namespace

Graph materialise(Graph graph) {
  const ir::Primitive& copy = ops::primitive(ir::OpId::copy);
  Graph out;
  rebuild(std::move(graph), out, [&](NodeId, ir::Node node) -> NodeId {
    if (node.op->core != Core::gather && node.op->core != Core::take) return kKeep;
    const ir::Operand table = operand_of(out, node.inputs[0]);
    if (table.map.is_strided() && !is_number(out, table.base)) return kKeep;
    node.inputs[0] = out.append(copy, {node.inputs[0]}, {}, node.site);
    out.nodes.push_back(std::move(node));
    return out.size() - 1;
  });
  std::vector<bool> taken(usize(out.size()), false);
  for (ir::Result& result : out.results) {
    const ir::Operand operand = operand_of(out, result.node);
    const NodeId base = operand.base;
    const bool computed = !is_leaf(out[base]) && !is_number(out, base);
    if (operand.is_alias(out) && computed && !taken[usize(base)]) {
      taken[usize(base)] = true;
    } else {
      result.node = out.append(copy, {result.node}, {}, out[result.node].site);
      taken.resize(usize(out.size()), true);
    }
  }
  return out;
}

}  // namespace tensorgrad::passes
