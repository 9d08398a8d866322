#include "runtime/cpu/pool.h"

namespace tensorgrad::cpu {

namespace {

// Looks again and again for a few microseconds before it gives the core away: kernels follow each other
// closely, and waking a sleeping thread costs as much as a small one of them.
template <class Condition>
bool spin(Condition condition) {
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 32; ++j) {
      if (condition()) return true;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    if (i % 8 == 7) std::this_thread::yield();
  }
  return condition();
}

}  // namespace

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

void Pool::run(std::int64_t tasks, const Task& task) {
  std::unique_lock own(busy_, std::try_to_lock);
  if (tasks <= 1 || workers_.empty() || !own) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  bool sleepers = false;
  {
    std::lock_guard lock(mutex_);
    task_ = &task;
    tasks_ = tasks;
    next_ = 0;
    error_ = nullptr;
    ++round_;
    sleepers = asleep_ > 0;
  }
  if (sleepers) wake_.notify_all();
  take_tasks(task, tasks);
  // Nothing is left to take: whoever has not come by now need not.
  {
    std::lock_guard lock(mutex_);
    task_ = nullptr;
  }
  if (!spin([&] { return active_ == 0; })) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return active_ == 0; });
  }
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// All tasks run even if one throws, so that the error is the same for any number of threads.
void Pool::take_tasks(const Task& task, std::int64_t tasks) {
  for (std::int64_t i = next_++; i < tasks; i = next_++) {
    try {
      task(i);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_ || i < error_task_) error_ = std::current_exception(), error_task_ = i;
    }
  }
}

void Pool::work() {
  std::uint64_t seen = 0;
  for (;;) {
    spin([&] { return stop_ || round_ != seen; });
    const Task* task = nullptr;
    std::int64_t tasks = 0;
    {
      std::unique_lock lock(mutex_);
      ++asleep_;
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      --asleep_;
      if (stop_) return;
      seen = round_;
      if (!task_) continue;  // too late
      task = task_, tasks = tasks_;
      ++active_;
    }
    take_tasks(*task, tasks);
    std::lock_guard lock(mutex_);
    if (--active_ == 0) done_.notify_one();
  }
}

}  // namespace tensorgrad::cpu
