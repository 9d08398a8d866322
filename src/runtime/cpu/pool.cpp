#include "runtime/cpu/pool.h"

namespace tensorgrad::cpu {

Pool::Pool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  std::unique_lock own(busy_, std::try_to_lock);
  if (tasks <= 1 || workers_.empty() || !own) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    task_ = &task;
    tasks_ = tasks;
    next_ = 0;
    error_ = nullptr;
    working_ = static_cast<int>(workers_.size());
    ++round_;
  }
  wake_.notify_all();
  take_tasks();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return working_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

// All tasks run even if one throws, so that the error is the same for any number of threads.
void Pool::take_tasks() {
  for (std::int64_t i = next_++; i < tasks_; i = next_++) {
    try {
      (*task_)(i);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_ || i < error_task_) error_ = std::current_exception(), error_task_ = i;
    }
  }
}

void Pool::work() {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    take_tasks();
    std::lock_guard lock(mutex_);
    if (--working_ == 0) done_.notify_one();
  }
}

}  // namespace tensorgrad::cpu
