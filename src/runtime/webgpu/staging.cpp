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

Staging::~Staging() {
  for (const auto& read : under_way_) {
    if (read->submitted_) {
      // Cancels the request, so that its callback runs here and not when the instance ends.
      connection_.call.BufferUnmap(read->buffer_.get());
      connection_.done(read->mapped_);
    }
    *read->problem_ = "webgpu: the device was closed before the read finished";
    read->staging_ = nullptr;
    read->buffer_.reset();
  }
}

Handle<api::BufferImpl> Staging::take_buffer(std::uint64_t capacity) {
  if (const auto found = free_.find(capacity); found != free_.end()) {
    Handle<api::BufferImpl> buffer = std::move(found->second);
    free_.erase(found);
    return buffer;
  }
  return connection_.make_buffer(capacity, api::kUsageMapRead | api::kUsageCopyDst, "a read");
}

std::shared_ptr<PendingRead> Staging::read(api::Buffer from, std::uint64_t offset,
                                           std::uint64_t bytes, std::byte* target) {
  const std::uint64_t capacity =
      bytes > kLargestKept ? bytes : std::bit_ceil(std::max<std::uint64_t>(bytes, 256));
  const auto full = [&] {
    if (under_way_.empty() || (stream_.submitting() && !under_way_.front()->submitted_))
      return false;
    return bytes_under_way_ + capacity > connection_.options.staging_bytes ||
           under_way_.size() >= kMostReads;
  };
  while (full()) finish_oldest();
  auto read = std::make_shared<PendingRead>();
  read->buffer_ = take_buffer(capacity);
  read->staging_ = this;
  read->capacity_ = capacity;
  read->size_ = bytes;
  read->target_ = target;
  stream_.copy(from, offset, read->buffer_.get(), 0, bytes);
  under_way_.push_back(read);
  bytes_under_way_ += capacity;
  return read;
}

void Staging::after_submit() {
  // Unsubmitted reads are at the end.
  auto first = under_way_.end();
  while (first != under_way_.begin() && !(*std::prev(first))->submitted_) --first;
  for (; first != under_way_.end(); ++first) {
    PendingRead& read = **first;
    api::CallbackInfo<api::BufferMapCallback> done;
    done.callback = [](api::Status status, api::StringView message, void* problem, void*) {
      const auto told = taken_back<std::string>(problem);
      if (status != api::Status::success)
        *told = fmt::format("webgpu: reading failed: {}", message.view());
    };
    done.userdata1 = lent(read.problem_);
    read.submitted_ = true;
    read.mapped_ =
        connection_.call.BufferMapAsync(read.buffer_.get(), api::kMapRead, 0, read.size_, done);
  }
}

bool Staging::ready(PendingRead& read) {
  if (!read.submitted_ || !connection_.done(read.mapped_)) return false;
  finish(read);
  return true;
}

void Staging::finish(PendingRead& read) {
  if (!read.submitted_) stream_.submit();
  connection_.wait(read.mapped_, "a read");
  if (read.problem_->empty()) {
    const api::Functions& call = connection_.call;
    const void* from = call.BufferGetConstMappedRange(read.buffer_.get(), 0, read.size_);
    if (!read.target_) read.bytes_.resize(read.size_);
    if (from && read.size_)
      std::memcpy(read.target_ ? read.target_ : read.bytes_.data(), from, read.size_);
    if (!from) *read.problem_ = "webgpu: reading failed: the buffer has no mapped range";
    call.BufferUnmap(read.buffer_.get());
  } else {
    connection_.watch();  // reports a lost device instead, if that is the reason
  }
  give_back(read);
}

void Staging::finish_oldest() {
  const std::shared_ptr<PendingRead> read = under_way_.front();
  if (!read->submitted_) stream_.submit();
  if (read.use_count() > 2) return finish(*read);
  // Nobody holds this read any more. Unmapping cancels the request, which completes its future.
  connection_.call.BufferUnmap(read->buffer_.get());
  connection_.wait(read->mapped_, "a read");
  give_back(*read);
}

void Staging::give_back(PendingRead& read) {
  bytes_under_way_ -= read.capacity_;
  if (read.problem_->empty() && read.capacity_ <= kLargestKept)
    free_.emplace(read.capacity_, std::move(read.buffer_));
  read.buffer_.reset();
  read.staging_ = nullptr;
  std::erase_if(under_way_, [&](const auto& other) { return other.get() == &read; });
}

bool PendingRead::ready() { return !staging_ || staging_->ready(*this); }

std::span<const std::byte> PendingRead::wait() {
  // The caller holds this object, so it stays alive.
  if (staging_) staging_->finish(*this);
  if (!problem_->empty()) throw DeviceError(*problem_);
  return bytes_;
}

}  // namespace tensorgrad::webgpu
