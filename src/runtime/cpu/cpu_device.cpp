#include "runtime/cpu/cpu_device.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/simd.h"
#include "runtime/cpu/pool.h"
#include "runtime/cpu/subnormals.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::runtime {

namespace {

// The system zeroes the memory if possible, so that large arenas cost nothing before they are used.
class CpuBuffer : public Buffer {
 public:
  CpuBuffer(std::int64_t elements, std::string_view what) {
    constexpr std::size_t kAlign = 256;
    // In WebAssembly, std::size_t has 32 bits.
    const std::int64_t bytes = std::max<std::int64_t>(elements, 1) * std::int64_t{sizeof(float)};
    if (std::cmp_less_equal(bytes, std::numeric_limits<std::size_t>::max() - kAlign))
      memory_.reset(std::calloc(usize(bytes) + kAlign, 1));
    if (!memory_)
      throw OutOfMemoryError(fmt::format("cpu: out of memory: {} for {}", in_mib(bytes), what));
    bytes_ = usize(bytes);
    void* start = memory_.get();
    std::size_t space = bytes_ + kAlign;
    floats_ = static_cast<float*>(std::align(kAlign, bytes_, start, space));
  }
  float* data() const { return floats_; }
  void clear() { std::memset(floats_, 0, bytes_); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  float* floats_ = nullptr;
  std::size_t bytes_ = 0;
};

class CpuEmitted : public Emitted {
 public:
  CpuEmitted(const std::vector<ir::Kernel>& kernels, int own_tag, const CompileCallback& progress)
      : tag(own_tag) {
    const auto report = [&] {
      if (progress)
        progress({static_cast<std::int64_t>(compiled.size()),
                  static_cast<std::int64_t>(kernels.size()), CompileWork::kernels});
    };
    report();
    for (const ir::Kernel& kernel : kernels) {
      compiled.push_back(cpu::compile(kernel));
      names.push_back(fmt::format("{}: {}", ir::kind_name(kernel), kernel.name));
      variants.push_back(ir::variant_text(kernel));
      report();
    }
  }
  // The routines are part of the program. Only their arguments are generated for a kernel.
  std::string text() const override {
    std::string out = fmt::format("{} vector instructions\n", cpu::simd_target());
    for (std::size_t i = 0; i < names.size(); ++i)
      out +=
          fmt::format("{:4}  {}{}{}\n", i, names[i], variants[i].empty() ? "" : "; ", variants[i]);
    return out;
  }

  std::vector<std::unique_ptr<cpu::Compiled>> compiled;
  std::vector<std::string> names, variants;
  int tag;
};

class CpuLoaded : public Loaded {
 public:
  explicit CpuLoaded(std::shared_ptr<const CpuEmitted> emitted) : code(std::move(emitted)) {}
  std::int64_t dispatches() const override {
    return static_cast<std::int64_t>(code->compiled.size());
  }
  std::string text() const override {
    return fmt::format("{} kernels, called one after the other\n", dispatches());
  }

  const std::shared_ptr<const CpuEmitted> code;
  std::vector<Device::Time> times;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : pool_(threads) {}

  std::string name() const override { return "cpu"; }
  int threads() const override { return pool_.threads(); }
  const ir::DeviceModel& model() const override {
    if (cpu::uses_amx_always()) return ir::cpu_model(ir::CpuUnits::amx);
    return ir::cpu_model(cpu::uses_amx() ? ir::CpuUnits::vectors_and_amx : ir::CpuUnits::vectors);
  }

  void clear(Buffer& buffer) override { static_cast<CpuBuffer&>(buffer).clear(); }
  std::int64_t largest_buffer() const override {
    return std::numeric_limits<std::int64_t>::max() / 4;
  }
  Completion<std::shared_ptr<Buffer>> allocate(std::int64_t elements,
                                               std::string_view what) override {
    return std::shared_ptr<Buffer>(std::make_shared<CpuBuffer>(elements, what));
  }

  void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) override {
    if (!bytes.empty())
      std::memcpy(static_cast<CpuBuffer&>(buffer).data() + offset, bytes.data(), bytes.size());
  }

  Completion<Done> read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> to,
                        std::shared_ptr<const void>) override {
    if (!to.empty())
      std::memcpy(to.data(), static_cast<const CpuBuffer&>(buffer).data() + offset, to.size());
    return Done{};
  }

  Completion<std::shared_ptr<const Emitted>> emit(std::vector<ir::Kernel> kernels, int tag,
                                                  CompileCallback progress) override {
    return std::shared_ptr<const Emitted>(std::make_shared<CpuEmitted>(kernels, tag, progress));
  }
  Completion<std::shared_ptr<Loaded>> load(std::shared_ptr<const Emitted> emitted, CompileCallback,
                                           Combine) override {
    return std::shared_ptr<Loaded>(
        std::make_shared<CpuLoaded>(std::static_pointer_cast<const CpuEmitted>(emitted)));
  }

  bool immediate() const override { return true; }
  bool full() override { return false; }
  Completion<Done> done() override { return Done{}; }
  bool poll(std::chrono::nanoseconds) override { return false; }
  std::chrono::seconds patience() const override { return std::chrono::seconds(600); }

  void submit(const std::shared_ptr<Loaded>& loaded, const Spaces& spaces) override {
    cpu::Memory memory;
    for (std::size_t i = 0; i < memory.space.size(); ++i)
      memory.space[i] = spaces[i] ? static_cast<CpuBuffer*>(spaces[i].get())->data() : nullptr;
    auto& own = static_cast<CpuLoaded&>(*loaded);
    const CpuEmitted& code = *own.code;
    own.times.clear();
    const bool profiling = profiling_;
    const cpu::Pool::Step step(pool_);
    const cpu::FlushSubnormals flush;  // also between the rounds of the pool
    for (std::size_t i = 0; i < code.compiled.size(); ++i) {
      try {
        if (profiling)
          own.times.push_back(
              {static_cast<std::int64_t>(i), code.names[i], time_of(*code.compiled[i], memory)});
        else
          code.compiled[i]->run(memory, pool_);
      } catch (const cpu::IndexError& e) {
        const auto words = fault_words({code.tag, e.node, e.value});
        if (spaces.faults) upload(*spaces.faults, 0, std::as_bytes(std::span(words)));
        return;
      }
    }
  }

  void profile(bool on) override { profiling_ = on; }
  Completion<std::vector<Time>> take_times(Loaded& loaded) override {
    return static_cast<CpuLoaded&>(loaded).times;
  }

 private:
  double time_of(const cpu::Compiled& kernel, const cpu::Memory& memory) {  // in microseconds
    const auto start = std::chrono::steady_clock::now();
    kernel.run(memory, pool_);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
  }

  std::atomic<bool> profiling_ = false;  // set by any of the programs that share the device
  cpu::Pool pool_;
};

}  // namespace

std::shared_ptr<Device> make_cpu_device(int threads) {
  return std::make_shared<CpuDevice>(threads);
}

}  // namespace tensorgrad::runtime
