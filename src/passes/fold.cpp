#include "passes/fold.h"

#include <cmath>

#include "ops/table.h"
#include "passes/evaluate.h"
#include "passes/rewrite.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

// Applies the op to these constants.
double compute(const Node& node, const std::vector<ir::ConstantAttrs>& numbers) {
  const ir::Primitive& constant = ops::primitive(ir::OpId::constant);
  Graph graph;
  std::vector<NodeId> inputs;
  for (const ir::ConstantAttrs& number : numbers)
    inputs.push_back(graph.append(constant, {}, number));
  graph.append(*node.op, inputs, node.attrs);
  return evaluate(graph)[0];
}

double reduce(ir::Combine combine, double value, double count) {
  switch (combine) {
    case ir::Combine::add:
      return value * count;
    case ir::Combine::mul:
      return std::pow(value, count);
    default:
      return value;
  }
}

}  // namespace

Graph fold(Graph graph) {
  Rewriter rewriter;
  return rewriter.run(std::move(graph), [&](const Node& node) -> NodeId {
    const bool reduces = node.op->core == Core::reduce && node.type.dtype == DType::f32;
    // A bad id must be reported at run time.
    const bool checks = std::holds_alternative<ir::CheckAttrs>(node.attrs);
    if ((node.op->core != Core::elementwise || checks) && !reduces) return -1;
    std::vector<ir::ConstantAttrs> numbers;
    for (const NodeId input : node.inputs) {
      const auto number = rewriter.number(input);
      if (!number) return -1;
      numbers.push_back({*number, rewriter.graph()[input].type.dtype});
    }
    if (numbers.empty() || node.type.shape.count() == 0) return -1;
    const auto terms = static_cast<double>(rewriter.graph()[node.inputs[0]].type.shape.count() /
                                           node.type.shape.count());
    if (reduces && terms == 0) return -1;
    double value =
        reduces ? reduce(node.op->combine, numbers[0].value, terms) : compute(node, numbers);
    if (node.type.dtype == DType::f32) value = rounded(value);
    if (!std::isfinite(value)) return -1;
    return Rewriter::node(full(node.type.shape, value, node.type.dtype));
  });
}

}  // namespace tensorgrad::passes
