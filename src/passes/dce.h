// Pass `dce`: drops the nodes that no result needs.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph dce(const ir::Graph& graph);
// The marked nodes alone; they read no others.
ir::Graph keep(const ir::Graph& graph, const std::vector<bool>& kept);

}  // namespace tensorgrad::passes
