// The commands of a device: recorded, submitted, and waited for when too many are under way.
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
  // Hands over what writes left with the queue, and keeps their number in bounds like that of
  // submissions.
  void flush_writes();
  void wait();
  bool idle();

  // Called before commands are finished and after they were submitted.
  std::function<void()> before_submit, after_submit;

  // With timestamps: query 2i and 2i+1 of the set are for the i-th dispatch since the last submit.
  static constexpr std::uint32_t kQueries = 4096;  // as many as a set may have
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
  api::ComputePipeline pipeline_ = nullptr;  // set in the pass
  api::BindGroup buffers_ = nullptr;
  std::deque<api::Future> in_flight_;
  bool profiling_ = false, submitting_ = false;
  std::uint32_t timed_ = 0;
};

}  // namespace tensorgrad::webgpu
