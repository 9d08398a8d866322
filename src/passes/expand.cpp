#include "passes/expand.h"

#include "passes/rewrite.h"

namespace tensorgrad::passes {

using ir::NodeId;

ir::Graph expand(ir::Graph graph) {
  Rewriter rewriter;
  return rewriter.run(std::move(graph), [&](const ir::Node& node) -> NodeId {
    if (node.op->core != ir::Core::composite) return kKeep;
    std::vector<Tensor> in;
    for (const NodeId input : node.inputs) in.push_back(rewriter.tensor(input));
    ir::CallSite site = rewriter.graph().sites[usize(node.site)];
    if (site.composite.empty()) site.composite = node.op->name;
    rewriter.builder().forced_site = rewriter.builder().intern(site);
    return Rewriter::node(node.op->expand(in, node.attrs));
  });
}

}  // namespace tensorgrad::passes
