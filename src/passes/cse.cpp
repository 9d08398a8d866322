#include "passes/cse.h"

#include <unordered_map>

#include "ir/primitive.h"

namespace tensorgrad::passes {

using ir::NodeId;

ir::Graph cse(const ir::Graph& graph) {
  ir::Graph out;
  out.sites = graph.sites;
  std::vector<NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  std::unordered_multimap<std::uint64_t, NodeId> known;
  for (NodeId id = 0; id < graph.size(); ++id) {
    ir::Node node = graph[id];
    std::uint64_t h = std::hash<const void*>{}(node.op) ^ ir::hash(node.attrs);
    for (NodeId& input : node.inputs) {
      input = renamed[static_cast<std::size_t>(input)];
      h = h * 1099511628211u + static_cast<std::uint64_t>(input) + 1;
    }
    NodeId same = -1;
    const auto [first, last] = known.equal_range(h);
    for (auto it = first; it != last && same < 0; ++it) {
      const ir::Node& other = out[it->second];
      if (other.op == node.op && other.inputs == node.inputs && ir::equal(other.attrs, node.attrs)) same = it->second;
    }
    if (same < 0) {
      same = out.size();
      known.emplace(h, same);
      out.nodes.push_back(std::move(node));
    }
    renamed[static_cast<std::size_t>(id)] = same;
  }
  out.results = graph.results;
  for (ir::Result& result : out.results) result.node = renamed[static_cast<std::size_t>(result.node)];
  return out;
}

}  // namespace tensorgrad::passes
