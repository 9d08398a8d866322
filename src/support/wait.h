// The only function of the library that waits. Browsers may not wait: there, wait_browser.cpp takes
// the place of wait_native.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "tensorgrad/completion.h"

namespace tensorgrad {

// Something that completes its work only while it is polled.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Completes what is done by now, and runs the functions that wait for it. If nothing is done, may
  // block for `longest`. Returns false if nothing was completed.
  virtual bool poll(std::chrono::nanoseconds longest) = 0;
  // How long it may take until something is completed. Longer means that the device hangs.
  virtual std::chrono::seconds patience() const = 0;
  // Whether something that somebody waits for is under way.
  virtual bool busy() const { return false; }
};

// Returns when `done` is true. Runs callbacks meanwhile. Throws a DeviceError if nothing happens
// for longer than the patience of `source`; `what` names the work. Hold no lock that a callback may
// take.
void wait_until(Pollable& source, const std::function<bool()>& done, std::string_view what);

// Waits for a value, or throws its error.
template <class T>
T& wait_for(Pollable& source, const Completion<T>& completion, std::string_view what) {
  if (!completion.ready())
    wait_until(
        source, [&] { return completion.ready(); }, what);
  return completion.get();
}

}  // namespace tensorgrad
