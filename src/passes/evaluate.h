// The value of a graph that depends on constants and positions alone: constant folding, and the
// masks that `recognise` looks at. f32 is computed in double precision, i32 wraps around.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/primitive.h"

namespace tensorgrad::passes {

// Whether evaluate() can compute a node of this core.
bool can_evaluate(ir::Core core);

// The elements of the last node, row-major. Every node can be evaluated and checks no ids.
std::vector<double> evaluate(const ir::Graph& graph);

}  // namespace tensorgrad::passes
