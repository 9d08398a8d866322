#include "support/poll.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "support/turn.h"
#include "tensorgrad/future.h"

namespace tensorgrad {

namespace {

// By the thread that asked for them.
struct Callbacks {
  std::mutex mutex;
  std::map<std::thread::id, std::deque<std::function<void()>>> ready;

  std::size_t count() {
    const std::lock_guard lock(mutex);
    const auto mine = ready.find(std::this_thread::get_id());
    return mine == ready.end() ? 0 : mine->second.size();
  }
  std::function<void()> take() {
    const std::lock_guard lock(mutex);
    const auto mine = ready.find(std::this_thread::get_id());
    if (mine == ready.end()) return {};
    std::function<void()> next = std::move(mine->second.front());
    mine->second.pop_front();
    if (mine->second.empty()) ready.erase(mine);
    return next;
  }
};

// Never destroyed: drivers have problems with calls at exit.
Callbacks& callbacks() {
  static auto& all = *new Callbacks;
  return all;
}

struct Pollables {
  std::mutex mutex;
  std::vector<std::weak_ptr<Pollable>> all;
  std::vector<std::shared_ptr<Pollable>> kept;  // as long as they are busy
};

Pollables& pollables() {
  static auto& all = *new Pollables;
  return all;
}

std::vector<std::shared_ptr<Pollable>> living() {
  Pollables& known = pollables();
  const std::lock_guard lock(known.mutex);
  std::vector<std::shared_ptr<Pollable>> out;
  for (const auto& each : known.all)
    if (auto pollable = each.lock()) out.push_back(std::move(pollable));
  return out;
}

// Everything that can be polled, for futures that do not know who completes them.
class Everything : public Pollable {
 public:
  bool poll(std::chrono::nanoseconds longest) override {
    bool any = false;
    const auto now = living();
    for (const auto& each : now) any = each->poll(std::chrono::nanoseconds(0)) || any;
    const auto slice = std::min<std::chrono::nanoseconds>(longest, std::chrono::milliseconds(1));
    for (const auto& each : now)
      if (!any && slice.count() > 0 && each->busy()) any = each->poll(slice);
    return any;
  }
  std::chrono::seconds patience() const override { return std::chrono::seconds(600); }
};

void release_idle() {
  Pollables& known = pollables();
  std::vector<std::shared_ptr<Pollable>> idle;  // destroyed without the lock
  const std::lock_guard lock(known.mutex);
  const auto first = std::stable_partition(known.kept.begin(), known.kept.end(),
                                           [](const auto& each) { return each->busy(); });
  std::move(first, known.kept.end(), std::back_inserter(idle));
  known.kept.erase(first, known.kept.end());
}

}  // namespace

void post_callback(std::thread::id thread, std::function<void()> callback) {
  Callbacks& all = callbacks();
  const std::lock_guard lock(all.mutex);
  all.ready[thread].push_back(std::move(callback));
}

bool run_callbacks() {
  if (Turn::any_is_mine()) return false;  // in the middle of a call
  const std::size_t count = callbacks().count();
  for (std::size_t left = count; left > 0; --left) {
    const std::function<void()> next = callbacks().take();
    if (!next) return true;  // a callback that blocks has run the others
    next();
  }
  return count > 0;
}

void add_pollable(const std::shared_ptr<Pollable>& pollable) {
  Pollables& known = pollables();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.expired(); });
  known.all.push_back(pollable);
}

bool poll() {
  const auto now = living();
  for (const auto& each : now) each->poll(std::chrono::nanoseconds(0));
  run_callbacks();
  release_idle();
  if (callbacks().count() > 0) return true;
  return std::any_of(now.begin(), now.end(), [](const auto& each) { return each->busy(); });
}

namespace detail {

std::function<void(std::function<void()>)> poster() {
  return [thread = std::this_thread::get_id()](std::function<void()> callback) {
    post_callback(thread, std::move(callback));
  };
}

void keep_while_busy(const std::shared_ptr<Pollable>& source) {
  Pollables& known = pollables();
  const std::lock_guard lock(known.mutex);
  if (source && std::find(known.kept.begin(), known.kept.end(), source) == known.kept.end())
    known.kept.push_back(source);
}

void wait_for_future(Pollable* source, const std::function<bool()>& ready, std::string_view what) {
  Everything everything;
  if (!ready()) wait_until(source ? *source : everything, ready, what);
}

}  // namespace detail

}  // namespace tensorgrad
