#include "support/callbacks.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

namespace tensorgrad {

namespace {

struct Callbacks {
  std::mutex mutex;
  std::deque<std::function<void()>> ready;
  std::atomic<bool> any = false;
};

Callbacks& callbacks() {
  static Callbacks all;
  return all;
}

}  // namespace

void post_callback(std::function<void()> callback) {
  Callbacks& all = callbacks();
  std::lock_guard lock(all.mutex);
  all.ready.push_back(std::move(callback));
  all.any = true;
}

void run_callbacks() {
  Callbacks& all = callbacks();
  while (all.any) {
    std::function<void()> next;
    {
      std::lock_guard lock(all.mutex);
      if (all.ready.empty()) {
        all.any = false;
        return;
      }
      next = std::move(all.ready.front());
      all.ready.pop_front();
    }
    next();
  }
}

}  // namespace tensorgrad
