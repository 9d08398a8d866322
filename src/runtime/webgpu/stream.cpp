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
  const bool scoped = connection_.needs_scope();
  if (scoped) connection_.begin_scope(api::ErrorFilter::validation);
  {
    const Handle<api::CommandBufferImpl> commands(
        call.CommandEncoderFinish(encoder_.get(), nullptr), call.CommandBufferRelease);
    encoder_.reset();
    const api::CommandBuffer list[] = {commands.get()};
    call.QueueSubmit(connection_.queue(), 1, list);
  }
  ++counts.submits;
  if (after_submit) after_submit();
  if (scoped) connection_.report_end_of_scope();
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
  ++*in_flight_;
  connection_.when_queue(connection_.call.QueueOnSubmittedWorkDone(connection_.queue(), done),
                         [count = in_flight_](const std::exception_ptr&) { --*count; });
}

Completion<Done> Stream::done() {
  submit();
  api::CallbackInfo<api::QueueWorkDoneCallback> nothing;
  nothing.callback = [](api::Status, api::StringView, void*, void*) {};
  Completion<Done> out;
  connection_.when_queue(
      connection_.call.QueueOnSubmittedWorkDone(connection_.queue(), nothing),
      [out](const std::exception_ptr& error) { error ? out.set_error(error) : out.set(Done{}); });
  return out;
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
