// Rewriter: ir::rebuild with a Builder, for rules that write new nodes with ops.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/rebuild.h"
#include "ops/builder.h"

namespace tensorgrad::passes {

using ir::kDrop;
using ir::kKeep;
using ir::rebuild;

// The value of a constant node, equal for all its elements; f32 is rounded as in memory. Empty for
// other nodes.
std::optional<double> number(const ir::Graph& graph, ir::NodeId id);

// A rule sees one node at a time. Nodes that it appends get the call site of the node that they
// replace.
class Rewriter {
 public:
  template <class Rule>
  ir::Graph run(ir::Graph from, Rule rule) {
    ops::BuildScope scope(builder_);
    rebuild(std::move(from), graph(), [&](ir::NodeId, const ir::Node& node) {
      builder_.forced_site = node.site;
      return rule(node);
    });
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

// Rounds to f32.
inline double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }

}  // namespace tensorgrad::passes
