// Converts two operands to a common type and a common shape.
#pragma once

#include <utility>

#include "ops/builder.h"

namespace tensorgrad::ops {

std::pair<Tensor, Tensor> promoted(const Call& call, const Operand& a, const Operand& b);

}  // namespace tensorgrad::ops
