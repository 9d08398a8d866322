// The open devices, which programs share: what devices.cpp offers to the files that open devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"

namespace tensorgrad::runtime {

// with_others: reuses the open device of that name, if there is one.
enum class Sharing : std::uint8_t { with_others, with_nobody };

// The open device of that name if it is to be shared and is usable; otherwise what make() returns.
std::shared_ptr<Device> obtain(Sharing sharing, const std::string& name,
                               const std::function<std::shared_ptr<Device>()>& make,
                               const std::function<bool(Device&)>& usable);

// Prefix of the names that WebGpuDevice gives to devices of the program; a number follows.
inline constexpr std::string_view kOwnDevice = "webgpu:own";

// From now on, open_device() finds the device by this name, as long as it exists.
void share_device(const std::string& name, const std::shared_ptr<Device>& device);

}  // namespace tensorgrad::runtime
