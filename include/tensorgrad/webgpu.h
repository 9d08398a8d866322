// Running on a WGPUDevice that the program already has, a renderer's for example. Opt-in: tensorgrad.h
// does not include this header.
//
//   WGPUDevice device = ...;       // from Dawn of spring 2025, whose header tensorgrad does not need
//   tg::WebGpuDevice gpu(device);
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}}, .device = gpu.name()}, loss);
//
// The device stays the program's: tensorgrad adds a reference, gives it back when the last program on
// it is gone, and never destroys it. Its queue may be used for other work between the calls; it is
// touched only inside calls of tensorgrad, on their thread, and may not be used on another one at
// that time unless it was made with implicit synchronization. Nobody has to process events for
// tensorgrad: it asks for its own futures until they are there.
//
// The callbacks for errors and for the loss of the device stay the program's, too. What
// tensorgrad causes is raised as a DeviceError: buffers that get no memory, shaders and commands that
// are refused are caught in error scopes; rarer ones (no memory while commands run) reach the callback
// alone. That the device is lost is noticed, but why is told to the callback, which may be called
// inside a call of tensorgrad.
//
// Limits and features are those that the program asked for: tensors may have to be smaller than on
// "webgpu" (see info()), and ProgramHandle::profile() needs timestamp queries.
#pragma once

#include <memory>
#include <string>

#include "tensorgrad/device.h"

namespace tensorgrad {

namespace runtime {
class Device;
}

// Whose functions to call. Neither is needed when the program is linked with the library that made the
// device, or loaded the one that "webgpu" uses.
struct WebGpuOptions {
  std::string library = {};          // path of the shared library that made the device
  void* get_proc_address = nullptr;  // or its wgpuGetProcAddress
};

class WebGpuDevice {
 public:
  // `device` is a WGPUDevice.
  explicit WebGpuDevice(void* device, const WebGpuOptions& options = {});

  // For TrainingOptions::device and ForwardOptions::device while this object, a copy of it or a
  // program on the device lives: "webgpu:own0".
  std::string name() const;
  // The device as it is, not what its adapter could offer.
  DeviceInfo info() const;

 private:
  std::shared_ptr<runtime::Device> device_;
};

}  // namespace tensorgrad
