// How long compiling takes as programs grow: transformer blocks, an unrolled GRU, separate
// parameters, and each pass left out. Prints a table; stage times are those of the last column's
// program.
//   bench_compile_time [most blocks]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace {

using namespace tensorgrad;

using Build = std::function<double(const std::vector<std::string>& without)>;  // milliseconds

double best_of(int rounds, const Build& build, const std::vector<std::string>& without = {}) {
  double best = build(without);
  for (int i = 1; i < rounds; ++i) best = std::min(best, build(without));
  return best;
}

std::string slowest_stages(const ProgramHandle& program) {
  std::vector<StageTime> times = program.stage_times();
  std::sort(times.begin(), times.end(),
            [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
  std::string out;
  for (std::size_t i = 0; i < 4; ++i)
    out += fmt::format("{}{} {:.0f}", i ? ", " : "", times[i].stage, times[i].milliseconds);
  return out;
}

std::string last_stages;

struct Stack {
  std::vector<TransformerBlock> blocks;
};

Build transformer(int blocks) {
  return [=](const std::vector<std::string>& without) {
    Stack model;
    for (int i = 0; i < blocks; ++i) model.blocks.emplace_back(TransformerBlock{8, 2});
    const auto train =
        compile(std::move(model),
                {.inputs = {{"x", {1, 4, 8}}}, .device = "cpu", .threads = 1, .without = without},
                [](const Stack& m, const Inputs& in) {
                  Tensor x = in["x"];
                  for (const TransformerBlock& block : m.blocks) x = block(x);
                  return mean(square(x));
                });
    last_stages = slowest_stages(train);
    return train.compile_ms();
  };
}

struct Gru {
  Linear z{24, 16}, r{24, 16}, h{24, 16};
};

Build gru(int steps) {
  return [=](const std::vector<std::string>& without) {
    const auto train = compile(
        Gru{},
        {.inputs = {{"x", {2, steps, 8}}}, .device = "cpu", .threads = 1, .without = without},
        [=](const Gru& m, const Inputs& in) {
          Tensor h = zeros({2, 16});
          for (int t = 0; t < steps; ++t) {
            const Tensor x = squeeze(narrow(in["x"], 1, t, 1), 1);
            const Tensor xh = concat({x, h}, 1);
            const Tensor z = sigmoid(m.z(xh)), r = sigmoid(m.r(xh));
            h = (1 - z) * h + z * tanh(m.h(concat({x, r * h}, 1)));
          }
          return mean(square(h));
        });
    last_stages = slowest_stages(train);
    return train.compile_ms();
  };
}

struct Many {
  std::vector<Param> all;
};

Build parameters(int count) {
  return [=](const std::vector<std::string>& without) {
    Many model;
    for (int i = 0; i < count; ++i) model.all.emplace_back(Shape{4});
    const auto train =
        compile(std::move(model),
                {.inputs = {{"x", {4}}}, .device = "cpu", .threads = 1, .without = without},
                [](const Many& m, const Inputs& in) {
                  Tensor loss = mean(in["x"]);
                  float factor = 1;  // so that no two gradients are equal
                  for (const Param& p : m.all) loss = loss + mean(p * in["x"]) * factor++;
                  return loss;
                });
    last_stages = slowest_stages(train);
    return train.compile_ms();
  };
}

void report(const char* what, int size, const Build& build, int rounds) {
  const double ms = best_of(rounds, build);
  fmt::print("{:<20}{:>8}{:>12.1f} ms{:>10.1f} us each   {}\n", what, size, ms, 1e3 * ms / size,
             last_stages);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 1000;
  for (const int blocks : {10, 100, 300, 1000})
    if (blocks <= most)
      report("transformer blocks", blocks, transformer(blocks), blocks < 300 ? 3 : 1);
  for (const int steps : {30, 100, 400}) report("GRU steps", steps, gru(steps), 3);
  for (const int count : {100, 1000, 10000})
    report("parameters", count, parameters(count), count < 10000 ? 3 : 1);
  const double blocks = best_of(3, transformer(100)), steps = best_of(3, gru(200));
  fmt::print("\nWithout one pass, against the default: 100 blocks, 200 GRU steps\n");
  for (const PassInfo& pass : compiler_passes()) {
    const std::vector<std::string> without{std::string(pass.name)};
    fmt::print("{:<20}{:>8.2f}{:>8.2f}\n", pass.name,
               best_of(2, transformer(100), without) / blocks,
               best_of(2, gru(200), without) / steps);
    std::fflush(stdout);
  }
}
