// Nodes as kernels see them: through their views, down to the base that holds the values.
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

// Whether the view is a reshape of its base's memory, in the same order.
bool is_alias(const ir::Graph& graph, ir::NodeId id);
// Whether a node computes values: it is not a leaf, constant, iota or view.
bool computes(const ir::Node& node);
// Whether the operand must be in memory: tensors indexed by ids, and operands of single-node
// kernels.
bool reads_memory(ir::Core core, std::size_t index);

// Elementwise nodes: operations per element, and whether they cost more than the memory traffic
// they would save.
std::int64_t operations(const ir::Graph& graph, ir::NodeId id);
bool is_costly(const ir::Graph& graph, ir::NodeId id);
// Elementwise nodes: whether the value is a copy of an operand.
bool passes_through(const ir::Graph& graph, ir::NodeId id);

// A reduction as lines and length, and the permutation of the operand's axes that gives this form.
struct ReduceShape {
  std::int64_t lines = 1, length = 1;
  bool along_rows = true;  // the reduced axes are the last ones
  std::vector<int> order;  // axes of the operand: kept then reduced, or reduced then kept
};
ReduceShape reduce_shape(const ir::Graph& graph, ir::NodeId id);

}  // namespace tensorgrad::schedule
