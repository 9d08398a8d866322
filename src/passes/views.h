// Pass `views`: afterwards no view changes nothing, and no reshape, permute or broadcast stands on
// one of its own kind.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph views(const ir::Graph& graph);

}  // namespace tensorgrad::passes
