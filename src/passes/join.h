// Pass `join`: afterwards no sum puts parts side by side: parts that are padded with zeros to lie
// next to each other and then added, as the gradient of a split is, are a concat, into which the
// work on them can move.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph join(const ir::Graph& graph);

}  // namespace tensorgrad::passes
