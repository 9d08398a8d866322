// Completion: a value or an error that arrives later. Copies share it. Who makes it completes it,
// once. Functions that wait for it run inside the call that completes it, or at once if it is
// ready.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorgrad {

// The value of a completion that only says when something is done.
struct Done {};

template <class T>
class Completion {
 public:
  using Value = T;

  Completion() : state_(std::make_shared<State>()) {}
  Completion(T value) : Completion() { set(std::move(value)); }
  static Completion failed(std::exception_ptr error) {
    Completion out;
    out.set_error(std::move(error));
    return out;
  }

  // The first of these calls completes it; later ones do nothing.
  void set(T value) const {
    finish([&](State& state) { state.value.emplace(std::move(value)); });
  }
  void set_error(std::exception_ptr error) const {
    finish([&](State& state) { state.error = std::move(error); });
  }

  bool ready() const { return state_->ready.load(std::memory_order_acquire); }
  std::exception_ptr error() const { return ready() ? state_->error : nullptr; }
  // Throws the error. It must be ready.
  T& get() const {
    if (state_->error) std::rethrow_exception(state_->error);
    return *state_->value;
  }

  // Calls `next` with this completion when it is ready.
  void then(std::function<void(const Completion&)> next) const {
    {
      std::lock_guard lock(state_->mutex);
      if (!ready()) {
        state_->next.push_back(std::move(next));
        return;
      }
    }
    next(*this);
  }

  // The completion of what `next` makes of the value: a value, or another completion. An error
  // passes by `next`; an exception of `next` is the error.
  template <class F>
  auto map(F next) const {
    using Made = std::invoke_result_t<F, T&>;
    if constexpr (IsCompletion<Made>::value) {
      Made out;
      then([out, next = std::move(next)](const Completion& self) mutable {
        try {
          next(self.get()).then([out](const Made& inner) { inner.pass_to(out); });
        } catch (...) {
          out.set_error(std::current_exception());
        }
      });
      return out;
    } else {
      Completion<Made> out;
      then([out, next = std::move(next)](const Completion& self) mutable {
        try {
          out.set(next(self.get()));
        } catch (...) {
          out.set_error(std::current_exception());
        }
      });
      return out;
    }
  }

  // Completes `other` like this one, which must be ready. Moves the value out.
  void pass_to(const Completion& other) const {
    if (state_->error)
      other.set_error(state_->error);
    else
      other.set(std::move(*state_->value));
  }

 private:
  template <class U>
  struct IsCompletion : std::false_type {};
  template <class U>
  struct IsCompletion<Completion<U>> : std::true_type {};

  struct State {
    std::mutex mutex;  // of `next`, and of the change of `ready`
    std::atomic<bool> ready = false;
    std::optional<T> value;
    std::exception_ptr error;
    std::vector<std::function<void(const Completion&)>> next;
  };

  template <class Fill>
  void finish(Fill fill) const {
    std::vector<std::function<void(const Completion&)>> next;
    const Completion self = *this;  // a function may drop the last other copy
    {
      std::lock_guard lock(state_->mutex);
      if (ready()) return;
      fill(*state_);
      state_->ready.store(true, std::memory_order_release);
      next.swap(state_->next);
    }
    for (auto& each : next) each(self);
  }

  std::shared_ptr<State> state_;
};

// Ready when all are. The error is that of the first in the list that failed.
template <class T>
Completion<Done> all(const std::vector<Completion<T>>& list) {
  struct Rest {
    std::vector<Completion<T>> list;
    std::atomic<std::size_t> left;
    Completion<Done> out;
  };
  if (list.empty()) return Done{};
  const auto rest = std::make_shared<Rest>();
  rest->list = list;
  rest->left = list.size();
  const Completion<Done> out = rest->out;
  for (const Completion<T>& each : list)
    each.then([rest](const Completion<T>&) {
      if (--rest->left > 0) return;
      const std::vector<Completion<T>> done = std::exchange(rest->list, {});
      for (const Completion<T>& one : done)
        if (one.error()) return rest->out.set_error(one.error());
      rest->out.set(Done{});
    });
  return out;
}

// A completion that failed with the exception that is being handled.
template <class T>
Completion<T> failed_now() {
  return Completion<T>::failed(std::current_exception());
}

}  // namespace tensorgrad
