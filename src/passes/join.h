// Pass `join`: replaces a sum of zero-padded, adjacent parts by a concat. The gradient of a split
// is such a sum. Ops on the parts can then be fused into the concat.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph join(ir::Graph graph);

}  // namespace tensorgrad::passes
