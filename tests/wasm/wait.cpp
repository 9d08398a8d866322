// wait_until() for tests under Node. A page cannot wait, so the library's throws. Here run.mjs can
// run what the page's event loop would run.
#include <emscripten.h>

#include "support/fail.h"
#include "support/poll.h"
#include "support/wait.h"
#include "tests/support/event_loop.h"

EM_JS(void, run_page_events, (), { Module.runEventLoop(); });

namespace tensorgrad {

void run_event_loop() { run_page_events(); }

void wait_until(Pollable& source, const std::function<bool()>& done, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + source.patience();
  while (!done()) {
    const bool called = run_callbacks();
    const bool completed = source.poll(std::chrono::nanoseconds(0));
    if (done()) return;
    if (called || completed)
      end = Clock::now() + source.patience();
    else
      run_event_loop();
    if (Clock::now() > end)
      throw DeviceError(fmt::format("webgpu: the device hangs: {} took longer than {} s", what,
                                    source.patience().count()));
  }
}

}  // namespace tensorgrad
