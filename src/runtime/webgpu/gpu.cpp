#include "runtime/webgpu/gpu.h"

#include <cstring>

#include "runtime/webgpu/connection.h"
#include "runtime/webgpu/pipelines.h"
#include "runtime/webgpu/staging.h"
#include "runtime/webgpu/stream.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::webgpu {

namespace {

// Larger transfers are split, so that they need little staging memory.
constexpr std::uint64_t kPiece = 16u << 20;

[[noreturn]] void too_large(std::uint64_t bytes, std::string_view what, const char* where,
                            std::uint64_t limit, std::string_view adapter) {
  throw OutOfMemoryError(fmt::format("webgpu: too large: {} for {} in one {}; {} allows {}",
                                     in_mib(static_cast<std::int64_t>(bytes)), what, where, adapter,
                                     in_mib(static_cast<std::int64_t>(limit))));
}

void check_range(const char* what, const Buffer& buffer, std::uint64_t offset,
                 std::uint64_t bytes) {
  if (offset % 4 || bytes % 4 || offset + bytes > buffer.bytes())
    internal_error("webgpu: {} of [{}, +{}) in a buffer of {} bytes", what, offset, bytes,
                   buffer.bytes());
}

}  // namespace

struct Gpu::Parts {
  template <class... Args>
  explicit Parts(Args&&... args)
      : connection(std::forward<Args>(args)...),
        stream(connection),
        staging(connection, stream),
        pipelines(connection) {
    stream.before_submit = [this] { collect_times(); };
    stream.after_submit = [this] { staging.after_submit(); };
  }

  void collect_times();

  Connection connection;
  Stream stream;
  Staging staging;
  Pipelines pipelines;
  Handle<api::BufferImpl> resolved{nullptr, nullptr};  // timestamps
  std::vector<std::shared_ptr<PendingRead>> times;
};

std::unique_ptr<Gpu> Gpu::open(std::size_t adapter, const GpuOptions& options) {
  const Library& from = library();
  Handle<api::AdapterImpl> chosen = adapter_at(from, adapter);
  if (!chosen && adapter == 0) throw DeviceError("webgpu: " + why_no_adapter());
  if (!chosen)
    throw DeviceError(
        fmt::format("webgpu: there is no adapter {}\n  hint: tg devices lists them", adapter));
  return std::unique_ptr<Gpu>(new Gpu(std::make_unique<Parts>(from, std::move(chosen), options)));
}

std::unique_ptr<Gpu> Gpu::adopt(void* device, const Library& from, const GpuOptions& options) {
  return std::unique_ptr<Gpu>(
      new Gpu(std::make_unique<Parts>(from, static_cast<api::Device>(device), options)));
}

Gpu::Gpu(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Gpu::~Gpu() {
  try {
    parts_->stream.wait();
  } catch (const Error&) {
    // A destructor must not throw.
  }
}

const AdapterInfo& Gpu::info() const { return parts_->connection.info; }
Counts Gpu::counts() const { return parts_->stream.counts; }
void Gpu::check() { parts_->connection.check(); }
bool Gpu::lost() const { return parts_->connection.is_lost(); }
void Gpu::inject(Fault fault) { parts_->connection.inject(fault); }

// --- buffers ------------------------------------------------------------------------------------

std::shared_ptr<Buffer> Gpu::buffer(std::uint64_t bytes, std::string_view what) {
  check();
  if (bytes > limits().buffer_bytes)
    too_large(bytes, what, "buffer", limits().buffer_bytes, info().name);
  return std::make_shared<Buffer>(
      parts_->connection.make_buffer(
          bytes, api::kUsageStorage | api::kUsageUniform | api::kUsageCopySrc | api::kUsageCopyDst,
          what),
      bytes);
}

void Gpu::check_binding(std::uint64_t bytes, std::string_view what) const {
  if (bytes <= limits().binding_bytes) return;
  too_large(bytes, what, "binding", limits().binding_bytes, info().name);
}

void Gpu::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> bytes) {
  check_range("write", to, offset, bytes.size());
  check();
  submit();
  Connection& connection = parts_->connection;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), kPiece));
    connection.call.QueueWriteBuffer(connection.queue(), to.get(), offset, piece.data(),
                                     piece.size());
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
    if (piece.size() == kPiece) parts_->stream.flush_writes();
  }
}

std::shared_ptr<PendingRead> Gpu::read_later(const Buffer& from, std::uint64_t offset,
                                             std::uint64_t bytes) {
  check_range("read", from, offset, bytes);
  check();
  return parts_->staging.read(from.get(), offset, bytes);
}

void Gpu::read(const Buffer& from, std::uint64_t offset, std::span<std::byte> bytes) {
  check_range("read", from, offset, bytes.size());
  check();
  std::shared_ptr<PendingRead> last;  // copies one piece while the device sends the next
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), kPiece));
    auto next = parts_->staging.read(from.get(), offset, piece.size(), piece.data());
    submit();
    if (last) last->wait();
    last = std::move(next);
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  if (last) last->wait();
  check();
}

// --- kernels ------------------------------------------------------------------------------------

std::vector<std::shared_ptr<const Pipeline>> Gpu::pipelines(std::span<const PipelineSpec> specs,
                                                            const CompileCallback& progress) {
  check();
  return parts_->pipelines.get(specs, progress);
}

std::shared_ptr<const Pipeline> Gpu::pipeline(const PipelineSpec& spec) {
  return pipelines({&spec, 1}).front();
}

std::shared_ptr<const BindGroup> Gpu::bind(const Pipeline& pipeline,
                                           std::span<const Binding> bindings) {
  check();
  return parts_->pipelines.bind(pipeline, bindings);
}

void Gpu::dispatch(const Pipeline& pipeline, const BindGroup& buffers, std::uint32_t x,
                   std::uint32_t y, std::uint32_t z) {
  check();
  parts_->stream.dispatch(pipeline, buffers, x, y, z);
}

void Gpu::copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to,
               std::uint64_t to_offset, std::uint64_t bytes) {
  check_range("copy", from, from_offset, bytes);
  check_range("copy", to, to_offset, bytes);
  check();
  parts_->stream.copy(from.get(), from_offset, to.get(), to_offset, bytes);
}

void Gpu::clear(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  check_range("clear", buffer, offset, bytes);
  check();
  parts_->stream.clear(buffer.get(), offset, bytes);
}

void Gpu::submit() {
  check();
  parts_->stream.submit();
}

void Gpu::wait() { parts_->stream.wait(); }

bool Gpu::idle() { return parts_->stream.idle(); }

// --- times --------------------------------------------------------------------------------------

void Gpu::profile(bool on) {
  check();
  if (on && !info().timestamps)
    throw DeviceError(fmt::format("webgpu: {} has no timestamps", info().name));
  if (on && !parts_->resolved)
    parts_->resolved = parts_->connection.make_buffer(
        8 * Stream::kQueries, api::kUsageQueryResolve | api::kUsageCopySrc, "timestamps");
  parts_->stream.profile(on);
}

void Gpu::Parts::collect_times() {
  if (stream.timed() == 0) return;
  stream.resolve_times(resolved.get());
  times.push_back(staging.read(resolved.get(), 0, 16ull * stream.timed()));
}

std::vector<DispatchTime> Gpu::take_times() {
  submit();
  std::vector<DispatchTime> all;
  for (const auto& read : std::exchange(parts_->times, {})) {
    const auto bytes = read->wait();
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(DispatchTime));
    std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace tensorgrad::webgpu
