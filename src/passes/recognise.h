// Pass `attention`: afterwards softmax(scale q k^T) v that is written out, with a causal mask or
// none, is the primitive attention. It runs before differentiation, so that the gradient is
// attention's, too, and nothing of size [T, T] is kept. It stays as it was written where somebody
// else reads weights or scores, or a mask depends on an input.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph recognise_attention(const ir::Graph& graph);

}  // namespace tensorgrad::passes
