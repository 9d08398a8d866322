// Driver: the state of a model on a device, and the queue of what its programs were asked to do.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compile/model_state.h"
#include "compile/queue.h"
#include "compile/run.h"
#include "runtime/device.h"
#include "support/turn.h"
#include "support/wait.h"
#include "tensorgrad/future.h"

namespace tensorgrad::detail {

// Whoever reads or changes a model holds the turn of its driver. Tasks only look at completions of
// the device, in advance(). Programs refer to their driver; the handles of the user keep both.
class Driver : public Pollable, public std::enable_shared_from_this<Driver> {
 public:
  static std::shared_ptr<Driver> make(runtime::Opening opening, Parameters parameters,
                                      std::uint64_t id, std::uint32_t seed);
  ~Driver() override;  // ends everything that is under way with the error gone()
  static std::exception_ptr gone();

  std::uint64_t id() const { return id_; }
  // Done when the device is open. device() is there only then.
  Completion<Done> open();
  runtime::Device& device() const { return *shared_device(); }
  const std::shared_ptr<runtime::Device>& shared_device() const { return opening_.device.get(); }
  ModelState& state() { return state_; }
  const ModelState& state() const { return state_; }
  Turn& turn() const { return turn_; }
  // The steps enqueued so far. Takes the turn, unless this thread has it.
  std::int64_t steps() const;

  bool poll(std::chrono::nanoseconds longest) override;
  std::chrono::seconds patience() const override;
  bool busy() const override;

  // The following need the turn.
  Queue& queue() { return queue_; }
  // Does what can be done by now; returns false if there was nothing. Not from inside a task.
  bool advance();
  // Reads what is wanted of a run. Keeps the run until it is there.
  void ask(const std::shared_ptr<Run>& run, Run::Wanted wanted);
  // Makes a call now, or queues it behind what is queued. If it then throws, the next run or future
  // fails with that: take_late().
  void in_order(std::function<void()> call);
  std::exception_ptr take_late();
  // steps() includes a queued step as long as this exists.
  std::shared_ptr<void> queued_step();
  // A call that may be queued sets the number of steps: steps() counts from there. When the call
  // was made, the returned object goes.
  std::shared_ptr<void> restart_steps(std::int64_t steps);

  // The failure of a training step that was not reported yet, or null.
  std::shared_ptr<Failure> training_failure;

  // Done in the next poll(). A task that computes in the calling thread waits for it between its
  // parts, so that no call takes long.
  Completion<Done> next_poll();

  // Adds a task of these steps. The value of the future is what `finish` returns. Takes the turn.
  template <class Finish>
  auto start(std::vector<TaskStep> steps, Finish finish, std::string_view what)
      -> Future<std::invoke_result_t<Finish>> {
    const Completion<std::invoke_result_t<Finish>> done;
    return start(done,
                 sequence(
                     std::move(steps), [done, finish = std::move(finish)] { done.set(finish()); },
                     [done](const std::exception_ptr& error) { done.set_error(error); }),
                 what);
  }
  // Adds a task that completes `done`, also with an error. Takes the turn.
  template <class T>
  Future<T> start(const Completion<T>& done, Task task, std::string_view what) {
    const std::lock_guard lock(turn_);
    if (const auto late = take_late()) {
      task.on_error(late);
      task = {};  // what it holds goes under the turn
    } else {
      queue_.add(std::move(task));
      advance();
    }
    return {done, shared_from_this(), what};
  }

 private:
  bool advance_runs();
  Pollable* source() const;

  Driver(runtime::Opening opening, Parameters parameters, std::uint64_t id, std::uint32_t seed);

  std::uint64_t id_;
  runtime::Opening opening_;
  mutable Turn turn_;
  ModelState state_;
  Queue queue_;
  std::shared_ptr<std::int64_t> queued_steps_ = std::make_shared<std::int64_t>(0);
  std::shared_ptr<std::int64_t> restart_;    // by the last queued call that sets the steps
  std::vector<std::shared_ptr<Run>> asked_;  // runs whose status or values are on their way
  std::exception_ptr late_;
  std::optional<Completion<Done>> next_poll_;
};

}  // namespace tensorgrad::detail
