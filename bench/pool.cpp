// Measures the overhead of the thread pool: one Pool::run with empty tasks, when the workers are
// awake and when they sleep, and the speedup of two threads over one.
#include "runtime/cpu/pool.h"

#include <benchmark/benchmark.h>

#include <chrono>

namespace tensorgrad::cpu {
namespace {

void busy_for(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Arguments: threads, tasks.
void empty_tasks(benchmark::State& state) {
  Pool pool(static_cast<int>(state.range(0)));
  for (auto _ : state)
    pool.run(state.range(1), [](std::int64_t task) { benchmark::DoNotOptimize(task); });
}
BENCHMARK(empty_tasks)->ArgsProduct({{1, 2}, {1, 2, 4, 16, 64}})->UseRealTime();

// Tasks of a microsecond each: the ideal for n threads is tasks/n microseconds.
void short_tasks(benchmark::State& state) {
  Pool pool(static_cast<int>(state.range(0)));
  for (auto _ : state)
    pool.run(state.range(1), [](std::int64_t) { busy_for(std::chrono::microseconds(1)); });
}
BENCHMARK(short_tasks)->ArgsProduct({{1, 2}, {2, 4, 16, 64}})->UseRealTime();

// Two tasks of 100 us after a pause in which the workers fall asleep; the pause is not counted.
void after_sleep(benchmark::State& state) {
  Pool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto start = std::chrono::steady_clock::now();
    pool.run(2, [](std::int64_t) { busy_for(std::chrono::microseconds(100)); });
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}
BENCHMARK(after_sleep)->Arg(1)->Arg(2)->UseManualTime();

}  // namespace
}  // namespace tensorgrad::cpu
