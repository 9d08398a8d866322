// Measures the peaks of this machine: multiply-adds in registers, copies and triads in the first
// and second cache and in memory, on one thread and on all cores. bench_cpu_kernels compares
// kernels with these.
#include "bench/support/peaks.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "codegen/cpu/simd.h"
#include "runtime/cpu/cores.h"

namespace tensorgrad::bench {
namespace {

using benchmark::Counter;

void multiply_add(benchmark::State& state) {
  float sink[2] = {0.5f, 0};
  double operations = 0;
  for (auto _ : state) operations += static_cast<double>(multiply_adds(sink));
  state.counters["FLOP/s"] = Counter(operations, Counter::kIsRate);
}

void copy_floats(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) * 1024 / 8;
  std::vector<float> to(count), from(count, 1.0f);
  for (auto _ : state) {
    copy(to.data(), from.data(), count);
    benchmark::ClobberMemory();
  }
  state.counters["B/s"] = Counter(
      static_cast<double>(state.iterations()) * 8 * static_cast<double>(count), Counter::kIsRate);
}

void triad_floats(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) * 1024 / 12;
  std::vector<float> to(count), a(count, 1.0f), b(count, 1.0f);
  for (auto _ : state) {
    triad(to.data(), a.data(), b.data(), count);
    benchmark::ClobberMemory();
  }
  state.counters["B/s"] = Counter(
      static_cast<double>(state.iterations()) * 12 * static_cast<double>(count), Counter::kIsRate);
}

// KiB that a thread reads and writes per round.
constexpr std::int64_t kFirstCache = 24, kSecondCache = 768, kMemory = 512 * 1024;

}  // namespace
}  // namespace tensorgrad::bench

int main(int argc, char** argv) {
  using namespace tensorgrad;
  using namespace tensorgrad::bench;
  const int cores = cpu::usable_cores();
  benchmark::AddCustomContext("simd", cpu::simd_target());
  for (const int threads : {1, cores}) {
    benchmark::RegisterBenchmark("multiply_add", multiply_add)->Threads(threads)->UseRealTime();
    for (const std::int64_t size : {kFirstCache, kSecondCache, kMemory}) {
      benchmark::RegisterBenchmark("copy", copy_floats)
          ->ArgName("KiB")
          ->Arg(size)
          ->Threads(threads)
          ->UseRealTime();
      benchmark::RegisterBenchmark("triad", triad_floats)
          ->ArgName("KiB")
          ->Arg(size)
          ->Threads(threads)
          ->UseRealTime();
    }
    if (cores == 1) break;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
