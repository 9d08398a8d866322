// Futures, for programs with an event loop, which must not block. Calls whose name ends in _async
// return one. poll() makes progress:
//   train.download_async().then([](const tg::Future<tg::NamedArrays>& done) { save(done.get()); });
//   while (running) { tg::poll(); draw(); }
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tensorgrad/completion.h"

namespace tensorgrad {

// Makes progress with everything that is under way, and runs the callbacks that are ready. Never
// blocks. A callback runs only here and inside calls that block, on the thread that added it, with
// no lock held: it may call the library. If it blocks, other callbacks run meanwhile. A callback
// that is added by a callback runs in the next poll(). An exception of a callback leaves poll();
// the other callbacks run in the next one.
//
// Returns true if a future or a callback is still waiting for something, so poll again soon. Each
// callback is called exactly once, unless its thread ends first: if its program is destroyed, with
// an error. So it must not refer to what may be gone by then.
bool poll();

class Pollable;

namespace detail {
// Returns what posts a callback to this thread.
std::function<void(std::function<void()>)> poster();
void keep_while_busy(const std::shared_ptr<Pollable>& source);
void wait_for_future(Pollable* source, const std::function<bool()>& ready, std::string_view what);
}  // namespace detail

// A value or an error that arrives later. Copies share it, on any thread. A future, and a callback
// that waits for it, keep what they wait for; dropping both may stop the work.
template <class T>
class Future {
 public:
  using Value = T;

  // Whether get() returns or throws at once. Only poll() and calls that block change it.
  bool ready() const { return value_.ready(); }
  // Returns the value or throws the error. Blocks until it is there; in a browser, it throws
  // instead of blocking.
  T& get() const {
    detail::wait_for_future(
        source_.get(), [this] { return ready(); }, what_);
    return value_.get();
  }
  // Like get(), but moves the value out. Only one copy of the future can do that.
  T take() const { return std::move(get()); }
  // Calls `callback` once with this future, when it is ready: get() returns the value or throws the
  // error then.
  void then(std::function<void(const Future&)> callback) const {
    if (!ready()) detail::keep_while_busy(source_);
    value_.then([callback = std::move(callback), what = what_,
                 post = detail::poster()](const Completion<T>& value) {
      post([callback, ready = Future(value, nullptr, what)] { callback(ready); });
    });
  }
  // The future of what `next` makes of the value, or of the error. `next` runs as soon as the value
  // arrives, and must not call the library.
  template <class F>
  auto map(F next) const {
    using Made = std::invoke_result_t<F, T&>;
    return Future<Made>(value_.map(std::move(next)), source_, what_);
  }

  // The future that `next` returns for the value. `next` runs in poll(), like a callback, and may
  // use the library. An error passes by it; an exception of `next` is the error.
  template <class F>
  auto and_then(F next) const {
    using Inner = std::invoke_result_t<F, T&>;
    using Made = typename Inner::Value;
    const Completion<Made> made;
    then([made, next = std::move(next)](const Future& self) {
      try {
        next(self.get()).pass_to(made);
      } catch (...) {
        made.set_error(std::current_exception());
      }
    });
    return Inner(made, nullptr, what_);
  }

  // Completes `other` like this one. Copies the value if that is possible, because copies of the
  // future share it.
  void pass_to(const Completion<T>& other) const {
    if (!ready()) detail::keep_while_busy(source_);
    value_.then([other](const Completion<T>& value) {
      if constexpr (std::is_copy_constructible_v<T>) {
        if (!value.error()) return other.set(value.get());
      }
      value.pass_to(other);
    });
  }

  // `source` completes the value while it is polled. `what` names the work in errors.
  Future(Completion<T> value, std::shared_ptr<Pollable> source, std::string_view what)
      : value_(std::move(value)), source_(std::move(source)), what_(what) {}

 private:
  Completion<T> value_;
  std::shared_ptr<Pollable> source_;
  std::string_view what_;
};

}  // namespace tensorgrad
