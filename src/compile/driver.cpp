#include "compile/driver.h"

#include <algorithm>
#include <utility>

#include "support/fail.h"
#include "support/poll.h"

namespace tensorgrad::detail {

Driver::Driver(runtime::Opening opening, Parameters parameters, std::uint64_t id,
               std::uint32_t seed)
    : id_(id), opening_(std::move(opening)), state_(std::move(parameters), seed) {}

std::shared_ptr<Driver> Driver::make(runtime::Opening opening, Parameters parameters,
                                     std::uint64_t id, std::uint32_t seed) {
  const std::shared_ptr<Driver> driver(
      new Driver(std::move(opening), std::move(parameters), id, seed));
  add_pollable(driver);
  return driver;
}

std::exception_ptr Driver::gone() {
  return std::make_exception_ptr(
      UserError("the program was destroyed before this call was finished"));
}

Driver::~Driver() {
  for (const auto& run : asked_) run->fail_with(gone());
  queue_.abandon(gone());
}

Completion<Done> Driver::open() {
  return opening_.device.map([](const std::shared_ptr<runtime::Device>&) { return Done{}; });
}

std::int64_t Driver::steps() const {
  const auto now = [this] { return (restart_ ? *restart_ : state_.steps) + *queued_steps_; };
  if (turn_.is_mine()) return now();  // asked by a learning-rate schedule
  const std::lock_guard lock(turn_);
  return now();
}

std::shared_ptr<void> Driver::queued_step() {
  ++*queued_steps_;
  return {nullptr, [count = queued_steps_](std::nullptr_t) { --*count; }};
}

std::shared_ptr<void> Driver::restart_steps(std::int64_t steps) {
  queued_steps_ = std::make_shared<std::int64_t>(0);
  restart_ = std::make_shared<std::int64_t>(steps);
  return {nullptr, [weak = weak_from_this(), mine = restart_](std::nullptr_t) {
            const auto self = weak.lock();
            if (self && self->restart_ == mine) self->restart_.reset();
          }};
}

bool Driver::poll(std::chrono::nanoseconds longest) {
  if (turn_.is_mine()) return false;  // called by a callback that this model called
  Pollable* const now = source();
  bool completed = now && now->poll(longest);
  std::unique_lock lock(turn_, std::defer_lock);
  if (longest.count() > 0)
    lock.lock();
  else if (!lock.try_lock())
    return completed;  // another thread makes progress
  if (const auto waiting = std::exchange(next_poll_, {})) {
    waiting->set(Done{});
    completed = true;
  }
  return advance() || completed;
}

Completion<Done> Driver::next_poll() {
  if (!next_poll_) next_poll_.emplace();
  return *next_poll_;
}

std::chrono::seconds Driver::patience() const {
  const Pollable* const now = source();
  return now ? now->patience() : std::chrono::seconds(0);
}

bool Driver::busy() const {
  if (turn_.is_mine()) return true;
  const std::unique_lock lock(turn_, std::try_to_lock);
  return !lock || !queue_.empty() || !asked_.empty();
}

// The device, or what opens it; null if it cannot be opened.
Pollable* Driver::source() const {
  if (!opening_.device.ready()) return opening_.source.get();
  return opening_.device.error() ? nullptr : &device();
}

bool Driver::advance() {
  bool any = false;
  // A task that ends may complete a run, and a run that ends may add tasks. Runs come first,
  // because they were enqueued before what is still in the queue.
  while (advance_runs() || queue_.advance()) any = true;
  return any;
}

bool Driver::advance_runs() {
  bool any = false;
  for (std::size_t i = 0; i < asked_.size();) {
    const Run::State before = asked_[i]->state();
    if (before == Run::State::queued) {  // those of a profile that goes on may come behind it
      ++i;
      continue;
    }
    const std::shared_ptr<Run> run = asked_[i];
    run->advance();
    any = any || run->state() != before;
    if (run->has_what_is_wanted())
      asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  return any;
}

void Driver::ask(const std::shared_ptr<Run>& run, Run::Wanted wanted) {
  run->ask(wanted);
  if (!run->has_what_is_wanted() && std::find(asked_.begin(), asked_.end(), run) == asked_.end())
    asked_.push_back(run);
}

void Driver::in_order(std::function<void()> call) {
  if (queue_.empty()) return call();
  queue_.add({[call = std::move(call)] {
                call();
                return true;
              },
              [this](const std::exception_ptr& error) {
                if (!late_) late_ = error;
              }});
}

std::exception_ptr Driver::take_late() { return std::exchange(late_, nullptr); }

}  // namespace tensorgrad::detail
