#include "schedule/cost.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

std::int64_t count(const Graph& graph, NodeId id) { return graph[id].type.shape.count(); }

// Attention: number of pairs of a query and a key that it sees (all pairs if the start is unknown).
std::int64_t scores(const Graph& graph, const Node& node) {
  const Shape &q = graph[node.inputs[0]].type.shape, &k = graph[node.inputs[1]].type.shape;
  const bool cached = node.inputs.size() == (node.op->core == Core::attention ? 4u : 6u);
  const std::int64_t hidden =
      node.as<ir::AttentionAttrs>().causal && !cached ? q[2] * (q[2] - 1) / 2 : 0;
  return q[0] * q[1] * (q[2] * k[2] - hidden);
}

// Attention: elements of one head of that operand.
std::int64_t head(const Graph& graph, const Node& node, std::size_t operand) {
  return graph[node.inputs[operand]].type.shape[3];
}

// Selective scan: steps times states.
std::int64_t states(const Graph& graph, const Node& node) {
  return count(graph, node.inputs[0]) * graph[node.inputs[2]].type.shape[1];
}

std::int64_t operations_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  switch (node.op->core) {
    case Core::elementwise:
      return count(graph, id) * operations(graph, id);
    case Core::matmul:
      return 2 * count(graph, id) * graph[node.inputs[0]].type.shape.back();
    case Core::gather:
    case Core::take:
    case Core::concat:
      return 0;
    case Core::attention:
      return 2 * scores(graph, node) * (head(graph, node, 0) + head(graph, node, 2));
    // Recomputes the scores of q and k, and those of the gradient and v; then the gradients of all
    // three.
    case Core::attention_gradient:
      return 2 * scores(graph, node) * (3 * head(graph, node, 0) + 2 * head(graph, node, 2));
    case Core::selective_scan:
      return 6 * states(graph, node);
    case Core::selective_scan_gradient:
      return 18 * states(graph, node);
    default:
      return count(graph, node.inputs[0]);  // one operation per operand element added or compared
  }
}

}  // namespace

Cost cost_of(const Plan& plan, const Step& step) {
  const Graph& graph = plan.graph;
  const Fused& fused = plan.fused;
  // Elements read of each tensor in memory: the sum over all its views, at most the whole tensor.
  std::map<NodeId, std::int64_t> read;
  std::set<NodeId> views;
  const auto reads = [&](NodeId view, std::int64_t seen) {
    const NodeId base = base_of(graph, view);
    if (plan.places[usize(base)] && views.insert(view).second)
      read[base] = std::min(read[base] + seen, count(graph, base));
  };
  Cost out;
  if (step.copied >= 0) reads(step.copied, count(graph, step.copied));
  for (const NodeId id : step.group.nodes) {
    const Node& node = graph[id];
    for (const NodeId input : node.inputs) {
      const NodeId base = base_of(graph, input);
      const bool inside = !fused.inlined[usize(base)] && fused.group[usize(base)] >= 0 &&
                          fused.group[usize(base)] == fused.group[usize(id)];
      const bool by_id = node.op->core == Core::gather || node.op->core == Core::take;
      if (!inside)
        reads(input, by_id && input == node.inputs[0] ? count(graph, id) : count(graph, input));
    }
    out.operations += operations_of(graph, id);
  }
  for (const auto& [base, elements] : read) out.bytes_read += 4 * elements;
  for (const Stored& stored : step.stored) out.bytes_written += 4 * count(graph, stored.node);
  return out;
}

}  // namespace tensorgrad::schedule
