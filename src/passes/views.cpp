#include "passes/views.h"

#include "passes/rewrite.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;

Graph views(Graph graph) {
  Rewriter rewriter;
  return rewriter.run(std::move(graph), [&](const Node& n) -> NodeId {
    if (n.op->core != ir::Core::view) return -1;
    const NodeId below = n.inputs[0];
    const Node& inner = rewriter.graph()[below];
    if (is(n, OpId::stop_gradient)) return below;
    if ((is(n, OpId::reshape) || is(n, OpId::broadcast_to) || is(n, OpId::narrow)) &&
        inner.type.shape == n.type.shape)
      return below;
    if (is(n, OpId::permute)) {
      std::vector<int> order = n.as<ir::OrderAttrs>().order;
      const bool twice = inner.op == n.op;
      if (twice)
        for (int& axis : order) axis = inner.as<ir::OrderAttrs>().order[usize(axis)];
      const NodeId base = twice ? inner.inputs[0] : below;
      bool same = true;
      for (std::size_t d = 0; d < order.size(); ++d) same = same && order[d] == static_cast<int>(d);
      if (same) return base;
      return twice ? Rewriter::node(permute(rewriter.tensor(base), order)) : -1;
    }
    if (inner.op != n.op) return -1;
    if (is(n, OpId::reshape))
      return Rewriter::node(reshape(rewriter.tensor(inner.inputs[0]), n.type.shape));
    if (is(n, OpId::broadcast_to))
      return Rewriter::node(broadcast_to(rewriter.tensor(inner.inputs[0]), n.type.shape));
    return -1;
  });
}

}  // namespace tensorgrad::passes
