#include "passes/dce.h"

namespace tensorgrad::passes {

ir::Graph dce(const ir::Graph& graph) { return keep(graph, ir::live_nodes(graph)); }

ir::Graph keep(const ir::Graph& graph, const std::vector<bool>& kept) {
  std::vector<ir::NodeId> renamed(kept.size(), -1);
  ir::Graph out;
  out.sites = graph.sites;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (!kept[static_cast<std::size_t>(id)]) continue;
    ir::Node node = graph[id];
    for (ir::NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
    renamed[static_cast<std::size_t>(id)] = out.size();
    out.nodes.push_back(std::move(node));
  }
  out.results = graph.results;
  for (ir::Result& result : out.results) result.node = renamed[static_cast<std::size_t>(result.node)];
  return out;
}

}  // namespace tensorgrad::passes
