// Pool: persistent threads that share out numbered tasks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
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

  using Task = std::function<void(std::int64_t)>;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  void run(std::int64_t tasks, const Task& task) override;

 private:
  void work();
  void take_tasks(const Task& task, std::int64_t tasks);

  std::vector<std::thread> workers_;
  std::mutex busy_;  // one run at a time; others work alone
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<std::uint64_t> round_{0};
  std::atomic<int> active_{0};  // workers inside the current round
  int asleep_ = 0;
  std::atomic<bool> stop_{false};
  const Task* task_ = nullptr;  // null between rounds
  std::int64_t tasks_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::exception_ptr error_;
  std::int64_t error_task_ = 0;
};

}  // namespace tensorgrad::cpu
