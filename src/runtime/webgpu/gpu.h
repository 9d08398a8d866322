// A GPU behind WebGPU: buffers, pipelines, one stream of commands, and asynchronous reads. Knows
// nothing about tensors.
//
// Calls take effect in order. Commands are recorded until submit(). A call that must come after
// them (a write, poll() if a read is recorded) submits them first. No call blocks, except poll() if
// it is asked to. Completions are completed inside poll(), or are ready when a call returns them.
// Use it from one thread at a time. Every failure is a DeviceError. The device reports some errors
// asynchronously: they end what is under way, or else the next call throws them. After the device
// is lost, every call throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/webgpu/adapters.h"
#include "support/wait.h"
#include "tensorgrad/completion.h"
#include "tensorgrad/progress.h"

namespace tensorgrad::webgpu {

struct GpuOptions {
  int max_in_flight = 8;                    // submissions; with more it is full()
  std::uint64_t staging_bytes = 64u << 20;  // for reads in flight; with more it is full()
  std::chrono::seconds patience{600};  // time limit of a wait; longer means that the device hangs
  std::vector<std::string> enable, disable;  // names of Dawn's toggles
};

// How a kernel accesses the buffer of a binding.
enum class Access : char { read = 'r', write = 'w', uniform = 'u' };

class Buffer;
class Pipeline;
class BindGroup;

// One compute shader. Its buffers are @group(0) @binding(0), @binding(1), ... in the order of
// `accesses`.
struct PipelineSpec {
  std::string name;  // for error messages
  std::string wgsl;
  std::vector<Access> accesses;
  std::string entry = "main";
  std::vector<std::pair<std::string, double>> overrides;
};

// The part of a buffer that a kernel sees. The offset is a multiple of Limits::binding_alignment.
struct Binding {
  const Buffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0: up to the end
};

// Counts since the device was opened.
struct Counts {
  std::int64_t dispatches = 0, passes = 0, copies = 0, submits = 0;
};

// When a dispatch ran, on the device's clock.
struct DispatchTime {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

// Faults that tests can inject.
enum class Fault {
  lost,           // the device is lost now
  validation,     // a command is refused; the next call throws
  out_of_memory,  // a command runs out of memory; the next call throws
  buffer_memory,  // the next buffer() runs out of memory
};

class Gpu : public Pollable {
 public:
  // Opens the adapter with this index in adapters(), with all its limits and, if it has them,
  // timestamps, subgroups and f16.
  static std::unique_ptr<Gpu> open(std::size_t adapter = 0, const GpuOptions& options = {});
  // Uses a WGPUDevice of the program, created by `library`. Never destroys it.
  static std::unique_ptr<Gpu> adopt(void* device, const Library& library,
                                    const GpuOptions& options = {});
  ~Gpu() override;  // what is under way fails

  // Describes the adapter. Limits and features are those of the open device.
  const AdapterInfo& info() const;

  // Allocates zeroed memory. `what` names it in errors.
  Completion<std::shared_ptr<Buffer>> buffer(std::uint64_t bytes, std::string_view what);
  // Throws if something of this size does not fit one binding.
  void check_binding(std::uint64_t bytes, std::string_view what) const;
  // Offsets and sizes are multiples of 4 in all of the following.
  void write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> bytes);
  // Reads the bytes as of this point of the stream. `owner` keeps `to` alive; if nobody else holds
  // it, the bytes are dropped. A read of more than Gpu::kPiece goes piece by piece: do not change
  // the buffer until it is done.
  Completion<Done> read(std::shared_ptr<const Buffer> from, std::uint64_t offset,
                        std::span<std::byte> to, std::shared_ptr<const void> owner);
  static constexpr std::uint64_t kPiece = 16u << 20;

  // Equal specs share a pipeline as long as one is in use. The pipelines of one call compile in
  // parallel if the driver can. `progress` reports how many are compiled; an exception of it is the
  // error of the completion.
  using PipelineList = std::vector<std::shared_ptr<const Pipeline>>;
  Completion<PipelineList> pipelines(std::span<const PipelineSpec> specs,
                                     const CompileCallback& progress = {});
  // The group keeps the buffers alive.
  std::shared_ptr<const BindGroup> bind(const Pipeline& pipeline,
                                        std::span<const Binding> bindings);

  // Consecutive dispatches share a compute pass.
  void dispatch(const Pipeline& pipeline, const BindGroup& buffers, std::uint32_t x,
                std::uint32_t y = 1, std::uint32_t z = 1);
  void copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to,
            std::uint64_t to_offset, std::uint64_t bytes);
  void clear(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes);
  void submit();            // does nothing if nothing is recorded
  Completion<Done> done();  // submits; ready when all submitted work is done
  bool idle();              // whether almost all submitted work is done
  bool full();              // whether more is in flight than there should be
  Counts counts() const;

  // From now on, each dispatch has its own pass with timestamps. Needs info().timestamps.
  void profile(bool on);
  // The times of the dispatches since profile(true) or the last call, in order.
  Completion<std::vector<DispatchTime>> take_times();

  bool poll(std::chrono::nanoseconds longest) override;
  std::chrono::seconds patience() const override;

  bool lost() const;
  void inject(Fault fault);

 private:
  struct Parts;
  explicit Gpu(std::unique_ptr<Parts> parts);
  void check();  // throws reported errors
  std::unique_ptr<Parts> parts_;
};

class Buffer {
 public:
  Buffer(Handle<api::BufferImpl> handle, std::uint64_t bytes)
      : handle_(std::move(handle)), bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }
  api::Buffer get() const { return handle_.get(); }

 private:
  Handle<api::BufferImpl> handle_;
  std::uint64_t bytes_;
};

}  // namespace tensorgrad::webgpu
