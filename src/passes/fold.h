// Pass `fold`: afterwards what depends on numbers alone is a number: elementwise ops and reductions
// are computed at compile time, in double, rounded once. Results that are not finite stay as they
// are, for the run to meet.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph fold(const ir::Graph& graph);

}  // namespace tensorgrad::passes
