// Kernels that walk along sequences: attention, selective scan, and their gradients.
#include "kernels/lowering.h"

namespace tensorgrad::kernels {

using ir::Load;
using ir::Node;
using ir::NodeId;

// `operands`: number of operands without the start.
ir::AttentionShape Lowering::attention_shape(NodeId id, std::size_t operands) const {
  const Node& node = graph_[id];
  const Shape &q = shape_of(node.inputs[0]), &k = shape_of(node.inputs[1]),
              &v = shape_of(node.inputs[2]);
  const auto& attrs = node.as<ir::AttentionAttrs>();
  return {.B = q[0],
          .H = q[1],
          .G = k[1],
          .T = q[2],
          .S = k[2],
          .D = q[3],
          .V = v[3],
          .causal = attrs.causal,
          .cached = node.inputs.size() > operands,
          .scale = attrs.scale};
}

ir::AttentionKernel Lowering::attention(NodeId id) {
  ir::AttentionKernel out;
  out.shape = attention_shape(id, 3);
  out.store = only_store();
  for (std::size_t i = 0; i < graph_[id].inputs.size(); ++i) add(operand(id, i));
  return out;
}

ir::AttentionGradientKernel Lowering::attention_gradient(NodeId id) {
  ir::AttentionGradientKernel out;
  out.shape = attention_shape(id, 5);
  out.store = only_store();
  const ir::AttentionShape& s = out.shape;
  for (std::size_t i = 0; i < 3; ++i) add(operand(id, i));
  const Load packed = operand(id, 3);
  Load result = packed, lse = packed;
  result.map = packed.map.narrow(0, s.out().offset, s.B * s.T * s.H * s.V)
                   .reshape({s.B, s.T, s.H, s.V})
                   .permute({0, 2, 1, 3});
  lse.map = packed.map.narrow(0, s.lse(), s.B * s.H * s.T).reshape({s.B, s.H, s.T});
  add(std::move(result));
  add(std::move(lse));
  for (std::size_t i = 4; i < graph_[id].inputs.size(); ++i) add(operand(id, i));
  return out;
}

ir::SelectiveScanShape Lowering::selective_scan_shape(NodeId id) const {
  const Node& node = graph_[id];
  const Shape &u = shape_of(node.inputs[0]), &A = shape_of(node.inputs[2]);
  const auto& attrs = node.as<ir::SelectiveScanAttrs>();
  return {.B = u[0], .L = u[1], .E = u[2], .N = A[1], .chunk = attrs.chunk, .zoh = attrs.zoh};
}

ir::SelectiveScanKernel Lowering::selective_scan(NodeId id) {
  ir::SelectiveScanKernel out;
  out.shape = selective_scan_shape(id);
  out.store = only_store();
  for (std::size_t i = 0; i < 6; ++i) add(operand(id, i));
  return out;
}

ir::SelectiveScanGradientKernel Lowering::selective_scan_gradient(NodeId id) {
  ir::SelectiveScanGradientKernel out;
  out.shape = selective_scan_shape(id);
  out.store = only_store();
  const ir::SelectiveScanShape& s = out.shape;
  for (std::size_t i = 0; i < 6; ++i) add(operand(id, i));
  Load states = operand(id, 6);
  states.map = states.map.narrow(0, s.states(), s.B * s.kept() * s.E * s.N)
                   .reshape({s.B, s.kept(), s.E, s.N});
  add(std::move(states));
  add(operand(id, 7));
  return out;
}

}  // namespace tensorgrad::kernels
