// Runs on a WGPUDevice that your program already has, for example that of a renderer. Opt-in:
// tensorgrad.h does not include this header.
//
//   WGPUDevice device = ...;  // from Dawn of 2026; tensorgrad does not need its header
//   tg::WebGpuDevice gpu(device);
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}}, .device = gpu.name()}, loss);
//
// Your program keeps ownership of the device: tensorgrad adds a reference, releases it when the
// last program on it is gone, and never destroys the device. Your program may use the queue for
// other work between calls. tensorgrad uses the queue only inside its calls, on the calling thread.
// Another thread must not use the queue at that time, unless the device was created with implicit
// synchronization. You need not process events for tensorgrad: it waits for its own futures.
//
// Your program also keeps its callbacks for errors and for device loss. tensorgrad throws a
// DeviceError for failures that it causes: error scopes catch buffers without memory, and refused
// shaders and commands. Rare failures (no memory while commands run) reach only your callback.
// tensorgrad notices that the device is lost, but only your callback gets the reason. That callback
// may be called inside a call of tensorgrad.
//
// Limits and features are those that your program requested. Tensors may have to be smaller than on
// "webgpu" (see info()), and ProgramHandle::profile() needs timestamp queries.
#pragma once

#include <memory>
#include <string>

#include "tensorgrad/device.h"

namespace tensorgrad {

namespace runtime {
class Device;
}

// Where the WebGPU functions come from. Neither field is needed if your program links to the
// library that created the device, or loaded the library that "webgpu" uses.
struct WebGpuOptions {
  std::string library = {};          // path of the shared library that created the device
  void* get_proc_address = nullptr;  // or its function wgpuGetProcAddress
};

// A device of your program, for use as a tensorgrad device.
class WebGpuDevice {
 public:
  // `device` is a WGPUDevice.
  explicit WebGpuDevice(void* device, const WebGpuOptions& options = {});

  // Returns the name for TrainingOptions::device and ForwardOptions::device, e.g. "webgpu:own0". It
  // is valid while this object, a copy of it or a program on the device exists.
  std::string name() const;
  // Returns the limits and features of the device, not those of its adapter.
  DeviceInfo info() const;

 private:
  std::shared_ptr<runtime::Device> device_;
};

}  // namespace tensorgrad
