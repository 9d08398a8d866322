// Outcome: the state behind a Result. A run leaves its results on the device. They are read when
// the user asks for them, or copied when a later run is about to overwrite them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

struct Executable;

// A copy of bytes of the device, on its way.
class Snapshot {
 public:
  Snapshot(runtime::Device& device, const runtime::Buffer& buffer, std::int64_t elements);
  std::span<const std::byte> wait() const;

 private:
  runtime::Device& device_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  Completion<Done> read_;
};

// The results of one step or run: their place on the device until they are read, then the values.
// Copies of a Result share it, on any thread. Values that are read once it is settled or done do
// not change any more.
struct Outcome {
  std::shared_ptr<std::recursive_mutex> mutex;  // the session's; it may outlive the session
  std::shared_ptr<Session> session;             // until it is resolved
  std::shared_ptr<Program> program;
  Executable* executable = nullptr;  // of the program
  std::optional<Snapshot> bytes;     // its outputs, once a later run overwrites them
  std::optional<Snapshot> faults;    // the fault buffer after this run, likewise
  std::int64_t step = -1;            // of training
  bool with_captures = false;
  std::weak_ptr<Session> watched;  // set once resolved, to acknowledge the error

  bool settled = false, done = false;
  bool finite = true;
  std::int32_t behind =
      0;              // 0: finite; 1: this step was not finite; n: the step n - 1 before it was not
  bool told = false;  // another error has already reported the bad id
  std::string error;  // of a non-finite step under NonFinite::fail
  NamedArrays outputs, captures;

  void snapshot();  // copies the results before a later run; hold the mutex
  void settle();    // blocks; finds out whether it was finite
  void resolve();   // blocks; reads all results
  void check();     // throws the error

 private:
  Array read(std::int64_t offset, const ir::Type& type, std::string_view what);
};

}  // namespace tensorgrad::detail
