// Pass `products`: replaces a sum of matmuls by one matmul if the left operands are adjacent
// columns of one matrix and the right operands are adjacent transposed parameters. The gradient of
// the input of attention's projections is such a sum.
#pragma once

#include "ir/device_model.h"
#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph products(ir::Graph graph, const ir::DeviceModel& model);

}  // namespace tensorgrad::passes
