// Futures, for programs with an event loop, which must not block. Calls whose name ends in _async
// return one. poll() makes progress:
//   train.download_async().then([](const tg::Future<tg::NamedArrays>& done) { save(done.get()); });
//   while (running) { tg::poll(); draw(); }
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "tensorgrad/completion.h"

namespace tensorgrad {

// Makes progress with everything that is under way, and runs the callbacks that are ready. Never
// blocks. Callbacks run only here and inside calls that block, one after the other, with no lock
// held: they may call the library. A callback that is added by a callback runs in the next poll().
// An exception of a callback leaves poll(); the other callbacks run in the next one.
void poll();

class Pollable;

namespace detail {
void post(std::function<void()> callback);
void wait_for_future(Pollable* source, const std::function<bool()>& ready, std::string_view what);
}  // namespace detail

// A value or an error that arrives later. Copies share it, on any thread. Dropping a future does
// not stop the work.
template <class T>
class Future {
 public:
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
    value_.then([callback = std::move(callback), what = what_](const Completion<T>& value) {
      detail::post([callback, ready = Future(value, nullptr, what)] { callback(ready); });
    });
  }
  // The future of what `next` makes of the value, or of the error. `next` runs as soon as the value
  // arrives, and must not call the library.
  template <class F>
  auto map(F next) const {
    using Made = std::invoke_result_t<F, T&>;
    return Future<Made>(value_.map(std::move(next)), source_, what_);
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
