// The command stream of a device: records and submits commands, and counts what is in flight.
#pragma once

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
  // Submits the writes that the queue holds. They count as a submission in flight.
  void flush_writes();
  // Submits, and completes when everything that was submitted is done.
  Completion<Done> done();
  // How many submissions are in flight, as far as poll() of the connection knows.
  int in_flight() const { return *in_flight_; }

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
  std::shared_ptr<int> in_flight_ = std::make_shared<int>(0);
  bool profiling_ = false, submitting_ = false;
  std::uint32_t timed_ = 0;
};

}  // namespace tensorgrad::webgpu
