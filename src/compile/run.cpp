#include "compile/run.h"

#include <cstring>
#include <new>
#include <utility>

#include "compile/memory.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/poll.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;

void Run::submitted(runtime::Device& device, std::shared_ptr<Executable> executable,
                    std::int64_t step, std::shared_ptr<Failure> failure) {
  state_ = State::submitted;
  device_ = &device;
  executable_ = std::move(executable);
  executable_->latest = weak_from_this();
  results_ = executable_->outputs;
  faults_ = executable_->spaces.faults;
  step_ = step;
  failure_ = std::move(failure);
  try {
    ask(wanted_);
  } catch (...) {
    fail_with(std::current_exception());
  }
}

bool Run::has(Wanted wanted) const {
  switch (wanted) {
    case Wanted::nothing:
      return true;
    case Wanted::status:
      return state_ == State::succeeded || state_ == State::no_room || has_ended();
    case Wanted::values:
      return state_ == State::no_room || has_ended();
  }
  return false;
}

void Run::ask(Wanted wanted) {
  if (state_ == State::no_room && wanted == Wanted::values) state_ = State::succeeded;
  const Wanted both = std::max(wanted_, wanted);
  if (state_ != State::queued && !has(both)) {
    // The values include what the guard says, so they come first.
    if (both == Wanted::values && !device_->immediate()) read_values();
    if (both != Wanted::nothing && state_ == State::submitted) read_status();
  }
  wanted_ = both;
  if (state_ == State::queued) return;
  advance();
  if (state_ == State::no_room && wanted == Wanted::values) take_values();  // throws the error
}

bool Run::preserve() {
  if (has_ended()) return true;
  read_values();
  if (state_ == State::submitted) read_status();
  return static_cast<std::int64_t>(values_->size()) <= runtime::Device::kSnapshot ||
         values_read_->ready();
}

void Run::preserve_status() {
  if (state_ == State::submitted) read_status();
}

void Run::read_status() {
  if (faults_read_) return;
  const auto guard = executable_->guard;
  if (guard && !values_read_)
    guard_read_ = device_->read(*results_, *guard,
                                std::as_writable_bytes(std::span(&status_->behind, 1)), status_);
  faults_read_ = device_->read(*faults_, 0, status_->faults, status_);
}

void Run::read_values() {
  if (values_read_) return;
  const std::int64_t bytes = 4 * executable_->made.plan.outputs.elements();
  try {
    values_ = std::make_shared<std::vector<std::byte>>(usize(bytes));
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(
        fmt::format("host: out of memory: {} for the results of an earlier run", in_mib(bytes)));
  }
  values_read_ = device_->read(*results_, 0, *values_, values_);
}

void Run::advance() {
  try {
    if (state_ == State::submitted) take_status();
    if (state_ == State::examining && failure_->state == Failure::State::known)
      fail_with(failure_->error);
  } catch (...) {
    fail_with(std::current_exception());
  }
  if (state_ != State::succeeded || wanted_ != Wanted::values) return;
  try {
    take_values();
  } catch (const OutOfMemoryError&) {
    state_ = State::no_room;
    post_callbacks();
  } catch (...) {
    fail_with(std::current_exception());
  }
}

void Run::take_status() {
  const auto arrived = [](const std::optional<Completion<Done>>& read) {
    return read && read->ready();
  };
  if (!arrived(faults_read_)) return;
  const auto guard = executable_->guard;
  const auto& with_guard = guard_read_ ? guard_read_ : values_read_;
  if (guard && !arrived(with_guard)) return;
  faults_read_->get();
  if (guard) {
    with_guard->get();
    if (!guard_read_)
      std::memcpy(&status_->behind, values_->data() + 4 * *guard, sizeof status_->behind);
  }
  if (const auto failure = judge_->judge(*status_, step_, failure_)) {
    failure_ = failure;
    state_ = State::examining;
  } else {
    state_ = State::succeeded;
  }
}

void Run::take_values() {
  if (values_read_ ? !values_read_->ready() : !device_->immediate()) return;
  if (values_read_) values_read_->get();
  const schedule::Plan& plan = executable_->made.plan;
  NamedArrays outputs, captures;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output && result.kind != Result::Kind::capture) continue;
    if (result.name == optim::kFailedOutput) continue;
    const bool is_output = result.kind == Result::Kind::output;
    const std::string what = fmt::format("{} '{}'", is_output ? "output" : "capture", result.name);
    (is_output ? outputs : captures)
        .emplace(result.name, value(plan.results[i].offset, plan.graph[result.node].type, what));
  }
  outputs_ = std::move(outputs);
  captures_ = std::move(captures);
  end(State::read);
}

Array Run::value(std::int64_t offset, const ir::Type& type, std::string_view what) {
  return host_array(type, what, [&](std::span<std::byte> to) {
    if (!values_read_)
      device_->read(*results_, offset, to, nullptr).get();
    else if (!to.empty())
      std::memcpy(to.data(), values_->data() + 4 * offset, to.size());
  });
}

void Run::fail_with(std::exception_ptr error) {
  if (has_ended()) return;
  error_ = std::move(error);
  end(State::failed);
}

void Run::fail_with(std::shared_ptr<Failure> failure) {
  failure_ = std::move(failure);
  fail_with(failure_->error);
}

void Run::end(State state) {
  state_ = state;
  executable_.reset();
  judge_.reset();
  values_.reset();
  results_.reset();
  faults_.reset();
  post_callbacks();
}

void Run::post_callbacks() {
  for (auto& [thread, call] : std::exchange(callbacks_, {})) post_callback(thread, std::move(call));
}

void Run::then(std::function<void()> callback) {
  if (has(Wanted::values))
    post_callback(std::this_thread::get_id(), std::move(callback));
  else
    callbacks_.emplace_back(std::this_thread::get_id(), std::move(callback));
}

}  // namespace tensorgrad::detail
