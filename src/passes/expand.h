// Pass `expand`: afterwards no node is of core `composite`; each is written with simpler ops.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph expand(const ir::Graph& graph);

}  // namespace tensorgrad::passes
