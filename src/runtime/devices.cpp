// The list of devices and the choice by name.
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device.h"
#include "runtime/webgpu/adapters.h"
#include "support/fail.h"

namespace tensorgrad {

namespace {

int hardware_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

DeviceInfo info_of(const webgpu::AdapterInfo& adapter, std::size_t index) {
  DeviceInfo info;
  info.name = fmt::format("webgpu:{}", index);
  info.description = fmt::format("{}, {}, {}", adapter.name, adapter.type, adapter.backend);
  info.available = true;
  info.backend = adapter.backend;
  info.software = adapter.software;
  info.max_buffer_bytes = static_cast<std::int64_t>(adapter.limits.buffer_bytes);
  info.max_binding_bytes = static_cast<std::int64_t>(adapter.limits.binding_bytes);
  info.subgroups = adapter.subgroups;
  info.timestamps = adapter.timestamps;
  return info;
}

void list_webgpu(std::vector<DeviceInfo>& list) {
  DeviceInfo first;
  try {
    const auto adapters = webgpu::adapters();
    for (std::size_t i = 0; i < adapters.size(); ++i) list.push_back(info_of(adapters[i], i));
    if (adapters.empty()) {
      first.problem = webgpu::why_no_adapter();
    } else {
      first = info_of(adapters[0], 0);
    }
  } catch (const DeviceError& error) {
    first.problem = std::string(error.what()).substr(std::string_view("webgpu: ").size());
  }
  first.name = "webgpu";
  first.description = first.available ? "short for webgpu:0" : "a GPU, through WebGPU";
  list.push_back(first);
}

}  // namespace

std::vector<DeviceInfo> devices() {
  DeviceInfo cpu;
  cpu.name = "cpu";
  cpu.description = fmt::format("the CPU, {} threads", hardware_threads());
  cpu.available = true;
  cpu.chosen_by_auto = true;
  std::vector<DeviceInfo> list = {cpu};
  list_webgpu(list);
  return list;
}

namespace runtime {

std::shared_ptr<Device> open_device(const std::string& name, int threads) {
  // The place where a runtime::Device over webgpu::Gpu is made.
  if (name == "webgpu" || name.starts_with("webgpu:"))
    throw DeviceError(fmt::format("device: '{}' cannot run programs yet\n  hint: 'cpu'", name));
  if (name != "auto" && name != "cpu")
    user_error("device: '{}' is unknown\n  hint: 'auto', 'cpu', 'webgpu', 'webgpu:1'", name);
  if (threads < 0 || threads > 1024) user_error("threads: {} is not between 0 (one per core) and 1024", threads);
  const int count = threads > 0 ? threads : hardware_threads();
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Device>> open;
  std::lock_guard lock(mutex);
  std::shared_ptr<Device> device = open[count].lock();
  if (!device) open[count] = device = make_cpu_device(count);
  return device;
}

}  // namespace runtime

}  // namespace tensorgrad
