#include "schedule/in_place.h"

#include <algorithm>

#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::NodeId;

namespace {

// Whether the node is inlined and reads `old`, directly or through other inlined nodes.
bool comes_from(const Graph& graph, const Fused& fused, NodeId id, NodeId old) {
  if (!fused.inlined[usize(id)]) return false;
  return std::any_of(graph[id].inputs.begin(), graph[id].inputs.end(), [&](NodeId input) {
    const NodeId base = base_of(graph, input);
    return base == old || comes_from(graph, fused, base, old);
  });
}

}  // namespace

bool may_overwrite(const Graph& graph, const Fused& fused, NodeId old, NodeId id) {
  const Group& group = fused.groups[usize(fused.group[usize(id)])];
  if (group.kind == Group::Kind::single) return false;
  for (const NodeId node : group.nodes) {
    const Core core = graph[node].op->core;
    for (const NodeId input : graph[node].inputs) {
      const NodeId base = base_of(graph, input);
      if (base != old && !comes_from(graph, fused, base, old)) continue;
      if (!is_alias(graph, input) || (core != Core::elementwise && core != Core::reduce))
        return false;
      // All threads that share the work read the ids, possibly after that memory was overwritten.
      if (ir::checks_ids(graph[node])) return false;
      // A member that only copies `old` might be stored after `old` was overwritten.
      if (passes_through(graph, node) && node != id) return false;
      if (group.kind == Group::Kind::matmul) {
        if (fused.inlined[usize(node)] || fused.product[usize(node)] != fused.product[usize(id)] ||
            core == Core::reduce)
          return false;
        if (graph[id].op->core == Core::reduce)
          return false;  // written while packing, before the epilogue
      } else if (!fused.inlined[usize(node)]) {
        const bool reads_line = core != Core::reduce && fused.line[usize(node)];
        if (reads_line != fused.line[usize(id)]) return false;
      }
    }
  }
  return true;
}

}  // namespace tensorgrad::schedule
