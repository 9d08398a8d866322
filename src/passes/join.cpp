#include "passes/join.h"

#include <algorithm>

#include "passes/rewrite.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;
using ir::PadAttrs;

namespace {

// The terms of a tree of additions, as far as they are pads; false where one is something else.
bool pads_of(const Graph& graph, NodeId id, std::vector<const Node*>& out) {
  const Node& node = graph[id];
  if (is(node, OpId::add))
    return pads_of(graph, node.inputs[0], out) && pads_of(graph, node.inputs[1], out);
  if (!is(node, OpId::pad)) return false;
  out.push_back(&node);
  return true;
}

// Whether they fill the axis one after the other.
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
  return rewriter.run(graph, [&](const Node& n) -> NodeId {
    if (!is(n, OpId::add) || n.type.dtype != DType::f32) return -1;
    std::vector<const Node*> parts;
    for (const NodeId input : n.inputs)
      if (!pads_of(rewriter.graph(), input, parts)) return -1;
    // Empty parts begin where the next does, and come first.
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
