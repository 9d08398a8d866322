// Lists devices, and opens them by name.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/backends.h"
#include "runtime/device.h"
#include "runtime/shared_devices.h"
#include "support/fail.h"

namespace tensorgrad {

namespace {

// The value of TENSORGRAD_DEVICE, which replaces `auto`; "auto" if it is not set.
std::string meaning_of_auto() {
  const char* named = std::getenv("TENSORGRAD_DEVICE");
  return named && *named ? named : "auto";
}

// What `auto` chooses by itself.
std::string default_device() {
  for (const runtime::Backend* backend : runtime::backends())
    if (auto name = backend->preferred()) return *name;
  return runtime::backends().front()->name;
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list;
  for (const runtime::Backend* backend : runtime::backends()) backend->list(list);
  std::string name = meaning_of_auto();
  if (name == "auto") name = default_device();
  if (name == "webgpu") name = "webgpu:0";
  for (DeviceInfo& info : list) info.chosen_by_auto = info.name == name;
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

// The devices of add_device().
std::map<std::string, OpenDevice>& added_devices() {
  static std::map<std::string, OpenDevice> added;
  return added;
}

// "'auto', 'cpu', 'webgpu'"
std::string known_names() {
  std::string names = "'auto'";
  for (const Backend* backend : backends()) names += fmt::format(", '{}'", backend->name);
  return names;
}

Opening open(const std::string& wanted, int threads, Sharing sharing) {
  for (const Backend* backend : backends()) backend->check_environment();
  std::string name = wanted == "auto" ? meaning_of_auto() : wanted;
  const auto added = added_devices().find(name);
  if (added != added_devices().end()) return added->second(threads);
  if (name.starts_with(kOwnDevice)) return find_own(name);
  const bool from_environment = name != wanted;
  if (name == "auto") name = default_device();
  if (threads < 0 || threads > 1024)
    user_error("threads: {} is not between 0 (one per core) and 1024", threads);
  for (const Backend* backend : backends())
    if (auto opening = backend->open({name, threads, sharing, from_environment}))
      return *std::move(opening);
  user_error("{}: '{}' is unknown\n  hint: {}", from_environment ? "TENSORGRAD_DEVICE" : "device",
             name, known_names());
}

}  // namespace

std::shared_ptr<Device> obtain(Sharing sharing, const std::string& name,
                               const std::function<std::shared_ptr<Device>()>& make,
                               const std::function<bool(Device&)>& usable) {
  if (sharing == Sharing::with_nobody) return make();
  Open& open = open_devices();
  std::lock_guard lock(open.mutex);
  std::erase_if(open.by_name, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<Device> device = open.by_name[name].lock();
  if (!device || !usable(*device)) open.by_name[name] = device = make();
  return device;
}

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
