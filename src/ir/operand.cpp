#include "ir/operand.h"

#include "ir/primitive.h"

namespace tensorgrad::ir {

Operand operand_of(const Graph& graph, NodeId id) {
  std::vector<NodeId> views;
  while (graph[id].op->core == Core::view) {
    views.push_back(id);
    id = graph[id].inputs[0];
  }
  Operand out{id, IndexMap::contiguous(graph[id].type.shape)};
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    out.map = graph[*view].op->view(out.map, graph[*view].attrs);
  return out;
}

bool Operand::is_alias(const Graph& graph) const {
  return map.is_contiguous() && map.shape().count() == graph[base].type.shape.count();
}

NodeId base_of(const Graph& graph, NodeId id) {
  while (graph[id].op->core == Core::view) id = graph[id].inputs[0];
  return id;
}

}  // namespace tensorgrad::ir
