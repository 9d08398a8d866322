// Stage `lower`: each step of a Plan becomes a Kernel. Views turn into index maps, fused
// elementwise nodes into one scalar program; which variant of a core applies is decided here.
#pragma once

#include <vector>

#include "ir/kernel.h"
#include "schedule/plan.h"

namespace tensorgrad::kernels {

std::vector<ir::Kernel> lower(const schedule::Plan& plan);

}  // namespace tensorgrad::kernels
