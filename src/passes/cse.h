// Pass `cse`: common subexpression elimination. Afterwards no two nodes compute the same op on the
// same operands.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph cse(ir::Graph graph);

}  // namespace tensorgrad::passes
