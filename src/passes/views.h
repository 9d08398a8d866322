// Pass `views`: removes views that change nothing, and merges a reshape, permute or broadcast with
// an operand of the same kind.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph views(ir::Graph graph);

}  // namespace tensorgrad::passes
