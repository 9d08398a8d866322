// Measures the kernels of a program one by one.
#include <algorithm>
#include <utility>

#include "compile/program.h"
#include "support/fail.h"

namespace tensorgrad::detail {

// A task of the driver. What is asked for meanwhile is queued behind it.
//
//   loading ──> draining ──> submitting ──> reading ──> finished
//                  ^                           │
//                  └───────── more steps ──────┘
//
// loading: kernels are compiled with a dispatch for each. draining: waits until the device is idle,
// so that nothing else is measured. submitting: waits for what submit() waits for. reading: the
// device has the run; its times and its status are on their way.
class Program::Profile {
 public:
  Profile(std::shared_ptr<Program> program, Submission submission, int steps)
      : program_(std::move(program)),
        submission_(std::move(submission)),
        steps_(steps),
        left_(steps) {
    const std::int64_t runs = program_->runs_until(steps);
    if (program_->front_.request.trains())
      for (std::int64_t i = 0; i < runs; ++i) counted_.push_back(driver().queued_step());
  }

  // A step of the task. Returns true when it is finished.
  bool advance() {
    for (;;) switch (state_) {
        case State::loading:
          if (!load()) return false;
          break;
        case State::draining:
          if (!drained_.ready()) return false;
          drained_.get();
          begin_run();
          break;
        case State::submitting:
          if (!submit()) return false;
          break;
        case State::reading:
          if (!read()) return false;
          break;
        case State::finished:
          return true;
      }
  }

  std::vector<DispatchTime> take() { return std::move(times_); }

 private:
  enum class State : std::uint8_t { loading, draining, submitting, reading, finished };

  Driver& driver() const { return program_->driver_; }
  runtime::Device& device() const { return driver().device(); }

  bool load() {
    if (!loading_) {
      device().profile(true);  // throws if it cannot: before anything is compiled
      device().profile(false);
      const Compilation& made = program_->executable(Kind::main)->made;
      loading_ = device().load(made.emitted, made.progress, runtime::Combine::apart);
    }
    if (!loading_->ready()) return false;
    apart_ = loading_->get();
    drain();
    return true;
  }

  void drain() {
    drained_ = device().immediate() ? driver().next_poll() : device().done();
    state_ = State::draining;
  }

  void begin_run() {
    submission_.run.reset();  // nobody wants the results of the run before
    submission_.run = std::make_shared<Run>(program_, false);
    state_ = State::submitting;
  }

  // Steps that only accumulate are no part of the plan.
  bool submit() {
    const bool measures = program_->next_kind(false) == Kind::main;
    submission_.apart = measures ? apart_ : nullptr;
    const std::int64_t runs = program_->runs_;
    if (!program_->submit(submission_)) return false;
    program_->runs_ = runs;  // later runs draw the random numbers that they would have drawn
    if (!counted_.empty()) counted_.pop_back();
    driver().ask(submission_.run, Run::Wanted::status);
    state_ = State::reading;
    return true;
  }

  bool read() {
    const Run& run = *submission_.run;
    if (!run.has(Run::Wanted::status)) return false;
    if (run.error()) raise(run);
    if (submission_.apart) {
      if (!submission_.times.ready()) return false;
      keep(submission_.times.get());
      --left_;
    }
    if (left_ > 0)
      drain();
    else
      state_ = State::finished;
    return true;
  }

  [[noreturn]] static void raise(const Run& run) {
    if (run.failure() && run.failure()->error == run.error()) run.failure()->report();
    std::rethrow_exception(run.error());
  }

  void keep(const std::vector<runtime::Device::Time>& times) {
    if (times_.empty())
      for (const auto& time : times) times_.push_back({time.kernel, time.name, time.microseconds});
    for (std::size_t i = 0; i < times.size(); ++i) {
      DispatchTime& all = times_[i];
      all.microseconds = std::min(all.microseconds, times[i].microseconds);
      all.mean_microseconds += times[i].microseconds / steps_;
    }
  }

  State state_ = State::loading;
  std::shared_ptr<Program> program_;
  Submission submission_;  // each run again
  int steps_, left_;       // runs to measure
  std::vector<std::shared_ptr<void>> counted_;
  std::optional<Completion<std::shared_ptr<runtime::Loaded>>> loading_;
  std::shared_ptr<runtime::Loaded> apart_;
  Completion<Done> drained_;
  std::vector<DispatchTime> times_;
};

namespace {

class Profiling {
 public:
  explicit Profiling(runtime::Device& device) : device_(device) { device.profile(true); }
  ~Profiling() {
    try {
      device_.profile(false);
    } catch (...) {  // a device that was lost measures nothing more
    }
  }
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;

 private:
  runtime::Device& device_;
};

}  // namespace

void Program::submit_apart(Submission& submission, const Executable& executable) {
  runtime::Device& device = driver_.device();
  const Profiling profiling(device);
  device.submit(submission.apart, executable.spaces);
  submission.times = device.take_times(*submission.apart)
                         .map([kept = submission.apart](std::vector<runtime::Device::Time>& times) {
                           return std::move(times);
                         });
}

Future<std::vector<DispatchTime>> Program::profile_async(int steps, const Feed& feed) {
  if (steps < 1) user_error("profile: at least one step: {}", steps);
  std::shared_ptr<Profile> profile;
  {
    const std::lock_guard lock(driver_.turn());
    Submission submission = prepare(feed, {});
    submission.own();
    profile = std::make_shared<Profile>(shared_from_this(), std::move(submission), steps);
  }
  const Completion<std::vector<DispatchTime>> done;
  return driver_.start(done,
                       {[profile = std::move(profile), done] {
                          if (!profile->advance()) return false;
                          done.set(profile->take());
                          return true;
                        },
                        [done](const std::exception_ptr& error) { done.set_error(error); }},
                       "a profile");
}

}  // namespace tensorgrad::detail
