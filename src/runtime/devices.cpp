// Lists devices, and opens them by name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "codegen/cpu/simd.h"
#include "runtime/cpu/cores.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device.h"
#include "runtime/shared_devices.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/tuner.h"
#include "runtime/webgpu/webgpu_device.h"
#include "runtime/webgpu/wgsl_device.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad {

namespace runtime {

DeviceInfo info_of(const webgpu::AdapterInfo& adapter, std::string name) {
  DeviceInfo info;
  info.name = std::move(name);
  info.description = fmt::format("{}, {}, {}", adapter.name, adapter.type, adapter.backend);
  info.available = true;
  info.backend = adapter.backend;
  info.software = adapter.software;
  info.max_buffer_bytes = static_cast<std::int64_t>(adapter.limits.buffer_bytes);
  info.max_binding_bytes = static_cast<std::int64_t>(adapter.limits.binding_bytes);
  info.shader_f16 = adapter.shader_f16;
  info.subgroups = adapter.subgroups;
  info.subgroup_min = static_cast<int>(adapter.subgroup_min);
  info.subgroup_max = static_cast<int>(adapter.subgroup_max);
  info.matrix_shapes = adapter.matrix_shapes;
  info.timestamps = adapter.timestamps;
  return info;
}

}  // namespace runtime

namespace {

using runtime::info_of;

void list_webgpu(std::vector<DeviceInfo>& list) {
  DeviceInfo first;
  try {
    const auto adapters = webgpu::adapters();
    for (std::size_t i = 0; i < adapters.size(); ++i)
      list.push_back(info_of(adapters[i], fmt::format("webgpu:{}", i)));
    if (adapters.empty()) {
      first.problem = webgpu::why_no_adapter();
    } else {
      first = info_of(adapters[0], "webgpu");
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

namespace {

// The value of TENSORGRAD_DEVICE, which replaces `auto`; "auto" if it is not set.
std::string meaning_of_auto() {
  const char* named = std::getenv("TENSORGRAD_DEVICE");
  return named && *named ? named : "auto";
}

}  // namespace

std::vector<DeviceInfo> devices() {
  DeviceInfo cpu;
  cpu.name = "cpu";
  cpu.description = "the CPU";
  try {
    cpu.simd = cpu::simd_target();
    cpu.description += fmt::format(", {} threads, {}", cpu::usable_cores(), cpu.simd);
    cpu.available = true;
  } catch (const UserError& error) {
    cpu.problem = error.what();
  }
  std::vector<DeviceInfo> list = {cpu};
  list_webgpu(list);
  const std::string named = meaning_of_auto();
  const auto chosen = std::find_if(list.begin(), list.end(), [&](const DeviceInfo& info) {
    if (named != "auto") return info.name == (named == "webgpu" ? "webgpu:0" : named);
    return info.name.starts_with("webgpu:") && !info.software;
  });
  if (chosen != list.end())
    chosen->chosen_by_auto = true;
  else if (named == "auto")
    list[0].chosen_by_auto = true;
  return list;
}

namespace runtime {

namespace {

// The shared devices, by name.
struct Open {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Device>> by_name;
};

Open& open_devices() {
  static Open open;
  return open;
}

// with_others: reuses the open device of that name, if there is one.
enum class Sharing : std::uint8_t { with_others, with_nobody };

template <class Make, class Usable>
std::shared_ptr<Device> obtain(Sharing sharing, const std::string& name, Make make, Usable usable) {
  if (sharing == Sharing::with_nobody) return make();
  Open& open = open_devices();
  std::lock_guard lock(open.mutex);
  std::erase_if(open.by_name, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<Device> device = open.by_name[name].lock();
  if (!device || !usable(*device)) open.by_name[name] = device = make();
  return device;
}

std::shared_ptr<Device> find_own(const std::string& name) {
  Open& open = open_devices();
  std::lock_guard lock(open.mutex);
  const auto found = open.by_name.find(name);
  if (auto device = found == open.by_name.end() ? nullptr : found->second.lock()) return device;
  user_error(
      "device: there is no '{}'\n"
      "  hint: the name exists as long as its WebGpuDevice or a program on it",
      name);
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

std::shared_ptr<Device> open_webgpu(std::size_t index, Sharing sharing) {
  const auto adapters = webgpu::adapters();
  if (adapters.empty()) throw DeviceError("webgpu: " + webgpu::why_no_adapter());
  if (index >= adapters.size())
    user_error("device: there is no 'webgpu:{}': {} adapter{} found\n  hint: tg devices lists them",
               index, adapters.size(), adapters.size() == 1 ? " was" : "s were");
  const std::string name = fmt::format("webgpu:{}", index);
  return obtain(
      sharing, name, [&] { return make_webgpu_device(index, name); },
      [](Device& device) { return !is_lost(device); });
}

// The devices of add_device().
std::map<std::string, OpenDevice>& added_devices() {
  static std::map<std::string, OpenDevice> added;
  return added;
}

Opening open(const std::string& wanted, int threads, Sharing sharing) {
  webgpu::asked_to_tune();  // reports a wrong TENSORGRAD_TUNE on every device, not only on GPUs
  const std::string name = wanted == "auto" ? meaning_of_auto() : wanted;
  const auto added = added_devices().find(name);
  if (added != added_devices().end()) return added->second(threads);
  if (name.starts_with(kOwnDevice)) return find_own(name);
  if (const auto index = adapter_index(name)) return open_webgpu(*index, sharing);
  if (wanted == kWgslDevice) return make_wgsl_device();  // never what `auto` means
  if (name != "auto" && name != "cpu")
    user_error("{}: '{}' is unknown\n  hint: 'auto', 'cpu', 'webgpu'",
               name == wanted ? "device" : "TENSORGRAD_DEVICE", name);
  if (threads < 0 || threads > 1024)
    user_error("threads: {} is not between 0 (one per core) and 1024", threads);
  if (name == "auto")
    if (const auto index = webgpu::first_hardware()) return open_webgpu(*index, sharing);
  cpu::choose_simd_target();
  const int count = threads > 0 ? threads : cpu::usable_cores();
  return obtain(
      sharing, fmt::format("cpu:{}", count), [&] { return make_cpu_device(count); },
      [](Device&) { return true; });
}

}  // namespace

// A node fits 24 bits. A first word of 0 means no failure.
std::array<std::int32_t, 2> fault_words(const IndexFailure& failure) {
  return {(failure.tag << 24) + failure.node + 1, static_cast<std::int32_t>(failure.value)};
}

std::optional<IndexFailure> Device::failure_in(std::span<const std::byte> faults) {
  std::int32_t words[2] = {};
  if (faults.size() >= sizeof words) std::memcpy(words, faults.data(), sizeof words);
  if (words[0] == 0) return {};
  return IndexFailure{words[0] >> 24, (words[0] & 0xffffff) - 1, words[1]};
}

Opening open_device(const std::string& name, int threads) {
  return open(name, threads, Sharing::with_others);
}

Opening open_own_device(const std::string& name, int threads) {
  return open(name, threads, Sharing::with_nobody);
}

void share_device(const std::string& name, const std::shared_ptr<Device>& device) {
  Open& open = open_devices();
  const std::lock_guard lock(open.mutex);
  open.by_name[name] = device;
}

void add_device(const std::string& name, OpenDevice open) {
  added_devices()[name] = std::move(open);
}

}  // namespace runtime

}  // namespace tensorgrad
