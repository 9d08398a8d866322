// Pass `products`: afterwards a sum of products whose left sides are neighbouring columns of one matrix, and whose right
// sides are neighbouring parameters turned around, is one product. The gradient of what attention's projections read
// is such a sum.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph products(const ir::Graph& graph);

}  // namespace tensorgrad::passes
