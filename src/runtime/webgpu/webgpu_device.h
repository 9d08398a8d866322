// A GPU as a device: kernels become shaders, a run becomes a list of dispatches.
#pragma once

#include <memory>
#include <string>

#include "runtime/device.h"

namespace tensorgrad::webgpu {
class Gpu;
}

namespace tensorgrad::runtime {

// The adapter with this place in webgpu::adapters(). `name` is what the device calls itself.
std::shared_ptr<Device> make_webgpu_device(std::size_t adapter, std::string name);
// One that is open already.
std::shared_ptr<Device> make_webgpu_device(std::unique_ptr<webgpu::Gpu> gpu, std::string name);

// Whether it was lost: it will never run anything again.
bool is_lost(Device& device);
// What is under a device that make_webgpu_device() made.
webgpu::Gpu& gpu_under(Device& device);

}  // namespace tensorgrad::runtime
