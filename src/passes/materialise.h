// Pass `materialise`: afterwards every result is the memory of a node that computes, no two results
// share a node, and every tensor that ids index is in memory with plain strides.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph materialise(ir::Graph graph);

}  // namespace tensorgrad::passes
