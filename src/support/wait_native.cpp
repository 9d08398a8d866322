#include <algorithm>

#include "support/fail.h"
#include "support/poll.h"
#include "support/wait.h"

namespace tensorgrad {

void wait_until(Pollable& source, const std::function<bool()>& done, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  // The longest time until the loss of the device is noticed.
  const std::chrono::nanoseconds slice =
      std::min<std::chrono::nanoseconds>(source.patience(), std::chrono::milliseconds(200));
  auto end = Clock::now() + source.patience();
  while (!done()) {
    const bool called = run_callbacks();
    if (called && done()) return;
    const bool completed = source.poll(called ? std::chrono::nanoseconds(0) : slice);
    if (done()) return;
    if (called || completed) end = Clock::now() + source.patience();
    if (Clock::now() > end)
      throw DeviceError(fmt::format("webgpu: the device hangs: {} took longer than {} s", what,
                                    source.patience().count()));
  }
}

}  // namespace tensorgrad
