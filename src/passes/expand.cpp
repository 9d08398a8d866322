#include "passes/expand.h"

#include "ops/builder.h"

namespace tensorgrad::passes {

using ir::NodeId;

ir::Graph expand(const ir::Graph& graph) {
  ops::Builder builder;
  ops::BuildScope scope(builder);
  builder.graph.sites = graph.sites;
  std::vector<NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  for (NodeId id = 0; id < graph.size(); ++id) {
    ir::Node node = graph[id];
    for (NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
    NodeId made = builder.graph.size();
    if (node.op->core == ir::Core::composite) {
      std::vector<Tensor> in;
      for (const NodeId input : node.inputs) in.push_back(builder.tensor(input));
      ir::CallSite site = graph.sites[static_cast<std::size_t>(node.site)];
      if (site.composite.empty()) site.composite = node.op->name;
      builder.forced_site = builder.graph.intern(site);
      made = TensorAccess::node(node.op->expand(in, node.attrs));
    } else {
      builder.graph.nodes.push_back(std::move(node));
    }
    renamed[static_cast<std::size_t>(id)] = made;
  }
  builder.graph.results = graph.results;
  for (ir::Result& result : builder.graph.results) result.node = renamed[static_cast<std::size_t>(result.node)];
  return std::move(builder.graph);
}

}  // namespace tensorgrad::passes
