// Rewriter: what passes that replace single nodes share. Nodes are visited in order; `rule` sees
// each with its operands already rewritten and gives the number of an equal node of the new graph,
// or -1 to keep it. New nodes belong to the call site of the one they replace.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ops/builder.h"

namespace tensorgrad::passes {

// The number that every element of the node is, if it is one; f32 numbers rounded as memory holds them.
std::optional<double> number(const ir::Graph& graph, ir::NodeId id);

class Rewriter {
 public:
  template <class Rule>
  ir::Graph run(const ir::Graph& from, Rule rule) {
    ops::BuildScope scope(builder_);
    graph().sites = from.sites;
    std::vector<ir::NodeId> renamed(static_cast<std::size_t>(from.size()), -1);
    for (ir::NodeId id = 0; id < from.size(); ++id) {
      ir::Node node = from[id];
      for (ir::NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
      builder_.forced_site = node.site;
      ir::NodeId made = rule(std::as_const(node));
      if (made < 0) {
        made = graph().size();
        graph().nodes.push_back(std::move(node));
      }
      renamed[static_cast<std::size_t>(id)] = made;
    }
    graph().results = from.results;
    for (ir::Result& result : graph().results) result.node = renamed[static_cast<std::size_t>(result.node)];
    return std::move(graph());
  }

  ir::Graph& graph() { return builder_.graph; }
  const ir::Graph& graph() const { return builder_.graph; }
  ops::Builder& builder() { return builder_; }
  Tensor tensor(ir::NodeId id) const { return builder_.tensor(id); }
  static ir::NodeId node(const Tensor& t) { return TensorAccess::node(t); }

  std::optional<double> number(ir::NodeId id) const { return passes::number(graph(), id); }

 private:
  ops::Builder builder_;
};

// As f32 memory holds it.
inline double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }

}  // namespace tensorgrad::passes
