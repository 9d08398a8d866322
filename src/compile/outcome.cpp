#include "compile/outcome.h"

#include <utility>

#include "support/poll.h"
#include "support/wait.h"

namespace tensorgrad::detail {

std::shared_ptr<Driver> Outcome::unfinished() {
  const std::lock_guard lock(mutex_);
  return driver_;
}

std::shared_ptr<Driver> Outcome::ask(Run::Wanted wanted) {
  const std::shared_ptr<Driver> driver = unfinished();
  if (!driver) return nullptr;
  {
    const std::lock_guard lock(driver->turn());
    driver->ask(run_, wanted);
    driver->advance();
    if (!run_->has_ended()) return driver;
  }
  const std::lock_guard lock(mutex_);
  driver_.reset();  // not the last owner
  return nullptr;
}

bool Outcome::ready() {
  try {
    return !ask(Run::Wanted::values);
  } catch (...) {  // reading it throws at once
    return true;
  }
}

void Outcome::then(std::function<void(std::shared_ptr<Outcome>)> callback) {
  const auto call = [run = run_, reporter = reporter_, callback = std::move(callback)] {
    const auto driver = reporter.lock();
    callback(std::make_shared<Outcome>(run->has_ended() ? nullptr : driver, reporter, run));
  };
  const std::shared_ptr<Driver> driver = unfinished();
  if (!driver) return post_callback(std::this_thread::get_id(), call);
  const std::lock_guard lock(driver->turn());
  run_->then(call);
  try {
    driver->ask(run_, Run::Wanted::values);
  } catch (...) {
    run_->fail_with(std::current_exception());
  }
  driver->advance();
}

const Run& Outcome::wait(Run::Wanted wanted) {
  if (const auto driver = ask(wanted)) {
    const auto there = [&] {
      const std::lock_guard lock(driver->turn());
      return run_->has(wanted);
    };
    if (!there()) {
      wait_until(*driver, there, "a run");
      ask(wanted);  // lets the driver go, if the values are there
    }
  }
  if (!run_->has(wanted)) std::rethrow_exception(Driver::gone());
  if (!run_->error()) return *run_;
  if (const auto driver = reporter_.lock();
      driver && run_->failure() && run_->failure()->error == run_->error()) {
    const std::lock_guard lock(driver->turn());
    run_->failure()->report();
  }
  std::rethrow_exception(run_->error());
}

}  // namespace tensorgrad::detail
