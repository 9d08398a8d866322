// Pass `algebra`: afterwards there is no x*1, x/1, x+0, x-0, -(-x), no choice by a number, no
// reduction over axes of size 1; numbers stand on the right, and a chain of scales or of offsets is
// one. 0*x stays: it is NaN where x is.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph algebra(const ir::Graph& graph);

}  // namespace tensorgrad::passes
