#include "passes/views.h"

#include "passes/rewrite.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;

Graph views(const Graph& graph) {
  Rewriter rewriter;
  return rewriter.run(graph, [&](const Node& n) -> NodeId {
    if (n.op->core != ir::Core::view) return -1;
    const std::string_view op = n.op->name;
    const NodeId below = n.inputs[0];
    const Node& inner = rewriter.graph()[below];
    if (op == "stop_gradient") return below;
    if ((op == "reshape" || op == "broadcast_to" || op == "narrow") && inner.type.shape == n.type.shape) return below;
    if (op == "permute") {
      std::vector<int> order = n.as<ir::OrderAttrs>().order;
      const bool twice = inner.op == n.op;
      if (twice)
        for (int& axis : order) axis = inner.as<ir::OrderAttrs>().order[static_cast<std::size_t>(axis)];
      const NodeId base = twice ? inner.inputs[0] : below;
      bool same = true;
      for (std::size_t d = 0; d < order.size(); ++d) same = same && order[d] == static_cast<int>(d);
      if (same) return base;
      return twice ? Rewriter::node(permute(rewriter.tensor(base), order)) : -1;
    }
    if (inner.op != n.op) return -1;
    if (op == "reshape") return Rewriter::node(reshape(rewriter.tensor(inner.inputs[0]), n.type.shape));
    if (op == "broadcast_to") return Rewriter::node(broadcast_to(rewriter.tensor(inner.inputs[0]), n.type.shape));
    return -1;
  });
}

}  // namespace tensorgrad::passes
