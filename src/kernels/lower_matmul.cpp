// Kernels of kind `matmul`: one left operand, and one part per right operand.
#include "kernels/lowering.h"
#include "support/integers.h"

namespace tensorgrad::kernels {

using ir::Core;
using ir::NodeId;
using ir::ScalarOp;

ir::MatmulKernel Lowering::matmul() {
  ir::MatmulKernel out;
  std::vector<NodeId> products;
  for (const NodeId id : step_.group.nodes)
    if (graph_[id].op->core == Core::matmul) products.push_back(id);
  const Shape& left = shape_of(graph_[products[0]].inputs[0]);
  out.M = left[-2], out.K = left[-1];
  for (int d = 0; d < left.rank() - 2; ++d) out.batches *= left[d];
  keep_last(out.a, value(out.a, graph_[products[0]].inputs[0], as_is, false));
  for (const NodeId product : products) out.parts.push_back(part(product));
  return out;
}

ir::MatmulPart Lowering::part(NodeId product) {
  ir::MatmulPart out;
  out.N = graph_[product].type.shape[-1];
  regs_.clear();
  keep_last(out.b, value(out.b, graph_[product].inputs[1], as_is, false));
  ir::ScalarProgram& p = out.epilogue;
  regs_[product] = p.push({.op = ScalarOp::accumulator, .dtype = DType::f32});
  for (const NodeId id : step_.group.nodes) {
    if (inlined(id) || plan_.fused.product[usize(id)] != product ||
        graph_[id].op->core != Core::elementwise)
      continue;
    regs_[id] = emit(p, id, values(p, id, false), false);
  }
  for (const schedule::Stored& stored : step_.stored) {
    if (plan_.fused.product[usize(stored.node)] != product) continue;
    if (graph_[stored.node].op->core == Core::reduce)
      out.column_sums = store_of(stored, -1);
    else
      out.stores.push_back(store_of(stored, regs_.at(stored.node)));
  }
  return out;
}

}  // namespace tensorgrad::kernels
