// Stage `lower`: turns each step of a Plan into a Kernel. Views become index maps, fused
// elementwise nodes become one scalar program, and each kernel gets the variant that the device
// model selects.
#pragma once

#include <vector>

#include "ir/device_model.h"
#include "ir/kernel.h"
#include "schedule/plan.h"

namespace tensorgrad::kernels {

std::vector<ir::Kernel> lower(const schedule::Plan& plan, const ir::DeviceModel& model);

}  // namespace tensorgrad::kernels
