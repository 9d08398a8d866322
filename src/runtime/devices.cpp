// The list of devices and the choice by name.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device.h"
#include "runtime/webgpu/adapters.h"
#include "runtime/webgpu/webgpu_device.h"
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
    const std::string_view text = error.what(), prefix = "webgpu: ";
    first.problem = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
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
  std::vector<DeviceInfo> list = {cpu};
  list_webgpu(list);
  const auto chosen = std::find_if(list.begin(), list.end(), [](const DeviceInfo& info) {
    return info.name.starts_with("webgpu:") && !info.software;
  });
  (chosen == list.end() ? list[0] : *chosen).chosen_by_auto = true;
  return list;
}

namespace runtime {

namespace {

// With others: the device that is open under that key, if there is one.
enum class Sharing : std::uint8_t { with_others, with_nobody };

template <class Make, class Usable>
std::shared_ptr<Device> obtain(Sharing sharing, const std::string& key, Make make, Usable usable) {
  if (sharing == Sharing::with_nobody) return make();
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Device>> open;
  std::lock_guard lock(mutex);
  std::shared_ptr<Device> device = open[key].lock();
  if (!device || !usable(*device)) open[key] = device = make();
  return device;
}

// The place among the adapters that "webgpu" or "webgpu:2" means.
std::optional<std::size_t> adapter_index(const std::string& name) {
  if (name == "webgpu") return 0;
  if (!name.starts_with("webgpu:") || name.size() > 9) return {};
  const std::string digits = name.substr(7);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  return static_cast<std::size_t>(std::stoul(digits));
}

std::shared_ptr<Device> open_webgpu(std::size_t index, Sharing sharing) {
  const auto adapters = webgpu::adapters();
  if (adapters.empty()) throw DeviceError("webgpu: " + webgpu::why_no_adapter());
  if (index >= adapters.size())
    user_error("device: there is no 'webgpu:{}': {} adapter{} found\n  hint: tg devices lists them", index, adapters.size(),
               adapters.size() == 1 ? " was" : "s were");
  const std::string name = fmt::format("webgpu:{}", index);
  return obtain(sharing, name, [&] { return make_webgpu_device(index, name); },
                [](Device& device) { return !is_lost(device); });
}

std::shared_ptr<Device> open(const std::string& name, int threads, Sharing sharing) {
  if (const auto index = adapter_index(name)) return open_webgpu(*index, sharing);
  if (name != "auto" && name != "cpu")
    user_error("device: '{}' is unknown\n  hint: 'auto', 'cpu', 'webgpu'", name);
  if (threads < 0 || threads > 1024) user_error("threads: {} is not between 0 (one per core) and 1024", threads);
  if (name == "auto")
    if (const auto index = webgpu::first_hardware()) return open_webgpu(*index, sharing);
  const int count = threads > 0 ? threads : hardware_threads();
  return obtain(sharing, fmt::format("cpu:{}", count), [&] { return make_cpu_device(count); },
                [](Device&) { return true; });
}

}  // namespace

// A node fits 24 bits; 0 means that nothing is noted.
std::array<std::int32_t, 2> fault_words(const IndexFailure& failure) {
  return {(failure.tag << 24) + failure.node + 1, static_cast<std::int32_t>(failure.value)};
}

std::optional<IndexFailure> Device::failure_in(std::span<const std::byte> faults) {
  std::int32_t words[2] = {};
  if (faults.size() >= sizeof words) std::memcpy(words, faults.data(), sizeof words);
  if (words[0] == 0) return {};
  return IndexFailure{words[0] >> 24, (words[0] & 0xffffff) - 1, words[1]};
}

std::shared_ptr<Device> open_device(const std::string& name, int threads) {
  return open(name, threads, Sharing::with_others);
}

std::shared_ptr<Device> open_own_device(const std::string& name, int threads) {
  return open(name, threads, Sharing::with_nobody);
}

}  // namespace runtime

}  // namespace tensorgrad
