// Pool: persistent threads that run numbered tasks, with work stealing.
//
// Each thread starts with a share of consecutive tasks. Rounds with the same number of tasks have
// the same shares, so the data that a thread wrote in one kernel is in its cache for the next. A
// thread that finishes its share steals tasks from the others.
//
// Workers spin for a while before they sleep: the kernels of a step follow each other within
// microseconds, and waking a thread takes longer than many of them. Rounds that find the workers
// awake take no lock. The mutex is for going to sleep, for waking up and for errors.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "codegen/cpu/compiled.h"

namespace tensorgrad::cpu {

class Pool : public Executor {
 public:
  // The calling thread works too, so this starts `threads` - 1 threads, or as many as there can be.
  explicit Pool(int threads);
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Tasks run with FlushSubnormals on every thread. Only one run at a time uses the workers. If
  // another run uses them, in another thread or an enclosing call, run() executes its tasks itself.
  void run(std::int64_t tasks, TaskRef task) override;

  // While one exists, the next round is expected soon, and workers spin longer before they sleep.
  class Step {
   public:
    explicit Step(Pool& pool) : pool_(pool) {
      pool_.round_.steps.fetch_add(1, std::memory_order_relaxed);
    }
    ~Step() { pool_.round_.steps.fetch_sub(1, std::memory_order_relaxed); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Pool& pool_;
  };

 private:
  // The state of a round, in one cache line. A thread that has taken a task may read `task`,
  // because the round does not end before that task is counted as finished.
  struct alignas(64) Round {
    std::atomic<std::uint64_t> number{0};
    std::atomic<std::int64_t> finished{0};  // tasks that workers have finished
    const TaskRef* task = nullptr;
    std::atomic<int> asleep{0};  // workers that are asleep
    std::atomic<int> steps{0};   // objects of class Step
    std::atomic<bool> caller_sleeps{false};
    std::atomic<bool> stop{false};
  };

  // The tasks that are left of a thread's share.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> tasks{0};
  };

  void work(std::size_t thread);
  void do_task(std::int64_t i);
  std::int64_t take_tasks(std::size_t thread);
  void wake_workers(std::int64_t tasks);
  void wait_for_workers(std::int64_t tasks);
  void sleep_until_work(std::uint64_t seen);

  std::vector<std::thread> workers_;
  std::vector<Share> shares_;  // the caller's share, then those of the workers
  Round round_;
  alignas(64) std::atomic<bool> taken_{false};  // a run uses the workers
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  int called_ = 0;  // workers that were woken but have not started; not counted as asleep
  std::exception_ptr error_;
  std::int64_t error_task_ = 0;
};

}  // namespace tensorgrad::cpu
