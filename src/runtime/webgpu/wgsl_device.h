// The device "wgsl": shows shaders that every WebGPU device accepts (guaranteed workgroup limits,
// no tuning, one arena of any size). It needs no GPU and no memory, and runs nothing.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace tensorgrad::runtime {

inline constexpr const char* kWgslDevice = "wgsl";

std::shared_ptr<Device> make_wgsl_device();

}  // namespace tensorgrad::runtime
