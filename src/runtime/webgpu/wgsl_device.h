// The device "wgsl": shows the shaders that a WebGPU device with the guaranteed limits gets. It
// needs no GPU and no memory, and runs nothing.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace tensorgrad::runtime {

inline constexpr const char* kWgslDevice = "wgsl";

std::shared_ptr<Device> make_wgsl_device();

}  // namespace tensorgrad::runtime
