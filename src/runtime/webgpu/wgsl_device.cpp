#include "runtime/webgpu/wgsl_device.h"

#include "runtime/webgpu/emitted_shaders.h"
#include "tensorgrad/error.h"

namespace tensorgrad::runtime {

namespace {

[[noreturn]] void cannot_run() {
  throw DeviceError("wgsl: this device only shows shaders: it cannot run them");
}

class ShownShaders : public Loaded {
 public:
  explicit ShownShaders(std::shared_ptr<const EmittedShaders> emitted)
      : emitted_(std::move(emitted)) {}
  std::string text() const override {
    return fmt::format("{} dispatches, not loaded\n", dispatches());
  }
  std::int64_t dispatches() const override {
    return static_cast<std::int64_t>(emitted_->shaders.size());
  }
  std::int64_t passes() const override { return emitted_->shaders.empty() ? 0 : 1; }
  std::int64_t submits() const override { return passes(); }

 private:
  std::shared_ptr<const EmittedShaders> emitted_;
};

class WgslDevice : public Device {
 public:
  std::string name() const override { return kWgslDevice; }
  int threads() const override { return 0; }
  const ir::DeviceModel& model() const override { return ir::gpu_model(); }
  std::int64_t largest_buffer() const override {
    return std::numeric_limits<std::int64_t>::max() / 4;
  }
  Completion<std::shared_ptr<Buffer>> allocate(std::int64_t, std::string_view) override {
    return std::make_shared<Buffer>();
  }
  Completion<std::shared_ptr<const Emitted>> emit(std::vector<ir::Kernel> kernels, int tag,
                                                  CompileCallback) override {
    return std::shared_ptr<const Emitted>(
        std::make_shared<EmittedShaders>(std::move(kernels), wgsl::Target{.tag = tag}));
  }
  Completion<std::shared_ptr<Loaded>> load(std::shared_ptr<const Emitted> emitted, CompileCallback,
                                           Combine) override {
    return std::shared_ptr<Loaded>(std::make_shared<ShownShaders>(
        std::static_pointer_cast<const EmittedShaders>(std::move(emitted))));
  }

  void clear(Buffer&) override { cannot_run(); }
  void upload(Buffer&, std::int64_t, std::span<const std::byte>) override { cannot_run(); }
  Completion<Done> read(const Buffer&, std::int64_t, std::span<std::byte>,
                        std::shared_ptr<const void>) override {
    cannot_run();
  }
  void submit(const std::shared_ptr<Loaded>&, const Spaces&) override { cannot_run(); }
  bool immediate() const override { return true; }
  bool full() override { return false; }
  Completion<Done> done() override { return Done{}; }
  bool poll(std::chrono::nanoseconds) override { return false; }
  std::chrono::seconds patience() const override { return std::chrono::seconds(0); }
  void profile(bool) override { cannot_run(); }
  Completion<std::vector<Time>> take_times(Loaded&) override { cannot_run(); }
};

}  // namespace

std::shared_ptr<Device> make_wgsl_device() { return std::make_shared<WgslDevice>(); }

}  // namespace tensorgrad::runtime
