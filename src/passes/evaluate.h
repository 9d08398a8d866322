// Evaluates a graph that depends only on constants and positions: for constant folding, and for the
// masks that `recognise` inspects. f32 is computed in double precision, i32 wraps around.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/primitive.h"

namespace tensorgrad::passes {

// Whether evaluate() can compute a node of this core.
bool can_evaluate(ir::Core core);

// Returns the elements of the last node, row-major. can_evaluate() must hold for every node, and no
// node may check ids.
std::vector<double> evaluate(const ir::Graph& graph);

}  // namespace tensorgrad::passes
