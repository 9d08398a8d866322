// Chooses the variants of kernels, for all devices: algorithm, tiles and splits. No other code does
// this. Backends execute the choice that a kernel carries (ir/variants.h). The thresholds are in
// the device model.
#pragma once

#include "ir/device_model.h"
#include "ir/kernel.h"

namespace tensorgrad::kernels {

void choose_variants(ir::Kernel& kernel, const ir::DeviceModel& model);

}  // namespace tensorgrad::kernels
