// Pass `dce`: drops the nodes that no result needs.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph dce(const ir::Graph& graph);

}  // namespace tensorgrad::passes
