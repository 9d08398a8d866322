#include "runtime/cpu/cpu_device.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "codegen/cpu/compiled.h"
#include "runtime/cpu/pool.h"
#include "support/fail.h"

namespace tensorgrad::runtime {

namespace {

// Zeroed by the system where it can, so that large arenas cost nothing before they are used.
class CpuBuffer : public Buffer {
 public:
  explicit CpuBuffer(std::int64_t elements) {
    constexpr std::size_t kAlign = 256;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * sizeof(float);
    memory_.reset(std::calloc(bytes + kAlign, 1));
    if (!memory_) throw DeviceError(fmt::format("cpu: out of memory: {} bytes were asked for", bytes));
    void* start = memory_.get();
    std::size_t space = bytes + kAlign;
    floats_ = static_cast<float*>(std::align(kAlign, bytes, start, space));
  }
  float* data() const { return floats_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  float* floats_ = nullptr;
};

class CpuLoaded : public Loaded {
 public:
  explicit CpuLoaded(const std::vector<ir::Kernel>& kernels) {
    for (const ir::Kernel& kernel : kernels) compiled.push_back(cpu::compile(kernel));
  }
  std::int64_t dispatches() const override { return static_cast<std::int64_t>(compiled.size()); }

  std::vector<std::unique_ptr<cpu::Compiled>> compiled;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : pool_(threads) {}

  std::string name() const override { return "cpu"; }
  int threads() const override { return pool_.threads(); }

  std::unique_ptr<Buffer> allocate(std::int64_t elements) override { return std::make_unique<CpuBuffer>(elements); }

  void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(static_cast<CpuBuffer&>(buffer).data() + offset, bytes.data(), bytes.size());
  }

  void read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(bytes.data(), static_cast<const CpuBuffer&>(buffer).data() + offset, bytes.size());
  }

  std::unique_ptr<Loaded> load(const std::vector<ir::Kernel>& kernels) override {
    return std::make_unique<CpuLoaded>(kernels);
  }

  void submit(const Loaded& loaded, const Spaces& spaces) override {
    cpu::Memory memory;
    for (std::size_t i = 0; i < spaces.size(); ++i)
      memory.space[i] = spaces[i] ? static_cast<CpuBuffer*>(spaces[i])->data() : nullptr;
    const auto& own = static_cast<const CpuLoaded&>(loaded);
    for (const auto& compiled : own.compiled) {
      try {
        compiled->run(memory, pool_);
      } catch (const cpu::IndexError& e) {
        throw IndexFailure{e.node, e.value, e.extent};
      }
    }
  }

 private:
  cpu::Pool pool_;
};

}  // namespace

std::shared_ptr<Device> make_cpu_device(int threads) { return std::make_shared<CpuDevice>(threads); }

}  // namespace tensorgrad::runtime
