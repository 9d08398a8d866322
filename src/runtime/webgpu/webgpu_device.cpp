#include "runtime/webgpu/webgpu_device.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "codegen/wgsl/shader.h"
#include "runtime/webgpu/emitted_shaders.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/shader_spec.h"
#include "runtime/webgpu/tuner.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::runtime {

namespace {

using wgsl::Region;

// Runs are submitted in batches while the device is busy: a submit costs as much as twenty
// dispatches.
constexpr std::int64_t kDispatchesTogether = 256;
// Extra elements after the requested ones, up to the next quad and one more. Shaders may access
// memory as quads, an empty tensor may be placed at the end, and a load whose guard fails reads the
// first element.
constexpr std::int64_t kBehind = 4;

class GpuBuffer : public Buffer {
 public:
  GpuBuffer(std::shared_ptr<webgpu::Buffer> buffer, std::uint64_t serial)
      : buffer_(std::move(buffer)), serial_(serial) {}
  const webgpu::Buffer& get() const { return *buffer_; }
  std::uint64_t serial() const { return serial_; }  // unique, unlike addresses, which are reused

 private:
  std::shared_ptr<webgpu::Buffer> buffer_;
  std::uint64_t serial_;
};

// One dispatch of a program.
struct Dispatch {
  std::int64_t kernel = 0;  // index among the loaded kernels
  wgsl::Shader shader;
  std::shared_ptr<const webgpu::Pipeline> pipeline;
  std::shared_ptr<const webgpu::BindGroup> buffers;
};

struct Dispatches {
  std::vector<Dispatch> list;
  std::shared_ptr<webgpu::Buffer> scratch;
  bool is_bound = false;
  bool has_run = false;
  std::array<std::uint64_t, ir::kSpaces + 1>
      bound{};  // serials of the buffers that the bind groups refer to
};

class GpuLoaded : public Loaded {
 public:
  GpuLoaded(std::shared_ptr<const EmittedShaders> emitted, CompileCallback progress_)
      : code(std::move(emitted)), progress(std::move(progress_)) {}
  std::string text() const override {
    std::string out = fmt::format("{} dispatches in one compute pass\n", together.list.size());
    for (std::size_t i = 0; i < together.list.size(); ++i) {
      const wgsl::Shader& shader = together.list[i].shader;
      out += fmt::format("{:4}  {} x {} workgroups, {} bindings: {}\n", i, shader.workgroups[0],
                         shader.workgroups[1], shader.bindings.size(), shader.name);
    }
    return out;
  }
  std::int64_t dispatches() const override {
    return static_cast<std::int64_t>(together.list.size());
  }
  std::int64_t passes() const override { return together.list.empty() ? 0 : 1; }
  std::int64_t submits() const override { return together.list.empty() ? 0 : 1; }

  const std::shared_ptr<const EmittedShaders> code;
  const CompileCallback progress;
  Dispatches together;
  std::optional<Dispatches>
      apart;  // one kernel per dispatch, to measure each kernel; created on demand
};

class GpuPending : public Pending {
 public:
  GpuPending(std::shared_ptr<webgpu::PendingRead> read, std::shared_ptr<std::recursive_mutex> mutex)
      : read_(std::move(read)), mutex_(std::move(mutex)) {}
  bool ready() override {
    std::lock_guard lock(*mutex_);
    return read_->ready();
  }
  std::span<const std::byte> wait() override {
    std::lock_guard lock(*mutex_);
    return read_->wait();
  }

 private:
  std::shared_ptr<webgpu::PendingRead> read_;
  std::shared_ptr<std::recursive_mutex> mutex_;
};

class WebGpuDevice : public Device {
 public:
  WebGpuDevice(std::unique_ptr<webgpu::Gpu> gpu, std::string name, webgpu::Tuning tuning)
      : name_(std::move(name)), gpu_(std::move(gpu)), tuner_(*gpu_, tuning) {}

  std::string name() const override { return name_; }
  webgpu::Gpu& gpu() { return *gpu_; }
  bool lost() const {
    std::lock_guard lock(*mutex_);
    return gpu_->lost();
  }
  int threads() const override { return 0; }
  const ir::DeviceModel& model() const override { return ir::gpu_model(); }
  bool immediate() const override { return false; }

  std::int64_t largest_buffer() const override {
    const webgpu::Limits& limits = gpu_->limits();
    return static_cast<std::int64_t>(std::min(limits.buffer_bytes, limits.binding_bytes) / 4) -
           kBehind;
  }

  std::unique_ptr<Buffer> allocate(std::int64_t elements, std::string_view what) override {
    std::lock_guard lock(*mutex_);
    const std::int64_t rounded = round_up(elements, 4) + kBehind;
    gpu_->check_binding(4 * static_cast<std::uint64_t>(rounded), what);
    return std::make_unique<GpuBuffer>(gpu_->buffer(4 * static_cast<std::uint64_t>(rounded), what),
                                       ++buffers_);
  }

  void clear(Buffer& buffer) override {
    std::lock_guard lock(*mutex_);
    gpu_->clear(get(buffer), 0, get(buffer).bytes());
  }

  void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) override {
    std::lock_guard lock(*mutex_);
    if (!bytes.empty()) gpu_->write(get(buffer), 4 * static_cast<std::uint64_t>(offset), bytes);
  }

  void read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> bytes) override {
    std::lock_guard lock(*mutex_);
    if (!bytes.empty()) gpu_->read(get(buffer), 4 * static_cast<std::uint64_t>(offset), bytes);
  }

  std::unique_ptr<Pending> read_later(const Buffer& buffer, std::int64_t offset,
                                      std::int64_t bytes) override {
    std::lock_guard lock(*mutex_);
    return std::make_unique<GpuPending>(
        gpu_->read_later(get(buffer), 4 * static_cast<std::uint64_t>(offset),
                         static_cast<std::uint64_t>(bytes)),
        mutex_);
  }

  // Tunes, which may measure, and generates the shaders.
  std::shared_ptr<const Emitted> emit(const std::vector<ir::Kernel>& kernels, int tag,
                                      const CompileCallback& progress) override {
    std::lock_guard lock(*mutex_);
    std::vector<ir::Kernel> tuned = kernels;
    tuner_.choose(tuned, target(0), progress);
    return std::make_shared<EmittedShaders>(std::move(tuned), target(tag));
  }

  std::shared_ptr<Loaded> load(std::shared_ptr<const Emitted> emitted,
                               const CompileCallback& progress) override {
    std::lock_guard lock(*mutex_);
    auto out = std::make_shared<GpuLoaded>(std::static_pointer_cast<const EmittedShaders>(emitted),
                                           progress);
    std::vector<Dispatch> list;
    for (const wgsl::Shader& shader : out->code->shaders)
      list.push_back({.shader = shader, .pipeline = nullptr, .buffers = nullptr});
    out->together = ready(std::move(list), progress);
    return out;
  }

  void submit(Loaded& loaded, const Spaces& spaces) override {
    std::lock_guard lock(*mutex_);
    auto& own = static_cast<GpuLoaded&>(loaded);
    if (profiling_ && !own.apart) own.apart = apart(own);
    Dispatches& run = profiling_ ? *own.apart : own.together;
    if (serials(spaces) != run.bound || !run.is_bound) bind(run, spaces);
    const bool compiles = !std::exchange(run.has_run, true) && gpu_->info().software;
    if (compiles && own.progress) return run_first(run, own.progress);
    for (const Dispatch& d : run.list) record(d);
    recorded_ += static_cast<std::int64_t>(run.list.size());
    if (recorded_ >= kDispatchesTogether || gpu_->idle()) {
      gpu_->submit();
      recorded_ = 0;
    }
  }

  void wait() override {
    std::lock_guard lock(*mutex_);
    drain();
  }

  void profile(bool on) override {
    std::lock_guard lock(*mutex_);
    if (on && !gpu_->info().timestamps)
      throw DeviceError(fmt::format("profile: {} cannot time its kernels", gpu_->info().name));
    gpu_->profile(on);
    profiling_ = on;
  }

  std::vector<Time> take_times(Loaded& loaded) override {
    std::lock_guard lock(*mutex_);
    const auto& own = static_cast<GpuLoaded&>(loaded);
    gpu_->submit();
    recorded_ = 0;
    const auto times = gpu_->take_times();
    std::vector<Time> out;
    if (!own.apart) return out;
    for (std::size_t i = 0; i < own.apart->list.size() && i < times.size(); ++i)
      out.push_back({own.apart->list[i].kernel, own.apart->list[i].shader.name,
                     static_cast<double>(times[i].end_ns - times[i].begin_ns) / 1000});
    return out;
  }

 private:
  void record(const Dispatch& d) {
    gpu_->dispatch(*d.pipeline, *d.buffers, d.shader.workgroups[0], d.shader.workgroups[1],
                   d.shader.workgroups[2]);
  }
  void drain() {
    gpu_->wait();
    recorded_ = 0;
  }

  // Runs one dispatch at a time, because a software driver compiles a shader when it first runs.
  void run_first(const Dispatches& run, const CompileCallback& progress) {
    const auto total = static_cast<std::int64_t>(run.list.size());
    bool listens = true;
    const auto report = [&](std::int64_t done) {
      try {
        if (listens) progress({done, total, CompileWork::first_run});
      } catch (...) {  // continue the run: a step must not stop halfway
        listens = false;
      }
    };
    report(0);
    for (std::int64_t i = 0; i < total; ++i) {
      record(run.list[usize(i)]);
      drain();
      report(i + 1);
    }
  }

  static const webgpu::Buffer& get(const Buffer& buffer) {
    return static_cast<const GpuBuffer&>(buffer).get();
  }

  wgsl::Target target(int tag) const {
    const webgpu::Limits& limits = gpu_->limits();
    return {.invocations = std::min<std::int64_t>(256, limits.workgroup_invocations),
            .workgroup_bytes = limits.workgroup_bytes,
            .workgroups = limits.workgroups,
            .bindings = limits.storage_buffers,
            .tag = tag};
  }

  Dispatches apart(const GpuLoaded& own) {
    const EmittedShaders& code = *own.code;
    std::vector<Dispatch> list;
    for (std::size_t k = 0; k < code.kernels.size(); ++k)
      for (wgsl::Shader& shader : wgsl::emit({&code.kernels[k], 1}, target(code.tag), code.guarded))
        list.push_back({.kernel = static_cast<std::int64_t>(k),
                        .shader = std::move(shader),
                        .pipeline = nullptr,
                        .buffers = nullptr});
    return ready(std::move(list), own.progress);
  }

  // Adds pipelines, and memory for partial results.
  Dispatches ready(std::vector<Dispatch> list, const CompileCallback& progress) {
    std::int64_t scratch = 0;
    std::vector<webgpu::PipelineSpec> specs;
    for (const Dispatch& d : list) {
      specs.push_back(webgpu::spec_of(d.shader));
      scratch = std::max(scratch, d.shader.scratch_elements);
    }
    const auto pipelines = gpu_->pipelines(specs, progress);
    for (std::size_t i = 0; i < list.size(); ++i) list[i].pipeline = pipelines[i];
    Dispatches out{.list = std::move(list), .scratch = nullptr};
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(round_up(scratch, 4));
    gpu_->check_binding(bytes, "partial results");
    if (bytes) out.scratch = gpu_->buffer(bytes, "partial results");
    return out;
  }

  void bind(Dispatches& own, const Spaces& spaces) {
    for (Dispatch& d : own.list) {
      std::vector<webgpu::Binding> bindings;
      for (const wgsl::Binding& b : d.shader.bindings) {
        switch (b.region) {
          case Region::scratch:
            bindings.push_back({own.scratch.get()});
            break;
          case Region::faults:
            if (!spaces.faults)
              internal_error("{} checks ids and has no place to note bad ones", d.shader.name);
            bindings.push_back({&get(*spaces.faults)});
            break;
          default: {
            const Buffer* buffer = spaces[usize(b.region)];
            if (!buffer)
              internal_error("{} binds {}, which has no memory", d.shader.name,
                             wgsl::name(b.region));
            bindings.push_back({&get(*buffer)});
          }
        }
      }
      d.buffers = gpu_->bind(*d.pipeline, bindings);
    }
    own.bound = serials(spaces);
    own.is_bound = true;
  }

  static std::array<std::uint64_t, ir::kSpaces + 1> serials(const Spaces& spaces) {
    const auto serial = [](const Buffer* buffer) {
      return buffer ? static_cast<const GpuBuffer*>(buffer)->serial() : 0;
    };
    std::array<std::uint64_t, ir::kSpaces + 1> out{};
    for (std::size_t i = 0; i < spaces.space.size(); ++i) out[i] = serial(spaces[i]);
    out.back() = serial(spaces.faults);
    return out;
  }

  std::string name_;
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
  std::unique_ptr<webgpu::Gpu> gpu_;
  webgpu::Tuner tuner_;
  bool profiling_ = false;
  std::int64_t recorded_ = 0;  // dispatches since the last submit
  std::uint64_t buffers_ = 0;  // number of buffers created so far
};

}  // namespace

bool is_lost(Device& device) { return static_cast<WebGpuDevice&>(device).lost(); }
webgpu::Gpu& gpu_under(Device& device) { return static_cast<WebGpuDevice&>(device).gpu(); }

std::shared_ptr<Device> make_webgpu_device(std::size_t adapter, std::string name) {
  // The shaders are generated and stay inside their buffers. Clamping every index would cost a
  // tenth of a matmul.
  webgpu::GpuOptions options;
  options.enable = {"disable_robustness"};
  std::unique_ptr<webgpu::Gpu> gpu = webgpu::Gpu::open(adapter, options);
  const webgpu::Tuning tuning = webgpu::tuning_for(gpu->info());
  return std::make_shared<WebGpuDevice>(std::move(gpu), std::move(name), tuning);
}

std::shared_ptr<Device> make_webgpu_device(std::unique_ptr<webgpu::Gpu> gpu, std::string name) {
  // Never measures: the owner of the Gpu may be waiting for it.
  const bool off = webgpu::tuning_for(gpu->info()) == webgpu::Tuning::off;
  return std::make_shared<WebGpuDevice>(std::move(gpu), std::move(name),
                                        off ? webgpu::Tuning::off : webgpu::Tuning::remember);
}

}  // namespace tensorgrad::runtime
