// The list of devices and the choice by name.
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device.h"
#include "support/fail.h"

namespace tensorgrad {

namespace {

int hardware_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

std::vector<DeviceInfo> devices() {
  DeviceInfo cpu;
  cpu.name = "cpu";
  cpu.description = fmt::format("the CPU, {} threads", hardware_threads());
  cpu.available = true;
  cpu.chosen_by_auto = true;
  return {cpu};
}

namespace runtime {

std::shared_ptr<Device> open_device(const std::string& name, int threads) {
  if (name != "auto" && name != "cpu") {
    std::string known;
    for (const DeviceInfo& info : devices()) known += ", '" + info.name + "'";
    user_error("device: '{}' is unknown\n  hint: 'auto'{}", name, known);
  }
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
