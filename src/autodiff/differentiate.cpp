// One reverse walk over the graph. Each op's record supplies its gradient rule; no op is named
// here.
#include "autodiff/differentiate.h"
#include "support/integers.h"

#include "tensorgrad/ops.h"

namespace tensorgrad::autodiff {

using ir::NodeId;

namespace {

// The call site for gradient nodes: the line of the forward call, named "gradient of sqrt".
std::int32_t gradient_site(ops::Builder& builder, const ir::Node& node) {
  ir::CallSite site = builder.graph.sites[usize(node.site)];
  site.composite =
      "gradient of " + (site.composite.empty() ? std::string(node.op->name) : site.composite);
  return builder.intern(site);
}

}  // namespace

std::vector<Tensor> differentiate(ops::Builder& builder, const Tensor& loss,
                                  const std::vector<NodeId>& wanted) {
  ops::BuildScope scope(builder);
  const NodeId top = TensorAccess::node(loss);
  const auto count = usize(top) + 1;

  // Marks the nodes on a path from a wanted node to the loss.
  std::vector<bool> leads(count, false);
  for (const NodeId id : wanted)
    if (id <= top) leads[usize(id)] = true;
  for (NodeId id = 0; id <= top; ++id) {
    const ir::Node& node = builder.graph[id];
    if (!node.op->gradient || node.type.dtype != DType::f32) continue;
    for (const NodeId input : node.inputs)
      if (leads[usize(input)]) leads[usize(id)] = true;
  }

  std::vector<Tensor> gradient(count);
  builder.forced_site = gradient_site(builder, builder.graph[top]);  // report the user's line
  if (leads[usize(top)]) gradient[usize(top)] = ones(loss.shape());
  for (NodeId id = top; id >= 0; --id) {
    const Tensor g = gradient[usize(id)];
    if (!g.valid() || !leads[usize(id)]) continue;
    const ir::Node node = builder.graph[id];  // a copy: the graph grows below
    if (!node.op->gradient || node.inputs.empty()) continue;
    builder.forced_site = gradient_site(builder, node);
    ir::GradientArgs args{{}, builder.tensor(id), g, node};
    for (const NodeId input : node.inputs) args.in.push_back(builder.tensor(input));
    const std::vector<Tensor> parts = node.op->gradient(args);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto input = usize(node.inputs[i]);
      if (!parts[i].valid() || !leads[input]) continue;
      Tensor& sum = gradient[input];
      sum = sum.valid() ? sum + parts[i] : parts[i];
    }
  }
  builder.forced_site = 0;

  std::vector<Tensor> out;
  for (const NodeId id : wanted) {
    const Tensor& g = id <= top ? gradient[usize(id)] : Tensor{};
    // The shape is a tensor's copy, not a reference into a node: zeros() may reallocate the graph.
    out.push_back(g.valid() ? g : zeros(builder.tensor(id).shape()));
  }
  builder.forced_site = -1;
  return out;
}

}  // namespace tensorgrad::autodiff
