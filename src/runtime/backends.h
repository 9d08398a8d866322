// The backends of a program: which kinds of devices it has. What backends() does not name is not
// linked. Native programs have all of them; the binaries of the npm package name their own, so that
// a page downloads only what it computes with (web/backends).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/shared_devices.h"
#include "tensorgrad/device.h"

namespace tensorgrad::runtime {

// What open_device() was asked for. `name` is not "auto".
struct Request {
  std::string name;
  int threads = 0;
  Sharing sharing = Sharing::with_others;
  bool from_environment = false;  // the name comes from TENSORGRAD_DEVICE
};

struct Backend {
  const char* name;  // of the device that it opens by default
  // Adds its devices to the list.
  void (*list)(std::vector<DeviceInfo>& devices);
  // Opens a device; nothing if the name is not one of its names.
  std::optional<Opening> (*open)(const Request& request);
  // The name of a device that `auto` prefers to the first backend, if there is one.
  std::optional<std::string> (*preferred)();
  // Reports wrong environment variables, whatever device is opened.
  void (*check_environment)();
};

const Backend& cpu_backend();
const Backend& webgpu_backend();

// At least one, in the order in which devices are listed.
std::span<const Backend* const> backends();

}  // namespace tensorgrad::runtime
