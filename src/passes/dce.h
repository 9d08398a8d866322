// Pass `dce`: removes nodes that no result needs.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph dce(ir::Graph graph);
// Keeps only the marked nodes, which must not read any other node.
ir::Graph keep(ir::Graph graph, const std::vector<bool>& kept);

}  // namespace tensorgrad::passes
