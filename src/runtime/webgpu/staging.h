// Buffers for reads from the device: reused, and limited in total size.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/webgpu/stream.h"

namespace tensorgrad::webgpu {

class Staging {
 public:
  Staging(Connection& connection, Stream& stream) : connection_(connection), stream_(stream) {}

  // Records a copy of the bytes to `to`, which `owner` keeps alive. If nobody else holds the owner
  // when they arrive, they are dropped.
  Completion<Done> read(api::Buffer from, std::uint64_t offset, std::span<std::byte> to,
                        std::shared_ptr<const void> owner);
  void after_submit();  // maps the buffers of the reads that were just submitted

  void abort_recorded(const std::exception_ptr& error);  // ends the reads that wait for a submit

  bool recorded() const { return !recorded_.empty(); }  // whether reads wait for a submit
  bool full() const;                                    // as many reads as there should be

 private:
  struct Read {
    Handle<api::BufferImpl> buffer;
    std::uint64_t capacity = 0;
    std::span<std::byte> to;
    std::shared_ptr<const void> owner;
    Completion<Done> done;
    std::exception_ptr without_memory = nullptr;
  };

  void deliver(Read& read, const std::exception_ptr& failure);
  void give_back(Read& read, bool usable);

  Connection& connection_;
  Stream& stream_;
  std::vector<std::shared_ptr<Read>> recorded_;                 // not submitted yet
  std::size_t reads_ = 0;                                       // under way, recorded ones too
  std::uint64_t bytes_ = 0;                                     // of their buffers
  std::multimap<std::uint64_t, Handle<api::BufferImpl>> free_;  // by capacity
};

}  // namespace tensorgrad::webgpu
