// The CPU as a device. Submitted kernels have run when submit() returns.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace tensorgrad::runtime {

std::shared_ptr<Device> make_cpu_device(int threads);

}  // namespace tensorgrad::runtime
