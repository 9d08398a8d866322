// Callbacks of the user that are ready to run. They run inside poll() or a wait, with no lock held.
#pragma once

#include <functional>

namespace tensorgrad {

void post_callback(std::function<void()> callback);
// Runs the callbacks that are posted by now, and those that they post, in order. An exception of a
// callback leaves the others for the next call.
void run_callbacks();

}  // namespace tensorgrad
