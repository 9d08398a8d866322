// GPUs as a backend: `webgpu:0`, `webgpu:1`, ..., and `wgsl`, which only shows shaders.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/backends.h"
#include "runtime/webgpu/adapters.h"
#include "runtime/webgpu/tuner.h"
#include "runtime/webgpu/webgpu_device.h"
#include "runtime/webgpu/wgsl_device.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::runtime {

namespace {

void list(std::vector<DeviceInfo>& devices) {
  DeviceInfo first;
  try {
    const auto adapters = webgpu::adapters();
    for (std::size_t i = 0; i < adapters.size(); ++i)
      devices.push_back(webgpu::info_of(adapters[i], fmt::format("webgpu:{}", i)));
    if (adapters.empty()) {
      first.problem = webgpu::why_no_adapter();
    } else {
      first = webgpu::info_of(adapters[0], "webgpu");
    }
  } catch (const DeviceError& error) {
    const std::string_view text = error.what(), prefix = "webgpu: ";
    first.problem = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }
  first.name = "webgpu";
  first.description = first.available ? "short for webgpu:0" : "a GPU, through WebGPU";
  devices.push_back(std::move(first));
}

// The index of the adapter for "webgpu" or "webgpu:2".
std::optional<std::size_t> adapter_index(const std::string& name) {
  if (name == "webgpu") return 0;
  if (!name.starts_with("webgpu:") || name.size() > 9) return {};
  const std::string digits = name.substr(7);
  if (digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {};
  return usize(std::stoul(digits));
}

std::optional<Opening> open(const Request& request) {
  // It is never what `auto` means.
  if (request.name == kWgslDevice && !request.from_environment) return make_wgsl_device();
  const auto index = adapter_index(request.name);
  if (!index) return {};
  const auto adapters = webgpu::adapters();
  if (adapters.empty()) throw DeviceError("webgpu: " + webgpu::why_no_adapter());
  if (*index >= adapters.size())
    user_error("device: there is no 'webgpu:{}': {} adapter{} found\n  hint: tg devices lists them",
               *index, adapters.size(), adapters.size() == 1 ? " was" : "s were");
  const std::string name = fmt::format("webgpu:{}", *index);
  return obtain(
      request.sharing, name, [&] { return make_webgpu_device(*index, name); },
      [](Device& device) { return !is_lost(device); });
}

std::optional<std::string> preferred() {
  const auto index = webgpu::first_hardware();
  if (!index) return {};
  return fmt::format("webgpu:{}", *index);
}

}  // namespace

const Backend& webgpu_backend() {
  static const Backend backend = {
      .name = "webgpu",
      .list = list,
      .open = open,
      .preferred = preferred,
      .check_environment = [] { webgpu::asked_to_tune(); },
  };
  return backend;
}

}  // namespace tensorgrad::runtime
