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
  // Times on their way, one entry per submission.
  using Times = std::vector<DispatchTime>;
  std::vector<std::pair<std::shared_ptr<Times>, Completion<Done>>> times;
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
  const auto closed = std::make_exception_ptr(
      DeviceError("webgpu: the device was closed before the work finished"));
  parts_->staging.abort_recorded(closed);
  parts_->connection.abort(closed);
}

const AdapterInfo& Gpu::info() const { return parts_->connection.info; }
Counts Gpu::counts() const { return parts_->stream.counts; }
void Gpu::check() { parts_->connection.check(); }
bool Gpu::lost() const { return parts_->connection.is_lost(); }
void Gpu::inject(Fault fault) { parts_->connection.inject(fault); }

// --- buffers ------------------------------------------------------------------------------------

Completion<std::shared_ptr<Buffer>> Gpu::buffer(std::uint64_t bytes, std::string_view what) {
  check();
  if (bytes > info().limits.buffer_bytes)
    too_large(bytes, what, "buffer", info().limits.buffer_bytes, info().name);
  auto made = parts_->connection.make_buffer(
      bytes, api::kUsageStorage | api::kUsageUniform | api::kUsageCopySrc | api::kUsageCopyDst,
      what);
  const auto buffer = std::make_shared<Buffer>(std::move(made.handle), bytes);
  return made.checked.map([buffer](Done&) { return buffer; });
}

void Gpu::check_binding(std::uint64_t bytes, std::string_view what) const {
  if (bytes <= info().limits.binding_bytes) return;
  too_large(bytes, what, "binding", info().limits.binding_bytes, info().name);
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

namespace {

// A read in pieces, so that it needs little staging memory.
struct Transfer : std::enable_shared_from_this<Transfer> {
  Staging& staging;
  std::shared_ptr<const Buffer> from;
  std::uint64_t offset;
  std::span<std::byte> rest;
  std::shared_ptr<const void> owner;
  int under_way = 0;
  Completion<Done> done;

  Transfer(Staging& s, std::shared_ptr<const Buffer> f, std::uint64_t o, std::span<std::byte> to,
           std::shared_ptr<const void> own)
      : staging(s), from(std::move(f)), offset(o), rest(to), owner(std::move(own)) {}

  void advance() {
    while (!rest.empty() && (under_way == 0 || !staging.full())) {
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), Gpu::kPiece));
      const std::uint64_t at = std::exchange(offset, offset + piece.size());
      rest = rest.subspan(piece.size());
      ++under_way;
      staging.read(from->get(), at, piece, owner)
          .then([self = shared_from_this()](const Completion<Done>& one) { self->arrived(one); });
    }
  }
  void arrived(const Completion<Done>& one) {
    --under_way;
    if (one.error()) {
      rest = {};
      return done.set_error(one.error());
    }
    if (rest.empty() && under_way == 0) return done.set(Done{});
    try {
      advance();
    } catch (const Error&) {
      done.set_error(std::current_exception());
    }
  }
};

}  // namespace

Completion<Done> Gpu::read(std::shared_ptr<const Buffer> from, std::uint64_t offset,
                           std::span<std::byte> to, std::shared_ptr<const void> owner) {
  check_range("read", *from, offset, to.size());
  check();
  if (to.empty()) return Done{};
  if (to.size() <= kPiece) return parts_->staging.read(from->get(), offset, to, std::move(owner));
  const auto transfer =
      std::make_shared<Transfer>(parts_->staging, std::move(from), offset, to, std::move(owner));
  transfer->advance();
  return transfer->done;
}

// --- kernels ------------------------------------------------------------------------------------

Completion<Gpu::PipelineList> Gpu::pipelines(std::span<const PipelineSpec> specs,
                                             const CompileCallback& progress) {
  check();
  return parts_->pipelines.get(specs, progress);
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

Completion<Done> Gpu::done() {
  check();
  return parts_->stream.done();
}

bool Gpu::idle() {
  parts_->connection.poll(std::chrono::nanoseconds(0));
  return parts_->stream.in_flight() < 2;
}

bool Gpu::full() {
  const auto beyond = [&] {
    return parts_->stream.in_flight() > parts_->connection.options.max_in_flight ||
           parts_->staging.full();
  };
  if (!beyond()) return false;
  poll(std::chrono::nanoseconds(0));
  return beyond();
}

bool Gpu::poll(std::chrono::nanoseconds longest) {
  if (parts_->staging.recorded()) {
    try {
      submit();
    } catch (const DeviceError&) {
      parts_->staging.abort_recorded(std::current_exception());
      parts_->connection.abort(std::current_exception());
    }
  }
  return parts_->connection.poll(longest);
}

std::chrono::seconds Gpu::patience() const { return parts_->connection.options.patience; }

// --- times --------------------------------------------------------------------------------------

void Gpu::profile(bool on) {
  check();
  if (on && !info().timestamps)
    throw DeviceError(fmt::format("webgpu: {} has no timestamps", info().name));
  if (on && !parts_->resolved)
    parts_->resolved = parts_->connection
                           .make_buffer(8 * Stream::kQueries,
                                        api::kUsageQueryResolve | api::kUsageCopySrc, "timestamps")
                           .handle;
  parts_->stream.profile(on);
}

void Gpu::Parts::collect_times() {
  if (stream.timed() == 0) return;
  stream.resolve_times(resolved.get());
  const auto own = std::make_shared<Times>(stream.timed());
  times.emplace_back(own,
                     staging.read(resolved.get(), 0, std::as_writable_bytes(std::span(*own)), own));
}

Completion<std::vector<DispatchTime>> Gpu::take_times() {
  submit();
  std::vector<Completion<Done>> reads;
  const auto parts = std::exchange(parts_->times, {});
  for (const auto& part : parts) reads.push_back(part.second);
  return all(reads).map([parts](Done&) {
    std::vector<DispatchTime> list;
    for (const auto& [times, read] : parts) list.insert(list.end(), times->begin(), times->end());
    return list;
  });
}

}  // namespace tensorgrad::webgpu
