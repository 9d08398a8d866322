// One reverse walk that asks each record for its rule. No op is named here.
#include "autodiff/differentiate.h"

#include "tensorgrad/ops.h"

namespace tensorgrad::autodiff {

using ir::NodeId;

namespace {

// The line of the forward call, and whose gradient it is: "gradient of sqrt".
std::int32_t gradient_site(ir::Graph& graph, const ir::Node& node) {
  ir::CallSite site = graph.sites[static_cast<std::size_t>(node.site)];
  site.composite = "gradient of " + (site.composite.empty() ? std::string(node.op->name) : site.composite);
  return graph.intern(site);
}

}  // namespace

std::vector<Tensor> differentiate(ops::Builder& builder, const Tensor& loss,
                                  const std::vector<NodeId>& wanted) {
  ops::BuildScope scope(builder);
  const NodeId top = TensorAccess::node(loss);
  const auto count = static_cast<std::size_t>(top) + 1;

  // Which nodes lead from a wanted one to the loss.
  std::vector<bool> leads(count, false);
  for (const NodeId id : wanted)
    if (id <= top) leads[static_cast<std::size_t>(id)] = true;
  for (NodeId id = 0; id <= top; ++id) {
    const ir::Node& node = builder.graph[id];
    if (!node.op->gradient || node.type.dtype != DType::f32) continue;
    for (const NodeId input : node.inputs)
      if (leads[static_cast<std::size_t>(input)]) leads[static_cast<std::size_t>(id)] = true;
  }

  std::vector<Tensor> gradient(count);
  builder.forced_site = gradient_site(builder.graph, builder.graph[top]);  // not this file's lines
  if (leads[static_cast<std::size_t>(top)]) gradient[static_cast<std::size_t>(top)] = ones(loss.shape());
  for (NodeId id = top; id >= 0; --id) {
    const Tensor g = gradient[static_cast<std::size_t>(id)];
    if (!g.valid() || !leads[static_cast<std::size_t>(id)]) continue;
    const ir::Node node = builder.graph[id];  // a copy: the graph grows below
    if (!node.op->gradient || node.inputs.empty()) continue;
    builder.forced_site = gradient_site(builder.graph, node);
    ir::GradientArgs args{{}, builder.tensor(id), g, node};
    for (const NodeId input : node.inputs) args.in.push_back(builder.tensor(input));
    const std::vector<Tensor> parts = node.op->gradient(args);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto input = static_cast<std::size_t>(node.inputs[i]);
      if (!parts[i].valid() || !leads[input]) continue;
      Tensor& sum = gradient[input];
      sum = sum.valid() ? sum + parts[i] : parts[i];
    }
  }
  builder.forced_site = 0;

  std::vector<Tensor> out;
  for (const NodeId id : wanted) {
    const Tensor& g = id <= top ? gradient[static_cast<std::size_t>(id)] : Tensor{};
    // The shape of a tensor of its own, not of the node: zeros() makes the graph grow.
    out.push_back(g.valid() ? g : zeros(builder.tensor(id).shape()));
  }
  builder.forced_site = -1;
  return out;
}

}  // namespace tensorgrad::autodiff
