// Turn: a mutex that knows its holder. A thread that holds it and asks for it again gets an error
// instead of a deadlock: then a callback of the user has called what is calling it.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "tensorgrad/error.h"

namespace tensorgrad {

class Turn {
 public:
  bool is_mine() const { return holder_ == std::this_thread::get_id(); }

  // Whether this thread holds any turn: then a callback would run in the middle of a call.
  static bool any_is_mine() { return held() > 0; }

  bool try_lock() {
    if (is_mine() || !mutex_.try_lock()) return false;
    holder_ = std::this_thread::get_id();
    ++held();
    return true;
  }
  void lock() {
    if (is_mine())
      throw UserError(
          "a callback that reports progress, or a learning-rate schedule, used the program that "
          "called it\n  hint: remember the call and make it later");
    mutex_.lock();
    holder_ = std::this_thread::get_id();
    ++held();
  }
  void unlock() {
    --held();
    holder_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  static int& held() {
    static thread_local int count = 0;
    return count;
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> holder_{};
};

}  // namespace tensorgrad
