#include "passes/join.h"

#include <algorithm>

#include "passes/rewrite.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;
using ir::PadAttrs;

namespace {

// Trees of additions whose terms are pads of one axis, and how much of the axis they fill together.
class PadSums {
 public:
  explicit PadSums(const Graph& graph) : graph_(graph) {}

  // Whether the terms of both trees together could fill the axis.
  bool may_fill(NodeId a, NodeId b) {
    const Filled x = filled(a), y = filled(b);
    return x.axis >= 0 && x.axis == y.axis &&
           x.elements + y.elements == graph_[a].type.shape[x.axis];
  }
  // The pads of a tree.
  void collect(NodeId id, std::vector<const Node*>& out) const {
    const Node& node = graph_[id];
    if (is(node, OpId::pad)) return out.push_back(&node);
    for (const NodeId input : node.inputs) collect(input, out);
  }

 private:
  struct Filled {
    int axis = -1;  // -1: not such a tree
    std::int64_t elements = 0;
  };

  Filled filled(NodeId id) {
    // Nodes come in order, operands first.
    for (auto next = static_cast<NodeId>(known_.size()); next <= id; ++next)
      known_.push_back(filled_by(graph_[next]));
    return known_[usize(id)];
  }
  Filled filled_by(const Node& node) const {
    if (is(node, OpId::pad)) {
      const auto& pad = node.as<PadAttrs>();
      return {pad.axis, node.type.shape[pad.axis] - pad.before - pad.after};
    }
    if (!is(node, OpId::add)) return {};
    const Filled x = known_[usize(node.inputs[0])], y = known_[usize(node.inputs[1])];
    // Terms that fill more than the axis overlap.
    const bool fits =
        x.axis >= 0 && x.axis == y.axis && x.elements + y.elements <= node.type.shape[x.axis];
    return fits ? Filled{x.axis, x.elements + y.elements} : Filled{};
  }

  const Graph& graph_;
  std::vector<Filled> known_;  // of each node
};

// Whether the parts fill the axis without gaps or overlaps.
bool side_by_side(const std::vector<const Node*>& parts, const Shape& shape) {
  const int axis = parts[0]->as<PadAttrs>().axis;
  std::int64_t end = 0;
  for (const Node* part : parts) {
    const auto& a = part->as<PadAttrs>();
    if (a.axis != axis || a.value != 0 || a.before != end) return false;
    end = shape[axis] - a.after;
  }
  return end == shape[axis];
}

}  // namespace

Graph join(Graph graph) {
  Rewriter rewriter;
  PadSums sums(rewriter.graph());
  return rewriter.run(std::move(graph), [&](const Node& n) -> NodeId {
    if (!is(n, OpId::add) || n.type.dtype != DType::f32) return -1;
    if (!sums.may_fill(n.inputs[0], n.inputs[1])) return -1;
    std::vector<const Node*> parts;
    for (const NodeId input : n.inputs) sums.collect(input, parts);
    // An empty part starts at the same position as the next part and comes first.
    std::stable_sort(parts.begin(), parts.end(), [](const Node* a, const Node* b) {
      const auto &x = a->as<PadAttrs>(), &y = b->as<PadAttrs>();
      return x.before != y.before ? x.before < y.before : x.after > y.after;
    });
    if (!side_by_side(parts, n.type.shape)) return -1;
    const int axis = parts[0]->as<PadAttrs>().axis;
    std::vector<Tensor> tensors;
    for (const Node* part : parts) tensors.push_back(rewriter.tensor(part->inputs[0]));
    return Rewriter::node(concat(tensors, axis));
  });
}

}  // namespace tensorgrad::passes
