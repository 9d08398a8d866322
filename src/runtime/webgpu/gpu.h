// A GPU as WebGPU offers it: buffers, pipelines, one stream of commands, and reads that are waited
// for late. Knows nothing about tensors.
//
// Things happen in the order of the calls. Commands are recorded until submit(); what has to come
// after them (a write, waiting for a read) submits them first. One thread at a time. Every failure
// is a DeviceError; what the device reports late is raised by the next call. Once the device is
// lost every call says so, and no wait is endless.
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
#include "tensorgrad/progress.h"

namespace tensorgrad::webgpu {

struct GpuOptions {
  int max_in_flight = 8;                     // submissions; one more waits for the oldest
  std::uint64_t staging_bytes = 64u << 20;   // for reads in flight; one more finishes the oldest
  std::chrono::seconds patience{600};        // a wait that takes longer means that the device hangs
  std::vector<std::string> enable, disable;  // switches of Dawn ("toggles") by name
};

// What a kernel does with the buffer at a binding.
enum class Access : char { read = 'r', write = 'w', uniform = 'u' };

class Buffer;
class Pipeline;
class BindGroup;
class PendingRead;

// One compute shader. Its buffers are @group(0) @binding(0), @binding(1), ... as `accesses` lists
// them.
struct PipelineSpec {
  std::string name;  // for messages
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

// Made since the device was opened.
struct Counts {
  std::int64_t dispatches = 0, passes = 0, copies = 0, submits = 0;
};

// When a dispatch ran, on the device's clock.
struct DispatchTime {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

// What tests can do to a device.
enum class Fault {
  lost,           // now
  validation,     // a command is refused: raised by the next call
  out_of_memory,  // a command runs out of memory: raised by the next call
  buffer_memory,  // the next buffer() does not get its memory
};

class Gpu {
 public:
  // The adapter with this place in adapters(), with all its limits and the features that it has of
  // timestamps, subgroups and f16.
  static std::unique_ptr<Gpu> open(std::size_t adapter = 0, const GpuOptions& options = {});
  // A WGPUDevice that the program already has, made by `library`. It is not destroyed in the end.
  static std::unique_ptr<Gpu> adopt(void* device, const Library& library,
                                    const GpuOptions& options = {});
  ~Gpu();

  // The adapter; limits and features are those of the open device.
  const AdapterInfo& info() const;
  const Limits& limits() const { return info().limits; }

  // Zeroed memory. `what` names it when it does not fit.
  std::shared_ptr<Buffer> buffer(std::uint64_t bytes, std::string_view what);
  // Raises the error for something that does not fit one binding.
  void check_binding(std::uint64_t bytes, std::string_view what) const;
  // Offsets and sizes are multiples of 4 in all of these.
  void write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> bytes);
  void read(const Buffer& from, std::uint64_t offset, std::span<std::byte> bytes);
  // The bytes as they are at this point of the stream.
  std::shared_ptr<PendingRead> read_later(const Buffer& from, std::uint64_t offset,
                                          std::uint64_t bytes);

  // Equal specs get the same pipeline while somebody holds it. Those of one call are compiled side
  // by side where the driver can. `progress` is told how many of those to compile are done.
  std::vector<std::shared_ptr<const Pipeline>> pipelines(std::span<const PipelineSpec> specs,
                                                         const CompileCallback& progress = {});
  std::shared_ptr<const Pipeline> pipeline(const PipelineSpec& spec);
  // Keeps the buffers alive.
  std::shared_ptr<const BindGroup> bind(const Pipeline& pipeline,
                                        std::span<const Binding> bindings);

  // Dispatches share a compute pass until something else is recorded.
  void dispatch(const Pipeline& pipeline, const BindGroup& buffers, std::uint32_t x,
                std::uint32_t y = 1, std::uint32_t z = 1);
  void copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to,
            std::uint64_t to_offset, std::uint64_t bytes);
  void clear(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes);
  void submit();  // at most one submit; none when nothing is recorded
  void wait();    // until all is done
  bool idle();    // nothing, or next to nothing, is left to do of what was submitted; never waits
  Counts counts() const;

  // From now on, each dispatch has a pass of its own with timestamps; needs info().timestamps.
  void profile(bool on);
  // Of the dispatches since profile(true) or the last call, in their order. Waits.
  std::vector<DispatchTime> take_times();

  void check();  // raises what the device has reported
  bool lost() const;
  void inject(Fault fault);

 private:
  friend class PendingRead;
  struct Parts;
  explicit Gpu(std::unique_ptr<Parts> parts);
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

// Bytes on their way from the device. May be dropped unread. Once its Gpu is gone, waiting for one
// that was not ready is an error.
class PendingRead {
 public:
  bool ready();                       // never waits; false as long as the read is not submitted
  std::span<const std::byte> wait();  // submits and waits where needed; valid as long as this lives

 private:
  friend class Staging;
  class Staging* staging_ = nullptr;  // null when the bytes are here
  Handle<api::BufferImpl> buffer_{nullptr, nullptr};
  std::uint64_t capacity_ = 0, size_ = 0;
  api::Future mapped_;
  bool submitted_ = false;
  std::shared_ptr<std::string> problem_ =
      std::make_shared<std::string>();  // empty when there is none
  std::vector<std::byte> bytes_;
  std::byte* target_ = nullptr;  // where the bytes go instead of bytes_
};

}  // namespace tensorgrad::webgpu
