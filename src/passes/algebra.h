// Pass `algebra`: removes x*1, x/1, x+0, x-0, -(-x), selects with a constant condition, and
// reductions over axes of size 1. Moves constants to the right and merges a chain of scales or of
// offsets into one. Keeps 0*x, because it is NaN where x is NaN.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph algebra(ir::Graph graph);

}  // namespace tensorgrad::passes
