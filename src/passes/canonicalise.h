// Pass `canonicalise`: algebra that matters. Afterwards there is no x*1, x/1, x+0, x-0, no view that
// changes nothing, no chain of two reshapes, permutes or broadcasts, no reduction over axes of size
// 1, and numbers are multiplied and added together at compile time.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph canonicalise(const ir::Graph& graph);

}  // namespace tensorgrad::passes
