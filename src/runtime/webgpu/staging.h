// Buffers for reads from the device: reused, and limited in total size.
#pragma once

#include <deque>
#include <map>

#include "runtime/webgpu/stream.h"

namespace tensorgrad::webgpu {

class Staging {
 public:
  Staging(Connection& connection, Stream& stream) : connection_(connection), stream_(stream) {}
  ~Staging();

  // Records the copy. With a target, the bytes go there instead of into the PendingRead.
  std::shared_ptr<PendingRead> read(api::Buffer from, std::uint64_t offset, std::uint64_t bytes,
                                    std::byte* target = nullptr);
  void after_submit();  // maps the buffers of the reads that were just submitted

  bool ready(PendingRead& read);
  void finish(PendingRead& read);

 private:
  using Reads = std::deque<std::shared_ptr<PendingRead>>;

  Handle<api::BufferImpl> take_buffer(std::uint64_t capacity);
  void give_back(PendingRead& read);
  void finish_oldest();

  Connection& connection_;
  Stream& stream_;
  Reads under_way_;  // in the order of the stream
  std::uint64_t bytes_under_way_ = 0;
  std::multimap<std::uint64_t, Handle<api::BufferImpl>> free_;  // by capacity
};

}  // namespace tensorgrad::webgpu
