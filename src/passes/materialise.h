// Pass `materialise`: afterwards every result is the memory of a node that computes, each of a node
// of its own, and ids point into memory at plain strides.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph materialise(const ir::Graph& graph);

}  // namespace tensorgrad::passes
