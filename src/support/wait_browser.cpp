#include "support/fail.h"
#include "support/poll.h"
#include "support/wait.h"

namespace tensorgrad {

void wait_until(Pollable& source, const std::function<bool()>& done, std::string_view what) {
  // Whatever can be done without waiting.
  while (!done()) {
    const bool called = run_callbacks();
    const bool completed = source.poll(std::chrono::nanoseconds(0));
    if (!called && !completed) break;
  }
  if (done()) return;
  user_error("{} is not finished, and this program cannot wait\n  hint: ready() and then()", what);
}

}  // namespace tensorgrad
