#include "compile/training.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compile/options.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

TrainingProgram::TrainingProgram(Driver& driver, const TrainingOptions& options, Request request,
                                 const trace::Source& source)
    : Program(driver, std::move(request), source, options.progress),
      accumulate_(options.accumulate),
      non_finite_(options.non_finite),
      updates_(!std::holds_alternative<NoOptimizer>(options.optimizer)),
      lr_(rate_of(options.optimizer)) {}

std::vector<TaskStep> TrainingProgram::compile_steps() {
  std::vector<TaskStep> steps = Program::compile_steps();
  const auto memory = [this] {
    const std::shared_ptr<Executable> main = executable(Kind::main);
    return state().place_training({main, &main->made.plan});
  };
  std::vector<TaskStep> more;
  if (accumulate_ > 1) more.push_back(compile_step(Kind::accumulating));
  more.emplace_back(memory);
  steps.insert(steps.end() - 1, more.begin(), more.end());  // before the clock stops
  return steps;
}

// ---- a step

Program::Kind TrainingProgram::next_kind(bool captures) const {
  const bool accumulating = accumulate_ > 1 && (state().steps + 1) % accumulate_ != 0;
  if (captures) return accumulating ? Kind::accumulating_captures : Kind::with_captures;
  return accumulating ? Kind::accumulating : Kind::main;
}

namespace {

// `start`: the updates made before the schedule was set.
double rate_of(const Schedule& schedule, std::int64_t start, std::int64_t update) {
  return schedule.at(std::max<std::int64_t>(1, update - start));
}

}  // namespace

double TrainingProgram::lr() const {
  const std::lock_guard lock(driver_.turn());
  const std::int64_t update = driver_.steps() / accumulate_ + 1;
  if (queued_rates_.empty()) return rate_of(lr_, state().schedule_start, update);
  return rate_of(queued_rates_.back().schedule, queued_rates_.back().start, update);
}

void TrainingProgram::before_submit() {
  const double rate = rate_of(lr_, state().schedule_start, next_update());
  if (!(rate >= 0 && rate <= std::numeric_limits<float>::max()))
    user_error(
        "step: the learning rate of update {} is {}\n  hint: rates must be finite and not negative",
        next_update(), rate);
  if (stale_sums_) state().clear_sums();
  stale_sums_ = false;
  feed_random(state().steps);
  feed_scalar(ops::Builder::kRateInput, static_cast<float>(rate));
}

// A failed step leaves the sums of its round unchanged, and so may the state of a checkpoint.
// Between two rounds they are dropped, when the next round starts. In the middle of a round they
// count.
void TrainingProgram::mark_stale_sums() { stale_sums_ = state().steps % accumulate_ == 0; }

std::int64_t TrainingProgram::after_submit() { return state().steps++; }

void TrainingProgram::set_lr(Schedule lr) {
  if (!updates_) user_error("set_lr: this program has no optimizer: NoOptimizer updates nothing");
  const std::lock_guard lock(driver_.turn());
  const auto start = [this, &lr](std::int64_t steps) {
    return lr.constant() ? 0 : steps / accumulate_;
  };
  if (driver_.queue().empty()) {
    state().schedule_start = start(state().steps);
    lr_ = std::move(lr);
    return;
  }
  queued_rates_.push_back({lr, start(driver_.steps())});
  driver_.in_order([this, self = shared_from_this()] {
    const Rates rates = std::move(queued_rates_.front());
    queued_rates_.pop_front();
    state().schedule_start = rates.schedule.constant() ? 0 : next_update() - 1;
    lr_ = rates.schedule;
  });
}

// ---- failures

namespace {

std::string short_text(std::int64_t step) {
  return fmt::format("step {}: the loss, a gradient or the update is not finite", step);
}

std::exception_ptr non_finite(const std::string& text) {
  return std::make_exception_ptr(NonFiniteError(text));
}

}  // namespace

std::shared_ptr<Failure> TrainingProgram::judge(const Status& status, std::int64_t step,
                                                const std::shared_ptr<Failure>& failure) {
  const auto bad = runtime::Device::failure_in(status.faults);
  const bool not_finite = status.behind > 0 && non_finite_ == NonFinite::fail;
  if (!bad && !not_finite) return nullptr;
  if (failure->state != Failure::State::none) return failure;  // another run has found it
  if (bad)
    found_bad_id(*bad, step, failure);
  else
    found_non_finite(step - (status.behind - 1), step + 1 == state().steps, failure);
  return failure;
}

// On a device with a queue, the step of the run is not that of the bad id, and a step before may
// not have been finite: the counters of the guard tell. They stop at the first bad id.
void TrainingProgram::found_bad_id(const runtime::IndexFailure& bad, std::int64_t step,
                                   const std::shared_ptr<Failure>& failure) {
  failure->found(Failure::Kind::bad_id);
  if (failure != this->failure())  // reset() came first
    return failure->set(error_of(bad, fmt::format("step {}: ", step)));
  failure->on_report = [this, program = weak_from_this()] {
    if (const auto self = program.lock()) forget_failure();
  };
  state().steps = std::min(state().steps, step);
  if (driver_.device().immediate()) return failure->set(error_of(bad, ""));
  const auto guard = std::make_shared<ModelState::Guard>();
  driver_.queue().add_first(sequence(
      {[this, self = shared_from_this(), guard] {
        return state().read_guard().map([guard](const ModelState::Guard& now) {
          *guard = now;
          return Done{};
        });
      }},
      [this, self = shared_from_this(), guard, bad, failure] {
        state().steps = std::min(state().steps, guard->steps.value_or(state().steps));
        const std::int64_t failed = non_finite_ == NonFinite::fail ? guard->failed.value_or(0) : 0;
        if (failed > 0) return found_non_finite(state().steps - failed, false, failure);
        failure->set(error_of(bad, fmt::format("step {}: ", state().steps)));
      },
      [failure](const std::exception_ptr& error) { failure->set(error); }));
}

// `last`: its inputs and the parameters still exist, so the reason can be found.
void TrainingProgram::found_non_finite(std::int64_t step, bool last,
                                       const std::shared_ptr<Failure>& failure) {
  failure->found(Failure::Kind::non_finite);
  if (failure != this->failure()) return failure->set(non_finite(short_text(step)));
  const bool found_at_once = last && step + 1 == state().steps;
  state().steps = std::min(state().steps, step + 1);  // the steps behind it changed nothing
  mark_stale_sums();
  driver_.training_failure = failure;
  failure->on_report = [this, program = weak_from_this()] {
    const auto self = program.lock();
    if (!self) return;
    forget();
    state().write_guard(state().steps, 0);
  };
  if (!found_at_once) return failure->set(non_finite(short_text(step)));
  const auto text = std::make_shared<std::string>();
  driver_.queue().add_first(sequence(
      diagnose_steps(text),
      [failure, text, step] { failure->set(non_finite(fmt::format("step {}: {}", step, *text))); },
      [failure, step](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const DeviceError&) {  // no memory to keep every value
          failure->set(non_finite(short_text(step)));
        } catch (...) {
          failure->set(error);
        }
      }));
}

std::vector<TaskStep> TrainingProgram::notice_steps() {
  if (driver_.device().immediate()) return {};  // each step was judged when it ended
  struct Found {
    Status status;
    ModelState::Guard guard;
    std::shared_ptr<Failure> failure;  // to be found, as of the reads
  };
  const auto found = std::make_shared<Found>();
  const auto self = shared_from_this();
  const auto look = [this, self, found] {
    found->failure = this->failure();
    const std::shared_ptr<Status> status(found, &found->status);
    const Completion<Done> faults = read_faults(status);
    const auto guard = state().read_guard().map([found](const ModelState::Guard& now) {
      found->guard = now;
      return Done{};
    });
    return all<Done>({faults, guard});
  };
  const auto decide = [this, self, found]() -> Completion<Done> {
    const std::int64_t made = found->guard.steps.value_or(state().steps);
    found->status.behind = static_cast<std::int32_t>(found->guard.failed.value_or(0));
    const std::int64_t last = std::min(state().steps, made) - 1;
    const bool bad = runtime::Device::failure_in(found->status.faults).has_value();
    const auto failure = judge(found->status, bad ? last + 1 : last, found->failure);
    return failure ? failure->known : Completion<Done>(Done{});
  };
  return {look, decide};
}

Future<Done> TrainingProgram::notice_async() {
  return driver_.start(
      notice_steps(), [] { return Done{}; }, "a run");
}

Future<Done> TrainingProgram::wait_async() {
  std::vector<TaskStep> steps = {
      [this, self = shared_from_this()] { return driver_.device().done(); }};
  const std::vector<TaskStep> notice = notice_steps();
  steps.insert(steps.end(), notice.begin(), notice.end());
  return driver_.start(
      std::move(steps),
      [this, self = shared_from_this()] {
        raise_failures();
        return Done{};
      },
      "a run");
}

// ---- state

Future<NamedArrays> TrainingProgram::optimizer_state_async() {
  const auto arrays = std::make_shared<NamedArrays>();
  std::vector<TaskStep> steps = notice_steps();
  steps.emplace_back([this, self = shared_from_this(), arrays] {
    return state().read_optimizer_state().map([arrays](NamedArrays& all) {
      *arrays = std::move(all);
      return Done{};
    });
  });
  return driver_.start(
      std::move(steps), [self = shared_from_this(), arrays] { return std::move(*arrays); },
      "reading");
}

void TrainingProgram::check(const NamedArrays* parameters, const NamedArrays& optimizer) const {
  if (parameters) state().check(*parameters, Upload::strict);
  state().check_optimizer_state(optimizer);
}

void TrainingProgram::write(const NamedArrays* parameters, const NamedArrays& optimizer) {
  if (parameters) state().write(*parameters);
  state().write_optimizer_state(optimizer);
  mark_stale_sums();
}

void TrainingProgram::restore(const NamedArrays* parameters, const NamedArrays& optimizer) {
  for (;;) {
    notice_async().get();
    const std::lock_guard lock(driver_.turn());
    check(parameters, optimizer);
    if (driver_.queue().empty()) return write(parameters, optimizer);
  }  // another thread was faster
}

Future<Done> TrainingProgram::restore_async(const NamedArrays* parameters,
                                            const NamedArrays& optimizer) {
  struct Values {
    std::optional<NamedArrays> parameters;
    NamedArrays optimizer;
    std::shared_ptr<void> restarted;
  };
  const auto values = std::make_shared<Values>();
  {
    const std::lock_guard lock(driver_.turn());
    check(parameters, optimizer);
    values->restarted = driver_.restart_steps(ModelState::steps_in(optimizer));
  }
  if (parameters) values->parameters = *parameters;
  values->optimizer = optimizer;
  return driver_.start(
      notice_steps(),
      [this, self = shared_from_this(), values] {
        write(values->parameters ? &*values->parameters : nullptr, values->optimizer);
        return Done{};
      },
      "an upload");
}

void TrainingProgram::reset_optimizer() {
  const std::lock_guard lock(driver_.turn());
  const auto restarted = driver_.restart_steps(0);
  driver_.in_order([this, self = shared_from_this(), restarted] {
    forget();
    state().reset_optimizer();
  });
}

void TrainingProgram::reset(std::optional<std::uint32_t> seed) {
  const std::lock_guard lock(driver_.turn());
  const auto restarted = driver_.restart_steps(0);
  driver_.in_order([this, self = shared_from_this(), seed, restarted] {
    forget();
    state().reset(seed);
  });
}

void TrainingProgram::forget() {
  forget_failure();
  driver_.training_failure.reset();
}

}  // namespace tensorgrad::detail
