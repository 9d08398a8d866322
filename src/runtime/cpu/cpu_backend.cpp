// The CPU as a backend: one device, `cpu`.
#include <fmt/format.h>

#include "codegen/cpu/simd.h"
#include "runtime/backends.h"
#include "runtime/cpu/cores.h"
#include "runtime/cpu/cpu_device.h"
#include "support/fail.h"

namespace tensorgrad::runtime {

namespace {

void list(std::vector<DeviceInfo>& devices) {
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
  devices.push_back(std::move(cpu));
}

std::optional<Opening> open(const Request& request) {
  if (request.name != "cpu") return {};
  cpu::choose_simd_target();
  const int count = request.threads > 0 ? request.threads : cpu::usable_cores();
  return obtain(
      request.sharing, fmt::format("cpu:{}", count), [&] { return make_cpu_device(count); },
      [](Device&) { return true; });
}

}  // namespace

const Backend& cpu_backend() {
  static const Backend backend = {
      .name = "cpu",
      .list = list,
      .open = open,
      .preferred = []() -> std::optional<std::string> { return {}; },
      .check_environment = [] {},
  };
  return backend;
}

}  // namespace tensorgrad::runtime
