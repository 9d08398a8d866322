// Stage `differentiate`: appends the gradient of a scalar to a graph.
#pragma once

#include <vector>

#include "ops/builder.h"

namespace tensorgrad::autodiff {

// The gradient of `loss` with respect to each of the wanted nodes, in their order; zeros where the
// loss does not depend on one. Nodes that no wanted one reaches get no gradient computed.
std::vector<Tensor> differentiate(ops::Builder& builder, const Tensor& loss,
                                  const std::vector<ir::NodeId>& wanted);

}  // namespace tensorgrad::autodiff
