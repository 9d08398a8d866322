// For tests that poll until something arrives. In a page it arrives by the event loop, which runs
// between calls of the library; under Node tests/wasm can run it within one.
#pragma once

namespace tensorgrad {

#if defined(__EMSCRIPTEN__)
void run_event_loop();
#else
inline void run_event_loop() {}
#endif

}  // namespace tensorgrad
