// Pass `products`: a sum of matmuls whose left operands are neighbouring columns of one matrix, and
// whose right operands are neighbouring transposed parameters, becomes one matmul. The gradient of
// what attention's projections read is such a sum.
#pragma once

#include "ir/device_model.h"
#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph products(const ir::Graph& graph, const ir::DeviceModel& model);

}  // namespace tensorgrad::passes
