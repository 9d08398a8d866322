// Pass `fold`: constant folding. Elementwise ops and reductions of constants become constants,
// computed at compile time in double and rounded once. An op with a non-finite result is kept and
// computed at run time.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph fold(ir::Graph graph);

}  // namespace tensorgrad::passes
