// Run: the future of one submission. Its results stay on the device until somebody asks for them,
// or until a later run is about to overwrite them; then they are copied.
//
//   queued ──> submitted ──> succeeded ──> read
//      │        │     │       │  │   ^
//      │        │  examining  │  v   │ (somebody asks again)
//      └────────┴─────┴───────┤  no_room
//                             v
//                           failed
//
// queued: waits for its turn, its executable or room on the device. submitted: the device has it.
// succeeded: its status has arrived, and is good. read: its values have arrived. no_room: the host
// had no memory for them. examining: its status is bad, and the reason is looked for. failed: it
// has an error.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "compile/executable.h"
#include "compile/failure.h"
#include "runtime/device.h"
#include "tensorgrad/array.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

// What the device says about a run.
struct Status {
  std::array<std::byte, 4 * runtime::kFaultElements> faults{};  // bad ids
  std::int32_t behind = 0;  // 0: finite; 1: this step was not; n: the one n - 1 steps before
};

// Decides what the status of a run means. Each program is one.
class Judge {
 public:
  virtual ~Judge() = default;
  // `failure` is that of the run, and `step` its number, or -1. Returns null if the run succeeded;
  // otherwise a failure, which may be known only later.
  virtual std::shared_ptr<Failure> judge(const Status& status, std::int64_t step,
                                         const std::shared_ptr<Failure>& failure) = 0;
};

// Its driver calls all functions, while it holds the turn.
class Run : public std::enable_shared_from_this<Run> {
 public:
  enum class State : std::uint8_t {
    queued,
    submitted,
    examining,
    succeeded,
    no_room,
    read,
    failed,
  };
  enum class Wanted : std::uint8_t { nothing, status, values };

  Run(std::shared_ptr<Judge> judge, bool with_captures)
      : judge_(std::move(judge)), with_captures_(with_captures) {}

  // The device has the run. `failure` is what it fails with if its status is bad.
  void submitted(runtime::Device& device, std::shared_ptr<Executable> executable, std::int64_t step,
                 std::shared_ptr<Failure> failure);
  // Before a later run overwrites the results. Returns false until that is safe.
  bool preserve();
  void preserve_status();  // before the bad ids are cleared
  // Begins to read it. Throws if that is not possible now; the run stays as it is.
  void ask(Wanted wanted);
  // Takes what has arrived.
  void advance();
  void fail_with(std::exception_ptr error);
  void fail_with(std::shared_ptr<Failure> failure);  // a known one
  // Posts `callback` to this thread once the values are there, or an error.
  void then(std::function<void()> callback);

  State state() const { return state_; }
  bool has_ended() const { return state_ == State::read || state_ == State::failed; }
  bool was_submitted() const { return device_ != nullptr; }
  bool has(Wanted wanted) const;
  bool has_what_is_wanted() const { return has(wanted_); }
  const std::exception_ptr& error() const { return error_; }
  const std::shared_ptr<Failure>& failure() const { return failure_; }
  // Once it has succeeded. False: the step met NaN or infinity, and was skipped.
  bool finite() const { return status_->behind == 0; }
  // Once it is read.
  const NamedArrays& outputs() const { return outputs_; }
  const NamedArrays& captures() const { return captures_; }
  bool with_captures() const { return with_captures_; }

 private:
  void read_status();
  void read_values();
  void take_status();
  void take_values();
  Array value(std::int64_t offset, const ir::Type& type, std::string_view what);
  void end(State state);
  void post_callbacks();

  State state_ = State::queued;
  Wanted wanted_ = Wanted::nothing;
  std::shared_ptr<Judge> judge_;
  bool with_captures_;
  runtime::Device* device_ = nullptr;
  std::shared_ptr<Executable> executable_;
  std::int64_t step_ = -1;  // of training
  std::shared_ptr<Failure> failure_;
  std::exception_ptr error_;
  // The memory of the run, as it was when it was submitted.
  std::shared_ptr<runtime::Buffer> results_, faults_;
  // Reads own what they write to, and the run shares it.
  std::shared_ptr<Status> status_ = std::make_shared<Status>();
  std::shared_ptr<std::vector<std::byte>> values_;                          // all results
  std::optional<Completion<Done>> faults_read_, guard_read_, values_read_;  // that have begun
  NamedArrays outputs_, captures_;
  std::vector<std::pair<std::thread::id, std::function<void()>>> callbacks_;
};

}  // namespace tensorgrad::detail
