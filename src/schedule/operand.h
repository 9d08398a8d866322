// Nodes as kernels see them: through their views, down to what holds numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/operand.h"
#include "ir/primitive.h"

namespace tensorgrad::schedule {

using ir::base_of;
using ir::Operand;
using ir::operand_of;

// Whether the view is its base's memory as it stands, only with another shape.
bool is_alias(const ir::Graph& graph, ir::NodeId id);
// Whether a node makes numbers: neither leaf, constant, iota nor view.
bool computes(const ir::Node& node);
// Whether the operand must lie in memory: what ids point into, and what kernels of one node read.
bool reads_memory(ir::Core core, std::size_t index);

// Elementwise nodes: arithmetic per element, and whether it is more than the memory it would save.
std::int64_t operations(const ir::Graph& graph, ir::NodeId id);
bool is_costly(const ir::Graph& graph, ir::NodeId id);
// Elementwise nodes: the value is an operand as it is.
bool passes_through(const ir::Graph& graph, ir::NodeId id);

// A reduction as lines and length, and the order of the operand's axes that makes them so.
struct ReduceShape {
  std::int64_t lines = 1, length = 1;
  bool along_rows = true;  // the reduced axes are the last ones
  std::vector<int> order;  // of the operand's axes: kept then reduced, or reduced then kept
};
ReduceShape reduce_shape(const ir::Graph& graph, ir::NodeId id);

}  // namespace tensorgrad::schedule
