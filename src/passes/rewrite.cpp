#include "passes/rewrite.h"

namespace tensorgrad::passes {

std::optional<double> number(const ir::Graph& graph, ir::NodeId id) {
  if (graph[id].op->core == ir::Core::view) {
    const auto inside = number(graph, graph[id].inputs[0]);
    const auto* pad = std::get_if<ir::PadAttrs>(&graph[id].attrs);
    return pad && inside != pad->value ? std::nullopt : inside;
  }
  if (graph[id].op->core != ir::Core::constant) return {};
  const double value = graph[id].as<ir::ConstantAttrs>().value;
  return graph[id].type.dtype == DType::f32 ? rounded(value) : value;
}

}  // namespace tensorgrad::passes
