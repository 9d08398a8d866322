#include "passes/dce.h"

#include "passes/rewrite.h"

namespace tensorgrad::passes {

ir::Graph dce(const ir::Graph& graph) { return keep(graph, ir::live_nodes(graph)); }

ir::Graph keep(const ir::Graph& graph, const std::vector<bool>& kept) {
  ir::Graph out;
  rebuild(graph, out,
          [&](ir::NodeId id, const ir::Node&) { return kept[usize(id)] ? kKeep : kDrop; });
  return out;
}

}  // namespace tensorgrad::passes
