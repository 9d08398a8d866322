#include "runtime/webgpu/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "support/fail.h"

namespace tensorgrad::webgpu {

namespace {

constexpr std::uint64_t kLargestKept = 4u << 20;  // larger buffers are not reused
constexpr std::size_t kMostReads = 1024;          // in flight, of any size

}  // namespace

bool Staging::full() const {
  return bytes_ >= connection_.options.staging_bytes || reads_ >= kMostReads;
}

Completion<Done> Staging::read(api::Buffer from, std::uint64_t offset, std::span<std::byte> to,
                               std::shared_ptr<const void> owner) {
  const std::uint64_t capacity =
      to.size() > kLargestKept ? to.size() : std::bit_ceil(std::max<std::uint64_t>(to.size(), 256));
  auto read = std::make_shared<Read>(
      Read{{nullptr, nullptr}, capacity, to, std::move(owner), Completion<Done>(), nullptr});
  if (const auto found = free_.find(capacity); found != free_.end()) {
    read->buffer = std::move(found->second);
    free_.erase(found);
  } else {
    auto made =
        connection_.make_buffer(capacity, api::kUsageMapRead | api::kUsageCopyDst, "a read");
    // Dawn answers at once. A copy to a buffer without memory would spoil the recorded commands. A
    // page answers later: there they are refused, which the next call reports.
    if (made.checked.error()) return made.checked;
    made.checked.then(
        [read](const Completion<Done>& self) { read->without_memory = self.error(); });
    read->buffer = std::move(made.handle);
  }
  stream_.copy(from, offset, read->buffer.get(), 0, to.size());
  recorded_.push_back(read);
  ++reads_;
  bytes_ += capacity;
  return read->done;
}

void Staging::after_submit() {
  for (const std::shared_ptr<Read>& read : std::exchange(recorded_, {})) {
    const auto problem = std::make_shared<std::string>();
    api::CallbackInfo<api::BufferMapCallback> done;
    done.callback = [](api::Status status, api::StringView message, void* told, void*) {
      const auto text = taken_back<std::string>(told);
      if (status != api::Status::success)
        *text = fmt::format("webgpu: reading failed: {}", message.view());
    };
    done.userdata1 = lent(problem);
    const api::Future mapped = connection_.call.BufferMapAsync(read->buffer.get(), api::kMapRead, 0,
                                                               read->to.size(), done);
    connection_.when_queue(mapped, [this, read, problem](const std::exception_ptr& error) {
      deliver(*read,
              error || problem->empty() ? error : std::make_exception_ptr(DeviceError(*problem)));
    });
  }
}

void Staging::abort_recorded(const std::exception_ptr& error) {
  for (const std::shared_ptr<Read>& read : std::exchange(recorded_, {})) {
    give_back(*read, false);
    read->done.set_error(error);
  }
}

void Staging::deliver(Read& read, const std::exception_ptr& failure) {
  const api::Functions& call = connection_.call;
  std::exception_ptr error = read.without_memory ? read.without_memory : failure;
  if (!error && read.owner.use_count() > 1) {
    const void* from = call.BufferGetConstMappedRange(read.buffer.get(), 0, read.to.size());
    if (from)
      std::memcpy(read.to.data(), from, read.to.size());
    else
      error = std::make_exception_ptr(
          DeviceError("webgpu: reading failed: the buffer has no mapped range"));
  }
  call.BufferUnmap(read.buffer.get());
  give_back(read, !error);
  // The loss of the device is the better reason.
  if (error && !read.without_memory) try {
      connection_.watch();
    } catch (const DeviceError&) {
      error = std::current_exception();
    }
  read.owner.reset();
  error ? read.done.set_error(error) : read.done.set(Done{});
}

void Staging::give_back(Read& read, bool usable) {
  --reads_;
  bytes_ -= read.capacity;
  if (usable && read.capacity <= kLargestKept) free_.emplace(read.capacity, std::move(read.buffer));
  read.buffer.reset();
}

}  // namespace tensorgrad::webgpu
