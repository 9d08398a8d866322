// Measures single kernels at the sizes of the bench models, and compares them with the peaks of the
// machine. GFLOP/s and GB/s count the operations and bytes of the plan. of_peak is the time that
// these would take at the measured peaks (the longer of the two), divided by the time taken.
// --benchmark_filter=product selects kernels, TENSORGRAD_THREADS sets the threads. bench/compare
// and tg bench measure whole steps.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "bench/support/peaks.h"
#include "codegen/cpu/simd.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::bench {
namespace {

struct Given {
  std::vector<Param> of;
};

// The timed part: a forward program, a training step without its update, or the update.
enum class What : std::uint8_t { forward, with_gradient, update };

struct Row {
  std::string name;
  What what = What::forward;
  std::vector<Shape> operands;
  std::function<Tensor(const std::vector<Param>& x, const Inputs& in)> function;
  std::int64_t classes = 0;  // of the ids that it reads, as many as the first operand has rows
};

// All axes of an operand but the last: the number of its rows is their product.
Shape rows_of(Shape shape) {
  shape.erase(-1);
  return shape;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  const auto product = [&](std::string name, std::int64_t M, std::int64_t K, std::int64_t N) {
    const auto add = [&](const char* kind, Shape a, Shape b, auto function) {
      rows.push_back({fmt::format("product_{}/{}/{}x{}x{}", kind, name, M, K, N),
                      What::forward,
                      {a, b, {N}},
                      function});
    };
    add("NN", {M, K}, {K, N}, [](auto& x, auto&) { return matmul(x[0], x[1]); });
    add("bias_gelu", {M, K}, {K, N},
        [](auto& x, auto&) { return gelu(matmul(x[0], x[1]) + x[2]); });
    add("NT", {M, K}, {N, K}, [](auto& x, auto&) { return matmul(x[0], swap_axes(x[1], 0, 1)); });
    // The gradient of a weight [K, N]: a sum over the M rows of a batch.
    rows.push_back({fmt::format("product_TN/{}/{}x{}x{}", name, K, M, N),
                    What::forward,
                    {{M, K}, {M, N}},
                    [](auto& x, auto&) { return matmul(swap_axes(x[0], 0, 1), x[1]); }});
  };
  product("mlp_sin", 256, 64, 64);
  product("addition_qkv", 1024, 64, 192);
  product("addition_up", 1024, 64, 256);
  product("addition_down", 1024, 256, 64);
  product("gpt_small_qkv", 4096, 128, 384);
  product("gpt_small_up", 4096, 128, 512);
  product("gpt_small_down", 4096, 512, 128);
  product("gpt_char_up", 2048, 384, 1536);
  product("gpt_char_down", 2048, 1536, 384);
  product("head", 4096, 128, 65);
  product("gemm", 1024, 1024, 1024);

  // The forward pass alone, and its gradient for the mean of squares as the loss.
  const auto both = [&](const std::string& name, const std::vector<Shape>& shapes, auto function) {
    rows.push_back({name, What::forward, shapes, function});
    rows.push_back({name + "_with_gradient", What::with_gradient, shapes,
                    [function](auto& x, auto& in) { return mean(square(function(x, in))); }});
  };
  const auto layers = [&](const std::string& model, std::int64_t T, std::int64_t D) {
    both("layer_norm/" + model, {{T, D}, {D}, {D}},
         [](auto& x, auto&) { return layer_norm(x[0], x[1], x[2]); });
    both("gelu/" + model, {{T, 4 * D}}, [](auto& x, auto&) { return gelu(x[0]); });
  };
  layers("addition", 1024, 64), layers("gpt_small", 4096, 128), layers("gpt_char", 2048, 384);
  both("softmax/rows", {{4096, 128}}, [](auto& x, auto&) { return softmax(x[0]); });
  const auto attend = [&](const std::string& model, const Shape& heads) {
    both("attention/" + model, {heads, heads, heads},
         [](auto& x, auto&) { return attention(x[0], x[1], x[2]); });
  };
  attend("addition", {128, 4, 8, 16}), attend("gpt_small", {32, 4, 128, 32}),
      attend("gpt_char", {8, 6, 256, 64});
  both("selective_scan/mamba_small",
       {{16, 128, 256}, {16, 128, 256}, {256, 16}, {16, 128, 16}, {16, 128, 16}, {256}},
       [](auto& x, auto&) { return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5]); });
  const auto entropy = [](auto& x, auto& in) { return cross_entropy(x[0], in["ids"]); };
  rows.push_back({"cross_entropy/gpt_small", What::forward, {{4096, 65}}, entropy, 65});
  rows.push_back(
      {"cross_entropy/gpt_small_with_gradient", What::with_gradient, {{4096, 65}}, entropy, 65});
  rows.push_back({"adamw/1M", What::update, {{1024, 1024}}, [](auto& x, auto&) {
                    return mean(square(x[0]));
                  }});
  rows.push_back({"adamw/10M", What::update, {{10240, 1024}}, [](auto& x, auto&) {
                    return mean(square(x[0]));
                  }});
  return rows;
}

struct Machine {
  int threads = 1;
  double gflops = 0;
  std::map<std::size_t, double> copies;  // GB/s by bytes

  // The peak at the next power of two, which fits the same cache or nearly so.
  double gb_per_s(std::int64_t bytes) {
    const std::size_t size = std::bit_ceil(static_cast<std::size_t>(bytes));
    if (!copies.contains(size)) copies[size] = copy_gb_per_s(threads, size);
    return copies[size];
  }
};

void measure(benchmark::State& state, const Row& row, ProgramHandle& program, Machine& machine) {
  std::vector<bool> timed;
  double operations = 0, bytes = 0;
  for (const PlannedKernel& kernel : program.plan()) {
    timed.push_back(row.what == What::forward ||
                    (kernel.phase == "update") == (row.what == What::update));
    if (!timed.back()) continue;
    operations += static_cast<double>(kernel.operations);
    bytes += static_cast<double>(kernel.bytes_read + kernel.bytes_written);
  }
  double best = std::numeric_limits<double>::infinity(), total = 0;
  program.profile(3);
  for (auto _ : state) {
    double us = 0;
    for (const DispatchTime& time : program.profile(1))
      if (timed.at(static_cast<std::size_t>(time.kernel))) us += time.microseconds;
    best = std::min(best, us);
    total += us;
    state.SetIterationTime(us / 1e6);
  }
  const double mean = total / static_cast<double>(state.iterations());
  const double floor = std::max(operations / (1e3 * machine.gflops),
                                bytes / (1e3 * machine.gb_per_s(static_cast<std::int64_t>(bytes))));
  state.counters["best_us"] = best;
  state.counters["GFLOP/s"] = operations / (1e3 * mean);
  state.counters["GB/s"] = bytes / (1e3 * mean);
  state.counters["of_peak"] = floor / best;
}

void run_row(benchmark::State& state, const Row& row, Machine& machine) {
  Given model;
  for (const Shape& shape : row.operands) model.of.emplace_back(shape, init::normal(0.5f));
  std::vector<InputSpec> inputs;
  std::vector<std::int32_t> ids;
  if (row.classes > 0) {
    inputs.push_back({"ids", rows_of(row.operands[0]), i32});
    for (std::int64_t i = 0; i < inputs[0].shape.count(); ++i)
      ids.push_back(static_cast<std::int32_t>(i * 7 % row.classes));
  }
  const auto function = [&](const Given& m, const Inputs& in) { return row.function(m.of, in); };
  const auto feed_and_measure = [&](auto program) {
    if (!ids.empty()) program.set_input("ids", ids);
    measure(state, row, program, machine);
  };
  if (row.what == What::forward)
    feed_and_measure(compile_forward(
        model, {.inputs = inputs, .device = "cpu", .threads = machine.threads}, function));
  else
    feed_and_measure(compile(
        model,
        {.inputs = inputs, .optimizer = AdamW{}, .device = "cpu", .threads = machine.threads},
        function));
}

}  // namespace
}  // namespace tensorgrad::bench

int main(int argc, char** argv) {
  using namespace tensorgrad;
  using namespace tensorgrad::bench;
  Machine machine;
  // Asks a program, because it applies TENSORGRAD_THREADS and the limits of the machine.
  machine.threads = compile_forward(Given{{Param({1}, init::ones())}}, {.device = "cpu"},
                                    [](const Given& m, const Inputs&) { return exp(m.of[0]); })
                        .threads();
  machine.gflops = peak_gflops(machine.threads);
  benchmark::AddCustomContext("simd", cpu::simd_target());
  benchmark::AddCustomContext("threads", std::to_string(machine.threads));
  benchmark::AddCustomContext("peak GFLOP/s", fmt::format("{:.1f}", machine.gflops));
  for (const std::int64_t kib : {24, 768, 256 * 1024})
    benchmark::AddCustomContext(
        fmt::format("copy GB/s, {} KiB a thread", kib),
        fmt::format("{:.1f}", machine.gb_per_s(kib * 1024 * machine.threads)));
  const std::vector<Row> rows = all_rows();
  for (const Row& row : rows)
    benchmark::RegisterBenchmark(row.name.c_str(),
                                 [&](benchmark::State& state) { run_row(state, row, machine); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
