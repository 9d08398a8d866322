// What devices.cpp offers to the file that opens a device of the program.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"
#include "runtime/webgpu/adapters.h"
#include "tensorgrad/device.h"

namespace tensorgrad::runtime {

// Prefix of the names that WebGpuDevice gives to devices of the program; a number follows.
inline constexpr std::string_view kOwnDevice = "webgpu:own";

// From now on, open_device() finds the device by this name, as long as it exists.
void share_device(const std::string& name, const std::shared_ptr<Device>& device);

DeviceInfo info_of(const webgpu::AdapterInfo& adapter, std::string name);

}  // namespace tensorgrad::runtime
