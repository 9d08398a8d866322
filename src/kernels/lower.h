// Stage `lower`: each step of a Plan becomes a Kernel. Views become index maps, fused elementwise
// nodes one scalar program, and each kernel gets the variant that the device model asks for.
#pragma once

#include <vector>

#include "ir/device_model.h"
#include "ir/kernel.h"
#include "schedule/plan.h"

namespace tensorgrad::kernels {

std::vector<ir::Kernel> lower(const schedule::Plan& plan, const ir::DeviceModel& model);

}  // namespace tensorgrad::kernels
