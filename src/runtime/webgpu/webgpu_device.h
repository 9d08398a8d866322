// A GPU as a Device: kernels become shaders, and a run becomes a list of dispatches.
#pragma once

#include <memory>
#include <string>

#include "runtime/device.h"

namespace tensorgrad::webgpu {
class Gpu;
}

namespace tensorgrad::runtime {

// Opens the adapter with this index in webgpu::adapters(). `name` is the name of the device.
std::shared_ptr<Device> make_webgpu_device(std::size_t adapter, std::string name);
// Uses a Gpu that is already open.
std::shared_ptr<Device> make_webgpu_device(std::unique_ptr<webgpu::Gpu> gpu, std::string name);

// Whether the device was lost. A lost device never runs anything again.
bool is_lost(Device& device);
// The Gpu of a device created by make_webgpu_device().
webgpu::Gpu& gpu_under(Device& device);

}  // namespace tensorgrad::runtime
