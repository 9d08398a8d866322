#include "passes/dce.h"

#include "passes/rewrite.h"

namespace tensorgrad::passes {

ir::Graph dce(ir::Graph graph) {
  const std::vector<bool> live = ir::live_nodes(graph);
  return keep(std::move(graph), live);
}

ir::Graph keep(ir::Graph graph, const std::vector<bool>& kept) {
  ir::Graph out;
  rebuild(std::move(graph), out,
          [&](ir::NodeId id, const ir::Node&) { return kept[usize(id)] ? kKeep : kDrop; });
  return out;
}

}  // namespace tensorgrad::passes
