#include "support/poll.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "tensorgrad/future.h"

namespace tensorgrad {

namespace {

struct Callbacks {
  std::mutex mutex;
  std::deque<std::function<void()>> ready;
  std::atomic<std::size_t> count = 0;
};

Callbacks& callbacks() {
  static Callbacks all;
  return all;
}

struct Pollables {
  std::mutex mutex;
  std::vector<std::weak_ptr<Pollable>> all;
};

Pollables& pollables() {
  static Pollables all;
  return all;
}

}  // namespace

void post_callback(std::function<void()> callback) {
  Callbacks& all = callbacks();
  std::lock_guard lock(all.mutex);
  all.ready.push_back(std::move(callback));
  ++all.count;
}

bool run_callbacks() {
  Callbacks& all = callbacks();
  const std::size_t count = all.count;
  for (std::size_t left = count; left > 0; --left) {
    std::function<void()> next;
    {
      std::lock_guard lock(all.mutex);
      if (all.ready.empty()) return left < count;  // another thread ran them
      next = std::move(all.ready.front());
      all.ready.pop_front();
      --all.count;
    }
    next();
  }
  return count > 0;
}

void add_pollable(const std::shared_ptr<Pollable>& pollable) {
  Pollables& known = pollables();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.expired(); });
  known.all.push_back(pollable);
}

bool poll() {
  std::vector<std::shared_ptr<Pollable>> now;
  {
    Pollables& known = pollables();
    std::lock_guard lock(known.mutex);
    for (const auto& each : known.all)
      if (auto pollable = each.lock()) now.push_back(std::move(pollable));
  }
  for (const auto& each : now) each->poll(std::chrono::nanoseconds(0));
  run_callbacks();
  if (callbacks().count > 0) return true;
  return std::any_of(now.begin(), now.end(), [](const auto& each) { return each->busy(); });
}

namespace detail {

void post(std::function<void()> callback) { post_callback(std::move(callback)); }

void wait_for_future(Pollable* source, const std::function<bool()>& ready, std::string_view what) {
  if (!ready()) wait_until(*source, ready, what);
}

}  // namespace detail

}  // namespace tensorgrad
