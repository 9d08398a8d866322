// Measures the kernels of a program one by one. Blocks.
#include <algorithm>
#include <utility>

#include "compile/program.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/wait.h"

namespace tensorgrad::detail {

namespace {

// Runs an executable with a dispatch for each kernel, and restores it at the end.
class Apart {
 public:
  Apart(Driver& driver, std::shared_ptr<Executable> executable)
      : driver_(driver), executable_(std::move(executable)) {
    if (!executable_) return;
    const Compilation& made = executable_->made;
    together_ = wait_for(
        driver_, driver_.device().load(made.emitted, made.progress, runtime::Combine::apart),
        "compiling kernels");
    swap();
  }
  ~Apart() {
    if (executable_) swap();
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

 private:
  void swap() {
    const std::lock_guard lock(driver_.turn());
    std::swap(executable_->made.loaded, together_);
  }

  Driver& driver_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<runtime::Loaded> together_;
};

struct Profiling {
  runtime::Device& device;
  explicit Profiling(runtime::Device& d) : device(d) { device.profile(true); }
  ~Profiling() { device.profile(false); }
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;
};

}  // namespace

std::vector<DispatchTime> Program::profile(int steps) {
  if (steps < 1) user_error("profile: at least one step: {}", steps);
  std::vector<DispatchTime> best;
  runtime::Device& device = driver_.device();
  const Apart main(driver_, executable(Kind::main));
  const Apart accumulating(driver_, executable(Kind::accumulating));
  for (int i = 0; i < steps;) {
    wait_for(driver_, device.done(), "a run");
    const Profiling profiling(device);
    Kind kind;
    {
      const std::lock_guard lock(driver_.turn());
      kind = next_kind(false);
    }
    run({}, {});
    const auto times =
        wait_for(driver_, device.take_times(*executable(kind)->made.loaded), "measuring a run");
    if (kind != Kind::main) continue;  // a step that only accumulates is not part of the plan
    ++i;
    if (best.empty())
      for (const auto& time : times) best.push_back({time.kernel, time.name, time.microseconds});
    for (std::size_t j = 0; j < times.size(); ++j)
      best[j].microseconds = std::min(best[j].microseconds, times[j].microseconds);
  }
  return best;
}

}  // namespace tensorgrad::detail
