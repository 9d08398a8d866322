// Outcome: what the copies of a Result share: a run, and its driver until the run is finished, so
// that results outlive their program but do not keep its memory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "compile/driver.h"
#include "compile/run.h"

namespace tensorgrad::detail {

class Outcome {
 public:
  // `driver` is null if the run has ended. `reporter` hears that the error was thrown.
  Outcome(std::shared_ptr<Driver> driver, std::weak_ptr<Driver> reporter, std::shared_ptr<Run> run)
      : driver_(std::move(driver)), reporter_(std::move(reporter)), run_(std::move(run)) {}

  // Asks for the values. Whether they are there, or the error.
  bool ready();
  // Calls `callback` in poll(), when ready() is true.
  void then(std::function<void(std::shared_ptr<Outcome>)> callback);
  // Blocks. Throws the error of the run, which counts as its report.
  const Run& wait(Run::Wanted wanted);

 private:
  // Returns the driver, or null if the run is finished.
  std::shared_ptr<Driver> unfinished();
  // The same, after asking for what is wanted.
  std::shared_ptr<Driver> ask(Run::Wanted wanted);

  std::mutex mutex_;  // of driver_
  std::shared_ptr<Driver> driver_;
  std::weak_ptr<Driver> reporter_;
  std::shared_ptr<Run> run_;
};

}  // namespace tensorgrad::detail
