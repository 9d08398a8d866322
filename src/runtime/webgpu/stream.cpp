#include "runtime/webgpu/stream.h"

#include "runtime/webgpu/pipelines.h"
#include "support/integers.h"

namespace tensorgrad::webgpu {

api::CommandEncoder Stream::encoder() {
  if (!encoder_) {
    const api::Functions& call = connection_.call;
    encoder_ = {call.DeviceCreateCommandEncoder(connection_.device(), nullptr),
                call.CommandEncoderRelease};
  }
  return encoder_.get();
}

void Stream::begin_pass() {
  const api::Functions& call = connection_.call;
  api::PassTimestampWrites writes;
  api::ComputePassDescriptor descriptor;
  if (profiling_) {
    writes.query_set = queries_.get();
    writes.begin_index = 2 * timed_;
    writes.end_index = 2 * timed_ + 1;
    descriptor.timestamps = &writes;
    ++timed_;
  }
  pass_ = {call.CommandEncoderBeginComputePass(encoder(), &descriptor),
           call.ComputePassEncoderRelease};
  pipeline_ = nullptr;
  buffers_ = nullptr;
  ++counts.passes;
}

void Stream::end_pass() {
  if (!pass_) return;
  connection_.call.ComputePassEncoderEnd(pass_.get());
  pass_.reset();
}

void Stream::dispatch(const Pipeline& pipeline, const BindGroup& buffers, std::uint32_t x,
                      std::uint32_t y, std::uint32_t z) {
  const api::Functions& call = connection_.call;
  if (!pass_) begin_pass();
  if (pipeline_ != pipeline.get())
    call.ComputePassEncoderSetPipeline(pass_.get(), pipeline_ = pipeline.get());
  if (buffers_ != buffers.get())
    call.ComputePassEncoderSetBindGroup(pass_.get(), 0, buffers_ = buffers.get(), 0, nullptr);
  call.ComputePassEncoderDispatchWorkgroups(pass_.get(), x, y, z);
  ++counts.dispatches;
  if (!profiling_) return;
  end_pass();
  if (2 * timed_ == kQueries) submit();
}

void Stream::copy(api::Buffer from, std::uint64_t from_offset, api::Buffer to,
                  std::uint64_t to_offset, std::uint64_t bytes) {
  end_pass();
  connection_.call.CommandEncoderCopyBufferToBuffer(encoder(), from, from_offset, to, to_offset,
                                                    bytes);
  ++counts.copies;
}

void Stream::clear(api::Buffer buffer, std::uint64_t offset, std::uint64_t bytes) {
  end_pass();
  connection_.call.CommandEncoderClearBuffer(encoder(), buffer, offset, bytes);
  ++counts.copies;
}

void Stream::submit() {
  if (!encoder_) return;
  const api::Functions& call = connection_.call;
  end_pass();
  submitting_ = true;
  if (before_submit) before_submit();
  submitting_ = false;
  timed_ = 0;
  if (connection_.adopted()) connection_.begin_scope(api::ErrorFilter::validation);
  {
    const Handle<api::CommandBufferImpl> commands(
        call.CommandEncoderFinish(encoder_.get(), nullptr), call.CommandBufferRelease);
    encoder_.reset();
    const api::CommandBuffer list[] = {commands.get()};
    call.QueueSubmit(connection_.queue(), 1, list);
  }
  ++counts.submits;
  if (connection_.adopted()) {
    if (const std::string message = connection_.end_scope(); !message.empty())
      connection_.report(api::ErrorType::validation, message);
  }
  if (after_submit) after_submit();
  track();
  connection_.watch();
}

void Stream::flush_writes() {
  connection_.call.QueueSubmit(connection_.queue(), 0, nullptr);
  track();
}

void Stream::track() {
  api::CallbackInfo<api::QueueWorkDoneCallback> done;
  done.callback = [](api::Status, api::StringView, void*, void*) {};
  in_flight_.push_back(connection_.call.QueueOnSubmittedWorkDone(connection_.queue(), done));
  while (in_flight_.size() > usize(connection_.options.max_in_flight)) {
    connection_.wait(in_flight_.front(), "a step");
    in_flight_.pop_front();
  }
}

bool Stream::idle() {
  while (!in_flight_.empty() && connection_.done(in_flight_.front())) in_flight_.pop_front();
  return in_flight_.size() < 2;
}

void Stream::wait() {
  submit();
  while (!in_flight_.empty()) {
    connection_.wait(in_flight_.front(), "a step");
    in_flight_.pop_front();
  }
  connection_.check();
}

void Stream::profile(bool on) {
  if (on == profiling_) return;
  submit();
  profiling_ = on;
  if (!on || queries_) return;
  const api::Functions& call = connection_.call;
  api::QuerySetDescriptor descriptor;
  descriptor.count = kQueries;
  queries_ = {call.DeviceCreateQuerySet(connection_.device(), &descriptor), call.QuerySetRelease};
}

void Stream::resolve_times(api::Buffer to) {
  connection_.call.CommandEncoderResolveQuerySet(encoder(), queries_.get(), 0, 2 * timed_, to, 0);
}

}  // namespace tensorgrad::webgpu
