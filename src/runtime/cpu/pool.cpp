#include "runtime/cpu/pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/cpu/cores.h"
#include "runtime/cpu/subnormals.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// Time that a worker spins before it sleeps. Waking a thread takes 5 to 50 us, so spinning much
// longer gains nothing, except within a step, where the next kernel comes soon.
constexpr auto kAfterRound = std::chrono::microseconds(100);
constexpr auto kWithinStep = std::chrono::microseconds(400);
// Time that the caller spins until the workers finish their last tasks. If a worker has lost its
// core to another program, the caller's sleep frees a core for it.
constexpr auto kForWorkers = std::chrono::microseconds(250);

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until the condition holds or `limit()` has passed. Yields every few microseconds, so that
// an overloaded machine loses little time.
template <class Condition, class Limit>
bool spin(Condition condition, Limit limit) {
  for (int i = 0; i < 32; ++i) {
    if (condition()) return true;
    relax();
  }
  const Clock::time_point start = Clock::now();
  for (int looks = 1;; ++looks) {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return true;
      relax();
    }
    if (looks % 8 == 0) std::this_thread::yield();
    if (Clock::now() - start > limit()) return condition();
  }
}

// The untaken tasks of a share in one word: the first task in the lower half, the end in the upper
// half. `first` may exceed `end`.
struct Range {
  static constexpr std::int64_t kMost = std::int64_t{1} << 31;

  static std::uint64_t pack(std::int64_t first, std::int64_t end) {
    return static_cast<std::uint64_t>(end) << 32 | static_cast<std::uint64_t>(first);
  }
  explicit Range(std::uint64_t word)
      : first(static_cast<std::uint32_t>(word)), end(static_cast<std::int64_t>(word >> 32)) {}
  bool empty() const { return first >= end; }

  std::int64_t first, end;
};

}  // namespace

Pool::Pool(int threads) : shares_(usize(std::clamp(threads, 1, most_threads()))) {
  for (std::size_t i = 1; i < shares_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
}

Pool::~Pool() {
  round_.stop = true;
  {
    std::lock_guard lock(mutex_);  // each worker sees `stop`, or is asleep and gets the wake-up
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run(std::int64_t tasks, TaskRef task) {
  const FlushSubnormals flush;  // the workers have it too
  if (tasks <= 1 || tasks > Range::kMost || workers_.empty() ||
      taken_.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  round_.task = &task;
  round_.finished.store(0, std::memory_order_relaxed);
  const std::int64_t shares = std::min<std::int64_t>(tasks, threads());
  for (std::int64_t i = 0; i < shares; ++i)  // the caller takes task 0 below
    shares_[usize(i)].tasks.store(
        Range::pack(std::max<std::int64_t>(1, i * tasks / shares), (i + 1) * tasks / shares),
        std::memory_order_release);
  ++round_.number;  // seq_cst, like `asleep`: a worker sees the new round, or is seen asleep
  wake_workers(tasks - 1);
  do_task(0);
  wait_for_workers(tasks - 1 - take_tasks(0));
  const std::exception_ptr error = std::exchange(error_, nullptr);
  taken_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

// Other tasks run even if one throws, so that the reported error does not depend on the number of
// threads.
void Pool::do_task(std::int64_t i) {
  try {
    (*round_.task)(i);
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!error_ || i < error_task_) error_ = std::current_exception(), error_task_ = i;
  }
}

// Runs tasks until none are left, and returns how many it ran: first the thread's own in order,
// then stolen ones from the end of the other shares, which their owners would reach last.
std::int64_t Pool::take_tasks(std::size_t thread) {
  std::int64_t taken = 0;
  for (auto& own = shares_[thread].tasks; !Range(own.load(std::memory_order_relaxed)).empty();
       ++taken) {
    const Range range(own.fetch_add(1, std::memory_order_acquire));
    if (range.empty()) break;
    do_task(range.first);
  }
  for (std::size_t i = 1; i < shares_.size(); ++i) {
    auto& other = shares_[(thread + i) % shares_.size()].tasks;
    std::uint64_t word = other.load(std::memory_order_relaxed);
    for (Range range(word); !range.empty(); range = Range(word))
      if (other.compare_exchange_weak(word, Range::pack(range.first, range.end - 1),
                                      std::memory_order_acquire)) {
        do_task(range.end - 1);
        ++taken;
        word = other.load(std::memory_order_relaxed);
      }
  }
  return taken;
}

// Wakes as many workers as there are tasks for, minus those that are awake.
void Pool::wake_workers(std::int64_t tasks) {
  if (round_.asleep == 0) return;
  const std::unique_lock lock(mutex_);
  const int asleep = round_.asleep;
  const auto awake = static_cast<std::int64_t>(workers_.size()) - asleep;
  const auto more = static_cast<int>(std::clamp<std::int64_t>(tasks - awake, 0, asleep));
  round_.asleep = asleep - more;
  called_ += more;
  for (int i = 0; i < more; ++i) wake_.notify_one();
}

// Blocks until the workers have finished that many tasks.
void Pool::wait_for_workers(std::int64_t tasks) {
  const auto finished = [&] { return round_.finished.load() == tasks; };
  if (spin(finished, [] { return kForWorkers; })) return;
  std::unique_lock lock(mutex_);
  round_.caller_sleeps = true;
  done_.wait(lock, finished);
  round_.caller_sleeps.store(false, std::memory_order_relaxed);
}

// A worker that was woken stays awake even if it comes too late for the round, because another
// round will follow.
void Pool::sleep_until_work(std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  ++round_.asleep;
  wake_.wait(lock, [&] { return called_ > 0 || round_.number != seen || round_.stop; });
  if (called_ > 0)
    --called_;
  else
    --round_.asleep;
}

void Pool::work(std::size_t thread) {
  const FlushSubnormals flush;
  std::uint64_t seen = 0;
  const auto called = [&] {
    return round_.number.load(std::memory_order_relaxed) != seen || round_.stop;
  };
  const auto limit = [&] {
    return round_.steps.load(std::memory_order_relaxed) > 0 ? kWithinStep : kAfterRound;
  };
  while (!round_.stop) {
    if (!spin(called, limit)) sleep_until_work(seen);
    seen = round_.number.load(std::memory_order_acquire);
    if (const std::int64_t taken = take_tasks(thread)) {
      round_.finished += taken;
      if (!round_.caller_sleeps) continue;
      { std::lock_guard lock(mutex_); }
      done_.notify_one();
    }
  }
}

}  // namespace tensorgrad::cpu
