// Pool: persistent threads that share out numbered tasks.
//
// Each thread begins with a share of its own: tasks that follow each other, the same ones for every
// round of as many tasks. What it wrote in one kernel is then in its cache for the next, whose
// tasks are cut alike. Who is through with its share helps the others.
//
// Workers look for the next round for a while before they sleep, because the kernels of a step
// follow each other within microseconds and waking a thread takes longer than many of them. Nothing
// is locked between rounds that find the workers awake; the mutex is for going to sleep, for waking
// up and for errors.
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
  // The calling thread works too, so `threads` - 1 are started.
  explicit Pool(int threads);
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Tasks run in the mode of FlushSubnormals, on every thread.
  // One run at a time has the workers. A run that finds them taken, by another thread or by the run
  // that it is part of, does its tasks itself.
  void run(std::int64_t tasks, TaskRef task) override;

  // While one lives, rounds are expected soon: workers wait longer before they sleep.
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
  // What changes from round to round, in one cache line. `task` may be read by whoever has taken a
  // task, because the round does not end before that task is counted as finished.
  struct alignas(64) Round {
    std::atomic<std::uint64_t> number{0};
    std::atomic<std::int64_t> finished{0};  // tasks, by workers
    const TaskRef* task = nullptr;
    std::atomic<int> asleep{0};  // workers that need to be woken
    std::atomic<int> steps{0};   // objects of class Step
    std::atomic<bool> caller_sleeps{false};
    std::atomic<bool> stop{false};
  };

  // What is left of the tasks that a thread begins with.
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
  std::vector<Share> shares_;  // the caller's, then those of the workers
  Round round_;
  alignas(64) std::atomic<bool> taken_{false};  // a run has the workers
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  int called_ = 0;  // workers that were woken and are on their way; no longer counted as asleep
  std::exception_ptr error_;
  std::int64_t error_task_ = 0;
};

}  // namespace tensorgrad::cpu
