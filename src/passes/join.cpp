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

// Trees of additions whose terms are all pads.
class PadSums {
 public:
  explicit PadSums(const Graph& graph) : graph_(graph) {}

  bool contains(NodeId id) {
    // Nodes are in topological order, operands first.
    for (auto next = static_cast<NodeId>(known_.size()); next <= id; ++next) {
      const Node& node = graph_[next];
      known_.push_back(
          is(node, OpId::pad) ||
          (is(node, OpId::add) && known_[usize(node.inputs[0])] && known_[usize(node.inputs[1])]));
    }
    return known_[usize(id)];
  }
  // Collects the pads of such a tree.
  void collect(NodeId id, std::vector<const Node*>& out) const {
    const Node& node = graph_[id];
    if (is(node, OpId::pad)) return out.push_back(&node);
    for (const NodeId input : node.inputs) collect(input, out);
  }

 private:
  const Graph& graph_;
  std::vector<bool> known_;
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

Graph join(const Graph& graph) {
  Rewriter rewriter;
  PadSums sums(rewriter.graph());
  return rewriter.run(graph, [&](const Node& n) -> NodeId {
    if (!is(n, OpId::add) || n.type.dtype != DType::f32) return -1;
    if (!sums.contains(n.inputs[0]) || !sums.contains(n.inputs[1])) return -1;
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
