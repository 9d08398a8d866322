// Stage `differentiate`: appends the gradient of a scalar to a graph.
#pragma once

#include <vector>

#include "ops/builder.h"

namespace tensorgrad::autodiff {

// Returns the gradient of `loss` with respect to each wanted node, in the same order; zeros where
// the loss does not depend on a node. Computes no gradient for nodes off the paths from wanted
// nodes to the loss.
std::vector<Tensor> differentiate(ops::Builder& builder, const Tensor& loss,
                                  const std::vector<ir::NodeId>& wanted);

}  // namespace tensorgrad::autodiff
