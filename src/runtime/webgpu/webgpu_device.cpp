#include "runtime/webgpu/webgpu_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
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
  const std::shared_ptr<webgpu::Buffer>& get() const { return buffer_; }
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

class GpuLoaded : public Loaded {
 public:
  GpuLoaded(std::vector<Dispatch> dispatches, CompileCallback progress_)
      : list(std::move(dispatches)), progress(std::move(progress_)) {}
  std::string text() const override {
    std::string out = fmt::format("{} dispatches in one compute pass\n", list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const wgsl::Shader& shader = list[i].shader;
      out += fmt::format("{:4}  {} x {} workgroups, {} bindings: {}\n", i, shader.workgroups[0],
                         shader.workgroups[1], shader.bindings.size(), shader.name);
    }
    return out;
  }
  std::int64_t dispatches() const override { return static_cast<std::int64_t>(list.size()); }
  std::int64_t passes() const override { return list.empty() ? 0 : 1; }
  std::int64_t submits() const override { return list.empty() ? 0 : 1; }

  std::vector<Dispatch> list;
  std::shared_ptr<webgpu::Buffer> scratch;
  CompileCallback progress;  // until the first run
  // Serials of the buffers that the bind groups refer to.
  using Serials = std::array<std::uint64_t, ir::kSpaces + 1>;
  std::optional<Serials> bound;
};

// Reports of one call, which run without the lock of the device. The first exception ends them.
struct Reports {
  CompileCallback progress;
  std::exception_ptr error;
};

class WebGpuDevice : public Device {
 public:
  WebGpuDevice(std::unique_ptr<webgpu::Gpu> gpu, std::string name, webgpu::Tuning tuning)
      : name_(std::move(name)), gpu_(std::move(gpu)), tuner_(*gpu_, tuning) {}
  // What is under way fails, also what has just arrived: nothing that waits for it may use the
  // device any more.
  ~WebGpuDevice() override {
    const auto closed = std::make_exception_ptr(
        DeviceError("webgpu: the device was closed before this was finished"));
    gpu_.reset();
    while (!later_.empty())
      for (const auto& each : std::exchange(later_, {})) each(closed);
  }

  std::string name() const override { return name_; }
  webgpu::Gpu& gpu() { return *gpu_; }
  bool lost() const {
    const auto lock = enter();
    return gpu_->lost();
  }
  int threads() const override { return 0; }
  const ir::DeviceModel& model() const override { return ir::gpu_model(); }
  bool immediate() const override { return false; }

  std::int64_t largest_buffer() const override {
    const webgpu::Limits& limits = gpu_->info().limits;
    return static_cast<std::int64_t>(std::min(limits.buffer_bytes, limits.binding_bytes) / 4) -
           kBehind;
  }

  Completion<std::shared_ptr<Buffer>> allocate(std::int64_t elements,
                                               std::string_view what) override {
    const auto lock = enter();
    const auto bytes = 4 * static_cast<std::uint64_t>(round_up(elements, 4) + kBehind);
    gpu_->check_binding(bytes, what);
    return outward(gpu_->buffer(bytes, what)
                       .map([serial = ++buffers_](std::shared_ptr<webgpu::Buffer>& buffer) {
                         return std::shared_ptr<Buffer>(
                             std::make_shared<GpuBuffer>(buffer, serial));
                       }));
  }

  void clear(Buffer& buffer) override {
    const auto lock = enter();
    gpu_->clear(*get(buffer), 0, get(buffer)->bytes());
  }

  void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) override {
    const auto lock = enter();
    if (!bytes.empty()) gpu_->write(*get(buffer), 4 * static_cast<std::uint64_t>(offset), bytes);
  }

  Completion<Done> read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> to,
                        std::shared_ptr<const void> owner) override {
    static_assert(kSnapshot == webgpu::Gpu::kPiece);
    const auto lock = enter();
    return outward(
        gpu_->read(get(buffer), 4 * static_cast<std::uint64_t>(offset), to, std::move(owner)));
  }

  // Tunes, which may measure, and generates the shaders.
  Completion<std::shared_ptr<const Emitted>> emit(std::vector<ir::Kernel> kernels, int tag,
                                                  CompileCallback progress) override {
    const auto lock = enter();
    const auto reports = reports_to(std::move(progress));
    return outward(tuner_.choose(std::move(kernels), target(0), posted(reports))
                       .map([own = target(tag)](std::vector<ir::Kernel>& tuned) {
                         return std::shared_ptr<const Emitted>(
                             std::make_shared<EmittedShaders>(std::move(tuned), own));
                       }),
                   reports);
  }

  Completion<std::shared_ptr<Loaded>> load(std::shared_ptr<const Emitted> emitted,
                                           CompileCallback progress, Combine combine) override {
    const auto lock = enter();
    const auto& code = static_cast<const EmittedShaders&>(*emitted);
    const auto out = std::make_shared<GpuLoaded>(
        combine == Combine::together ? dispatches(code) : dispatches_apart(code), progress);
    const auto reports = reports_to(std::move(progress));
    return outward(add_pipelines(out, posted(reports)), reports);
  }

  void submit(const std::shared_ptr<Loaded>& loaded, const Spaces& spaces) override {
    const auto lock = enter();
    auto& own = static_cast<GpuLoaded&>(*loaded);
    if (const auto now = serials(spaces); own.bound != now) {
      bind(own, spaces);
      own.bound = now;
    }
    if (const auto progress = std::exchange(own.progress, {}); progress && gpu_->info().software)
      return run_first(own, progress);
    for (const Dispatch& d : own.list) record(d);
    recorded_ += own.dispatches();
    if (recorded_ >= kDispatchesTogether || gpu_->idle()) {
      gpu_->submit();
      recorded_ = 0;
    }
  }

  bool full() override {
    const auto lock = enter();
    return gpu_->full();
  }

  Completion<Done> done() override {
    const auto lock = enter();
    recorded_ = 0;
    return outward(gpu_->done());
  }

  bool poll(std::chrono::nanoseconds longest) override {
    if (longest.count() == 0) {
      std::unique_lock lock(mutex_, std::try_to_lock);
      return lock && progress(std::move(lock), longest);
    }
    // Between slices, other threads get the lock: their calls must not wait for this one.
    const auto end = Clock::now() + longest;
    do {
      if (progress(std::unique_lock(mutex_), std::min<std::chrono::nanoseconds>(longest, kSlice)))
        return true;
      while (entering_ > 0 && Clock::now() < end) std::this_thread::yield();
    } while (Clock::now() < end);
    return false;
  }
  std::chrono::seconds patience() const override { return gpu_->patience(); }

  void profile(bool on) override {
    const auto lock = enter();
    if (on && !gpu_->info().timestamps)
      throw DeviceError(fmt::format("profile: {} cannot time its kernels", gpu_->info().name));
    gpu_->profile(on);
  }

  Completion<std::vector<Time>> take_times(Loaded& loaded) override {
    const auto lock = enter();
    recorded_ = 0;
    std::vector<Time> run;
    for (const Dispatch& d : static_cast<GpuLoaded&>(loaded).list)
      run.push_back({d.kernel, d.shader.name, 0});
    return outward(gpu_->take_times().map(
        [run = std::move(run)](const std::vector<webgpu::DispatchTime>& times) mutable {
          run.resize(std::min(run.size(), times.size()));
          for (std::size_t i = 0; i < run.size(); ++i)
            run[i].microseconds = static_cast<double>(times[i].end_ns - times[i].begin_ns) / 1000;
          return std::move(run);
        }));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSlice{1};

  // The lock of every call but poll(), which gives way to those who enter.
  std::unique_lock<std::mutex> enter() const {
    ++entering_;
    std::unique_lock lock(mutex_);
    --entering_;
    return lock;
  }

  // Waits with the lock, then runs what has become ready without it.
  bool progress(std::unique_lock<std::mutex> lock, std::chrono::nanoseconds longest) {
    const bool any = gpu_->poll(later_.empty() ? longest : std::chrono::nanoseconds(0));
    const auto ready = std::exchange(later_, {});
    lock.unlock();
    for (const auto& each : ready) each(nullptr);
    return any || !ready.empty();
  }

  // The completion that a caller gets: its functions run at the end of poll(), without the lock.
  template <class T>
  Completion<T> outward(const Completion<T>& inner, std::shared_ptr<Reports> reports = nullptr) {
    if (inner.ready() && !reports) return inner;
    Completion<T> out;
    inner.then([this, out, reports](const Completion<T>& self) {
      later_.push_back([self, out, reports](const std::exception_ptr& closed) {
        if (closed)
          out.set_error(closed);
        else if (reports && reports->error)
          out.set_error(reports->error);
        else
          self.pass_to(out);
      });
    });
    return out;
  }

  static std::shared_ptr<Reports> reports_to(CompileCallback progress) {
    if (!progress) return nullptr;
    return std::make_shared<Reports>(Reports{std::move(progress), nullptr});
  }
  // Passes reports on at the end of poll().
  CompileCallback posted(const std::shared_ptr<Reports>& reports) {
    if (!reports) return {};
    return [this, reports](const CompileProgress& progress) {
      if (reports->error) std::rethrow_exception(reports->error);
      later_.push_back([reports, progress](const std::exception_ptr& closed) {
        try {
          if (!closed && !reports->error) reports->progress(progress);
        } catch (...) {
          reports->error = std::current_exception();
        }
      });
    };
  }

  void record(const Dispatch& d) {
    gpu_->dispatch(*d.pipeline, *d.buffers, d.shader.workgroups[0], d.shader.workgroups[1],
                   d.shader.workgroups[2]);
  }

  // Submits each dispatch alone, because a software driver compiles a shader when it first runs.
  void run_first(const GpuLoaded& own, const CompileCallback& progress) {
    const auto report = [post = posted(reports_to(progress)),
                         total = own.dispatches()](std::int64_t done) {
      try {
        post({done, total, CompileWork::first_run});
      } catch (...) {  // nobody listens any more; the step goes on
      }
    };
    report(0);
    for (std::size_t i = 0; i < own.list.size(); ++i) {
      record(own.list[i]);
      gpu_->done().then([report, i](const Completion<Done>& done) {
        if (!done.error()) report(static_cast<std::int64_t>(i) + 1);
      });
    }
    recorded_ = 0;
  }

  static const std::shared_ptr<webgpu::Buffer>& get(const Buffer& buffer) {
    return static_cast<const GpuBuffer&>(buffer).get();
  }

  wgsl::Target target(int tag) const {
    const webgpu::Limits& limits = gpu_->info().limits;
    return {.invocations = std::min<std::int64_t>(256, limits.workgroup_invocations),
            .workgroup_bytes = limits.workgroup_bytes,
            .workgroups = limits.workgroups,
            .bindings = limits.storage_buffers,
            .tag = tag};
  }

  static std::vector<Dispatch> dispatches(const EmittedShaders& code) {
    std::vector<Dispatch> list;
    for (const wgsl::Shader& shader : code.shaders)
      list.push_back({.shader = shader, .pipeline = nullptr, .buffers = nullptr});
    return list;
  }
  std::vector<Dispatch> dispatches_apart(const EmittedShaders& code) const {
    std::vector<Dispatch> list;
    for (std::size_t k = 0; k < code.kernels.size(); ++k)
      for (wgsl::Shader& shader : wgsl::emit({&code.kernels[k], 1}, target(code.tag), code.guarded))
        list.push_back({.kernel = static_cast<std::int64_t>(k),
                        .shader = std::move(shader),
                        .pipeline = nullptr,
                        .buffers = nullptr});
    return list;
  }

  // Adds pipelines, and memory for partial results.
  Completion<std::shared_ptr<Loaded>> add_pipelines(const std::shared_ptr<GpuLoaded>& own,
                                                    const CompileCallback& progress) {
    std::int64_t scratch = 0;
    std::vector<webgpu::PipelineSpec> specs;
    for (const Dispatch& d : own->list) {
      specs.push_back(webgpu::spec_of(d.shader));
      scratch = std::max(scratch, d.shader.scratch_elements);
    }
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(round_up(scratch, 4));
    gpu_->check_binding(bytes, "partial results");
    return gpu_->pipelines(specs, progress)
        .map([this, own, bytes](const webgpu::Gpu::PipelineList& pipelines) {
          for (std::size_t i = 0; i < own->list.size(); ++i) own->list[i].pipeline = pipelines[i];
          if (bytes == 0) return Completion<std::shared_ptr<webgpu::Buffer>>(nullptr);
          return gpu_->buffer(bytes, "partial results");
        })
        .map([own](const std::shared_ptr<webgpu::Buffer>& buffer) {
          own->scratch = buffer;
          return std::shared_ptr<Loaded>(own);
        });
  }

  void bind(GpuLoaded& own, const Spaces& spaces) {
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
            bindings.push_back({get(*spaces.faults).get()});
            break;
          default: {
            const std::shared_ptr<Buffer>& buffer = spaces[usize(b.region)];
            if (!buffer)
              internal_error("{} binds {}, which has no memory", d.shader.name,
                             wgsl::name(b.region));
            bindings.push_back({get(*buffer).get()});
          }
        }
      }
      d.buffers = gpu_->bind(*d.pipeline, bindings);
    }
  }

  static GpuLoaded::Serials serials(const Spaces& spaces) {
    const auto serial = [](const std::shared_ptr<Buffer>& buffer) {
      return buffer ? static_cast<const GpuBuffer&>(*buffer).serial() : 0;
    };
    GpuLoaded::Serials out{};
    for (std::size_t i = 0; i < spaces.space.size(); ++i) out[i] = serial(spaces[i]);
    out.back() = serial(spaces.faults);
    return out;
  }

  std::string name_;
  mutable std::atomic<int> entering_{0};
  mutable std::mutex mutex_;  // of everything below
  // Runs at the end of poll(), in this order; with an error if the device is closed.
  std::vector<std::function<void(const std::exception_ptr&)>> later_;
  std::unique_ptr<webgpu::Gpu> gpu_;
  webgpu::Tuner tuner_;
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
