#include "schedule/fuse.h"

#include <algorithm>

#include "ir/primitive.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::IndexMap;
using ir::Node;
using ir::NodeId;

namespace {

constexpr int kMostNodes = 32;  // of a group, so that programs stay readable and registers suffice

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

bool computes(const Node& node) {
  switch (node.op->core) {
    case Core::leaf:
    case Core::constant:
    case Core::iota:
    case Core::view: return false;
    default: return true;
  }
}

// Whether operand `i` of the node may be a scalar program instead of memory.
bool takes_program(const Node& node, std::size_t i) {
  switch (node.op->core) {
    case Core::elementwise:
    case Core::concat:
    case Core::reduce:
    case Core::arg_reduce:
    case Core::scan: return true;
    case Core::gather:
    case Core::take: return i == 1;
    default: return false;
  }
}

// The map of a view chain from its base, or from the nearest node in `stop`.
IndexMap map_from(const Graph& graph, NodeId id, const std::vector<bool>& stop, NodeId& base) {
  std::vector<NodeId> chain;
  while (graph[id].op->core == Core::view && !stop[at(id)]) {
    chain.push_back(id);
    id = graph[id].inputs[0];
  }
  base = id;
  IndexMap map = IndexMap::contiguous(graph[id].type.shape);
  for (auto view = chain.rbegin(); view != chain.rend(); ++view)
    map = graph[*view].op->view(map, graph[*view].attrs);
  return map;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options) : graph_(graph), options_(options) {}

  std::vector<Group> run() {
    choose_roots();
    if (options_.enabled) inline_single_uses();
    std::vector<Group> groups;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (root_[at(id)]) {
        Group group;
        group.root = id;
        collect(id, group.nodes);
        std::sort(group.nodes.begin(), group.nodes.end());
        group.nodes.erase(std::unique(group.nodes.begin(), group.nodes.end()), group.nodes.end());
        groups.push_back(std::move(group));
      }
    return groups;
  }

 private:
  void choose_roots() {
    const std::vector<bool> live = ir::live_nodes(graph_);
    root_.assign(live.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) root_[at(id)] = live[at(id)] && computes(graph_[id]);
    // Ids point into memory: what they point into must be there, at plain strides.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (!live[at(id)] || (node.op->core != Core::gather && node.op->core != Core::take)) continue;
      NodeId base = -1;
      const IndexMap map = map_from(graph_, node.inputs[0], root_, base);
      const Core core = graph_[base].op->core;
      if (!map.is_strided() || core == Core::constant || core == Core::iota) root_[at(node.inputs[0])] = true;
    }
    // Results lie in memory as they are.
    for (const ir::Result& result : graph_.results) {
      const NodeId base = base_of(graph_, result.node);
      if (graph_[result.node].op->core == Core::leaf) continue;
      if (!computes(graph_[base]) || !is_alias(graph_, result.node)) root_[at(result.node)] = true;
    }
  }

  void inline_single_uses() {
    const auto n = at(graph_.size());
    std::vector<int> uses(n, 0);  // by nodes that compute, views looked through
    std::vector<NodeId> user(n, -1);
    std::vector<bool> held(n, false);  // a result, or read in a way that needs memory
    for (const ir::Result& result : graph_.results) held[at(base_of(graph_, result.node))] = true;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!root_[at(id)]) continue;
      const Node& node = graph_[id];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        NodeId input = node.inputs[i];
        bool plain = takes_program(node, i);
        while (!root_[at(input)] && graph_[input].op->core == Core::view) {
          // A pad fills with its own value, and a broadcast would compute the same again.
          const Node& view = graph_[input];
          plain = plain && view.type.shape.count() == graph_[view.inputs[0]].type.shape.count();
          input = view.inputs[0];
        }
        // A root that is itself a view is a copy; it reads its operand like an elementwise op.
        ++uses[at(input)];
        user[at(input)] = id;
        if (!plain) held[at(input)] = true;
      }
    }
    std::vector<int> size(n, 1);
    std::vector<NodeId> owner(n);
    for (NodeId id = 0; id < graph_.size(); ++id) owner[at(id)] = id;
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      if (!root_[at(id)] || graph_[id].op->core != Core::elementwise) continue;
      if (uses[at(id)] != 1 || held[at(id)]) continue;
      const NodeId into = owner[at(user[at(id)])];
      if (size[at(into)] >= kMostNodes) continue;
      ++size[at(into)];
      owner[at(id)] = into;
      root_[at(id)] = false;
    }
  }

  void collect(NodeId id, std::vector<NodeId>& nodes) const {
    nodes.push_back(id);
    for (const NodeId input : graph_[id].inputs)
      if (!root_[at(input)] && graph_[input].op->core != Core::leaf) collect(input, nodes);
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<bool> root_;
};

}  // namespace

NodeId base_of(const Graph& graph, NodeId id) {
  while (graph[id].op->core == Core::view) id = graph[id].inputs[0];
  return id;
}

bool is_alias(const Graph& graph, NodeId id) {
  NodeId base = -1;
  const std::vector<bool> stop(at(graph.size()), false);
  const IndexMap map = map_from(graph, id, stop, base);
  return map.is_contiguous() && map.shape().count() == graph[base].type.shape.count();
}

std::vector<Group> fuse(const Graph& graph, const FuseOptions& options) {
  return Fuser(graph, options).run();
}

}  // namespace tensorgrad::schedule
