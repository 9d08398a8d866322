// Nodes seen through their views, down to the node that is in memory.
#pragma once

#include "ir/graph.h"
#include "ir/index_map.h"

namespace tensorgrad::ir {

// The first node below the views, and the index map from that node to the operand.
struct Operand {
  NodeId base = -1;
  IndexMap map = IndexMap::contiguous({});

  // Whether the operand is all of its base's memory in row-major order.
  bool is_alias(const Graph& graph) const;
};
Operand operand_of(const Graph& graph, NodeId id);

// operand_of(graph, id).base, without the map.
NodeId base_of(const Graph& graph, NodeId id);

}  // namespace tensorgrad::ir
