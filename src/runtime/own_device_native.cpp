// WebGpuDevice: a device that the program opened itself.
#include <fmt/format.h>

#include <atomic>

#include "runtime/shared_devices.h"
#include "runtime/webgpu/adapters.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/webgpu_device.h"
#include "support/fail.h"
#include "tensorgrad/webgpu.h"

namespace tensorgrad {

WebGpuDevice::WebGpuDevice(void* device, const WebGpuOptions& options) {
  if (!device)
    user_error("WebGpuDevice: the device is null\n  hint: did wgpuAdapterRequestDevice succeed?");
  const webgpu::Library& library =
      webgpu::library_of_program(options.library, options.get_proc_address);
  // Calling the functions of another library would crash the program.
  const std::string maker = webgpu::maker_of(device), called = webgpu::file_of(library);
  if (options.library.empty() && !options.get_proc_address && !maker.empty() && maker != called)
    user_error(
        "WebGpuDevice: the device belongs to the library {}, but the functions are those of {}\n  "
        "hint: set .library or .get_proc_address to those of the device",
        maker, called);
  static std::atomic<int> next{0};
  const std::string name = fmt::format("{}{}", runtime::kOwnDevice, next++);
  device_ = runtime::make_webgpu_device(webgpu::Gpu::adopt(device, library), name);
  runtime::share_device(name, device_);
}

std::string WebGpuDevice::name() const { return device_->name(); }
DeviceInfo WebGpuDevice::info() const {
  return webgpu::info_of(runtime::gpu_under(*device_).info(), name());
}

}  // namespace tensorgrad
