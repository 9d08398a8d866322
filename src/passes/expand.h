// Pass `expand`: rewrites each node of core `composite` with simpler ops. Afterwards there are
// none.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph expand(ir::Graph graph);

}  // namespace tensorgrad::passes
