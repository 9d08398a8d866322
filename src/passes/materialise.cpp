#include "passes/materialise.h"

#include "ir/primitive.h"
#include "ops/table.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::IndexMap;
using ir::NodeId;

namespace {

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

// The node that holds the numbers of a view, and the map from there.
std::pair<NodeId, IndexMap> seen_through(const Graph& graph, NodeId id) {
  std::vector<NodeId> views;
  while (graph[id].op->core == Core::view) {
    views.push_back(id);
    id = graph[id].inputs[0];
  }
  IndexMap map = IndexMap::contiguous(graph[id].type.shape);
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    map = graph[*view].op->view(map, graph[*view].attrs);
  return {id, map};
}

bool is_number(const Graph& graph, NodeId id) {
  return graph[id].op->core == Core::constant || graph[id].op->core == Core::iota;
}

}  // namespace

Graph materialise(const Graph& graph) {
  const ir::Primitive& copy = *ops::find_primitive("copy");
  Graph out;
  out.sites = graph.sites;
  std::vector<NodeId> renamed(at(graph.size()), -1);
  for (NodeId id = 0; id < graph.size(); ++id) {
    ir::Node node = graph[id];
    for (NodeId& input : node.inputs) input = renamed[at(input)];
    if (node.op->core == Core::gather || node.op->core == Core::take) {
      const auto [base, map] = seen_through(out, node.inputs[0]);
      if (!map.is_strided() || is_number(out, base))
        node.inputs[0] = out.append(copy, {node.inputs[0]}, {}, node.site);
    }
    renamed[at(id)] = out.size();
    out.nodes.push_back(std::move(node));
  }
  std::vector<bool> taken(at(out.size()), false);
  out.results = graph.results;
  for (ir::Result& result : out.results) {
    result.node = renamed[at(result.node)];
    const auto [base, map] = seen_through(out, result.node);
    const bool whole = map.is_contiguous() && map.shape().count() == out[base].type.shape.count();
    const bool computed = out[base].op->core != Core::leaf && !is_number(out, base);
    if (whole && computed && !taken[at(base)]) {
      taken[at(base)] = true;
    } else {
      result.node = out.append(copy, {result.node}, {}, out[result.node].site);
      taken.resize(at(out.size()), true);
    }
  }
  return out;
}

}  // namespace tensorgrad::passes
