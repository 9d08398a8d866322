// The one place where variants of kernels are chosen, for all devices: which algorithm, tiles and
// splits. Backends execute the choice that a kernel carries (ir/variants.h). The numbers that
// decide are in the device model.
#pragma once

#include "ir/device_model.h"
#include "ir/kernel.h"

namespace tensorgrad::kernels {

void choose_variants(ir::Kernel& kernel, const ir::DeviceModel& model);

}  // namespace tensorgrad::kernels
