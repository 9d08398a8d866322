// Outcome: what is behind a Result. A run leaves its numbers on the device; they are read when somebody
// asks for them, or kept aside when a later run is about to write over them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

struct Variant;

// One step or run: where its numbers are until somebody asks for them, then the numbers. Copies of a Result share it,
// on any thread; what is read once it is settled or done does not change any more.
struct Outcome {
  std::shared_ptr<std::recursive_mutex> mutex;  // the session's, which may be gone before this is
  std::shared_ptr<Session> session;  // until it is resolved
  std::shared_ptr<Program> program;
  Variant* variant = nullptr;        // of the program
  std::unique_ptr<runtime::Pending> bytes;  // its outputs, once a later run writes over them
  std::unique_ptr<runtime::Pending> faults;  // as they were after it, likewise
  std::int64_t step = -1;            // of training
  bool with_captures = false;
  std::weak_ptr<Session> watched;    // afterwards, to acknowledge the error

  bool settled = false, done = false;
  bool finite = true;
  std::int32_t behind = 0;  // 0: all is well; 1: this step was not finite; n: the one n - 1 before it
  bool told = false;        // that an id was bad, by an error of another
  std::string error;  // of a non-finite step under NonFinite::fail
  NamedArrays outputs, captures;

  void snapshot();  // keep the numbers, a later run comes; under the mutex
  void settle();    // whether it was finite; waits
  void resolve();   // all numbers; waits
  void check();     // raises the error

 private:
  Array read(std::int64_t offset, const ir::Type& type);
};

}  // namespace tensorgrad::detail
