// What poll() serves: everything that makes progress only while it is polled, and callbacks of the
// user that are ready to run.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "support/wait.h"

namespace tensorgrad {

// poll() polls it as long as it exists.
void add_pollable(const std::shared_ptr<Pollable>& pollable);

// The callback runs inside poll() or a wait of that thread, with no lock held.
void post_callback(std::thread::id thread, std::function<void()> callback);
// Runs the callbacks of this thread that are posted by now, in order; those that they post are for
// the next call, so that a callback which asks for more work cannot keep the caller. An exception
// of a callback leaves the others for the next call. Returns false if there was none.
bool run_callbacks();

}  // namespace tensorgrad
