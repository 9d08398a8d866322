// rebuild: the one loop that copies a graph. Every pass is a rule for this loop.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"
#include "support/integers.h"

namespace tensorgrad::ir {

// A rule may return one of these instead of the id of a node.
inline constexpr NodeId kKeep = -1;  // copy the node unchanged
inline constexpr NodeId kDrop = -2;  // drop the node; no kept node reads it

// Moves `from` into `to`, which is empty, in topological order. `rule(id, node)` sees each node
// with its operands already renamed. It returns the id of an equal node of `to` (one that it
// appended, or an earlier one), kKeep or kDrop. Returns the new id of each node.
template <class Rule>
std::vector<NodeId> rebuild(Graph&& from, Graph& to, Rule rule) {
  to.sites = std::move(from.sites);
  to.flat = std::move(from.flat);
  to.nodes.reserve(from.nodes.size());
  std::vector<NodeId> renamed(usize(from.size()), -1);
  for (NodeId id = 0; id < from.size(); ++id) {
    Node node = std::move(from[id]);
    for (NodeId& input : node.inputs) input = renamed[usize(input)];
    NodeId made = rule(id, std::as_const(node));
    if (made == kKeep) {
      made = to.size();
      to.nodes.push_back(std::move(node));
    }
    renamed[usize(id)] = made;
  }
  to.results = std::move(from.results);
  for (Result& result : to.results) result.node = renamed[usize(result.node)];
  return renamed;
}

template <class Rule>
std::vector<NodeId> rebuild(const Graph& from, Graph& to, Rule rule) {
  return rebuild(Graph(from), to, std::move(rule));
}

}  // namespace tensorgrad::ir
