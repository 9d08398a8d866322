// Pass `attention`: replaces softmax(scale q k^T) v, with a causal mask or none, by the primitive
// attention. It runs before differentiation, so that the gradient also uses attention's kernel and
// no tensor of size [T, T] is kept. The pass leaves the ops unchanged if another node reads the
// weights or scores, or if a mask depends on an input.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph recognise_attention(ir::Graph graph);

}  // namespace tensorgrad::passes
