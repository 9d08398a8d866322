// The command stream of a device: records and submits commands, and blocks if too many are in
// flight.
#pragma once

#include <deque>
#include <functional>

#include "runtime/webgpu/connection.h"

namespace tensorgrad::webgpu {

class Stream {
 public:
  explicit Stream(Connection& connection) : connection_(connection) {}

  void dispatch(const Pipeline& pipeline, const BindGroup& buffers, std::uint32_t x,
                std::uint32_t y, std::uint32_t z);
  void copy(api::Buffer from, std::uint64_t from_offset, api::Buffer to, std::uint64_t to_offset,
            std::uint64_t bytes);
  void clear(api::Buffer buffer, std::uint64_t offset, std::uint64_t bytes);
  bool submitting() const { return submitting_; }
  void submit();
  // Submits the writes that the queue holds, and limits how many are in flight, as for submissions.
  void flush_writes();
  void wait();
  bool idle();

  // Called before the recorded commands are finished, and after they are submitted.
  std::function<void()> before_submit, after_submit;

  // With timestamps, queries 2i and 2i+1 of the set belong to the i-th dispatch since the last
  // submit.
  static constexpr std::uint32_t kQueries = 4096;  // maximum size of a set
  void profile(bool on);
  std::uint32_t timed() const { return timed_; }
  void resolve_times(api::Buffer to);

  Counts counts;

 private:
  api::CommandEncoder encoder();
  void end_pass();
  void begin_pass();
  void track();

  Connection& connection_;
  Handle<api::CommandEncoderImpl> encoder_{nullptr, nullptr};
  Handle<api::ComputePassEncoderImpl> pass_{nullptr, nullptr};
  Handle<api::QuerySetImpl> queries_{nullptr, nullptr};
  api::ComputePipeline pipeline_ = nullptr;  // the current one of the pass
  api::BindGroup buffers_ = nullptr;
  std::deque<api::Future> in_flight_;
  bool profiling_ = false, submitting_ = false;
  std::uint32_t timed_ = 0;
};

}  // namespace tensorgrad::webgpu
