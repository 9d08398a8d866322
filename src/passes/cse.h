// Pass `cse`: afterwards no two nodes compute the same from the same operands.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph cse(const ir::Graph& graph);

}  // namespace tensorgrad::passes
