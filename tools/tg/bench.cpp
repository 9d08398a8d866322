#include "bench.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "bench_models.h"
#include "compile_counter.h"
#include "profile.h"
#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::tool {

namespace {

struct BenchOptions {
  std::vector<std::string> models;  // none: all of them
  DeviceOptions where;
  std::int64_t batch = 0;  // 0: the model's default
  double seconds = 2;      // of timing per model
  bool json = false, profile = false;
  std::string page = "tg-profile.html";
};

constexpr std::size_t kRuns = 5;
constexpr double kMostSteps = 2000;  // per run
// Steps longer than the time budget are timed one by one, for at most this many budgets.
constexpr double kPatience = 30;

struct Timing {
  std::vector<double> ms_per_step;  // of each run, sorted
  std::int64_t steps = 1;           // of each run

  double best() const { return ms_per_step.front(); }
  double median() const { return ms_per_step[ms_per_step.size() / 2]; }
};

// Returns milliseconds per step. Blocks at the end, and reads no results.
double time_steps(BenchProgram& program, std::int64_t steps) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 1; i < steps; ++i) program.step();
  program.step().wait();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(steps);
}

Timing measure(BenchProgram& program, double seconds) {
  const double budget_ms = 1000 * seconds;
  // Number of steps that fill that time, if each takes as long as in the warm-up.
  const auto steps_in = [&](double ms, double step_ms) {
    return static_cast<std::int64_t>(std::clamp(ms / step_ms, 1.0, kMostSteps));
  };
  double step_ms = time_steps(program, 1);
  if (step_ms < budget_ms / 20) step_ms = time_steps(program, steps_in(budget_ms / 20, step_ms));
  Timing timing;
  timing.steps = steps_in(budget_ms / kRuns, step_ms);
  double spent = 0;
  while (timing.ms_per_step.size() < kRuns && spent < kPatience * budget_ms) {
    timing.ms_per_step.push_back(time_steps(program, timing.steps));
    spent += timing.ms_per_step.back() * static_cast<double>(timing.steps);
  }
  std::sort(timing.ms_per_step.begin(), timing.ms_per_step.end());
  return timing;
}

constexpr const char* kRow = "{:<13}{:>6}{:>13}{:>13}{:>12}{:>9}{:>12}{:>11}{:>11}{:>10}\n";

std::int64_t batch_of(const BenchModel& model, const BenchOptions& options) {
  return options.batch && !model.gemm ? options.batch : model.batch;
}

void bench(const BenchModel& model, const BenchOptions& options) {
  const std::int64_t batch = batch_of(model, options);
  BenchProgram built = model.build(model, batch, options.where);
  const Timing timing = measure(built, options.seconds);
  const ProgramHandle& program = built.program();
  const Counts counts = program.counts();
  const double gflops = static_cast<double>(counts.operations) / (1e6 * timing.median());

  if (timing.ms_per_step.size() < kRuns || timing.best() > 1000 * options.seconds)
    print_to(stderr, "{}: a step takes longer than the budget of {} s; timed {}\n", model.name,
             options.seconds,
             counted(static_cast<std::int64_t>(timing.ms_per_step.size()), "single step"));
  if (options.json) {
    Json line = {{"model", model.name},
                 {"device", program.device()},
                 {"threads", program.threads()},
                 {"simd", simd_of(program.device())},
                 {"batch", batch},
                 {"ms_per_step", rounded(timing.median(), 4)},
                 {"best_ms", rounded(timing.best(), 4)},
                 {"compile_ms", rounded(program.compile_ms(), 2)},
                 {"kernels", counts.kernels},
                 {"dispatches", counts.dispatches},
                 {"passes", counts.passes},
                 {"submits", counts.submits},
                 {"arena_bytes", counts.arena_bytes},
                 {"param_bytes", counts.param_bytes},
                 {"operations", counts.operations},
                 {"bytes_moved", counts.bytes_moved},
                 {"gflops", rounded(gflops, 2)}};
    print_json(line);
    return;
  }
  print_out(fmt::runtime(kRow), model.name, batch, fmt::format("{:.3f}", timing.median()),
            fmt::format("{:.3f}", timing.best()), fmt::format("{:.1f}", program.compile_ms()),
            counts.kernels, counts.dispatches,
            fmt::format("{:.2f}", static_cast<double>(counts.arena_bytes) / 1e6),
            fmt::format("{:.2f}", static_cast<double>(counts.param_bytes) / 1e6),
            fmt::format("{:.1f}", gflops));
}

// Opens the page first, so that an error shows before the measurement, which takes a minute.
void profile_all(const std::vector<const BenchModel*>& models, const BenchOptions& options) {
  AtomicFile page(options.page);
  std::vector<Profile> profiles;
  for (const BenchModel* model : models) {
    const std::int64_t batch = batch_of(*model, options);
    BenchProgram built = model->build(*model, batch, options.where);
    profiles.push_back(measure_profile(std::string(model->name), batch, built.program()));
    if (options.json)
      print_json(profile_json(profiles.back()));
    else
      print_profile(profiles.back());
  }
  const std::string text = profile_page(profiles);
  page.write(std::as_bytes(std::span(text.data(), text.size())));
  page.commit();
  print_to(people(options.json), "page written to {}\n", options.page);
}

void bench_all(const BenchOptions& options) {
  std::vector<const BenchModel*> models;  // find all models before measuring the first
  for (const std::string& name : options.models) models.push_back(&find_bench_model(name));
  if (models.empty())
    for (const BenchModel& model : bench_models()) models.push_back(&model);
  if (options.profile) return profile_all(models, options);
  if (!options.json)
    print_out(fmt::runtime(kRow), "model", "batch", "ms/step", "best ms", "compile ms", "kernels",
              "dispatches", "arena MB", "param MB", "GFLOP/s");
  for (const BenchModel* model : models) bench(*model, options);
}

}  // namespace

void add_bench_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *tg.add_subcommand("bench", "Measure training steps and matmuls");
  command
      .add_option("--models", options->models,
                  "Models to measure, from the list below (default: all)")
      ->delimiter(',')
      ->type_name("A,B");
  command.add_option("--seconds", options->seconds, "Time to spend on each model")
      ->check(positive())
      ->capture_default_str()
      ->type_name("X");
  CLI::Option* profile = command.add_flag(
      "--profile", options->profile,
      "Measure each kernel instead of whole steps; print a table and write a page");
  command
      .add_option("--page", options->page, "File for the page of --profile, self-contained HTML")
      ->needs(profile)
      ->capture_default_str()
      ->type_name("FILE");
  add_batch_option(command, options->batch);
  add_device_options(command, options->where);
  add_json_flag(command, options->json);
  command.footer(
      "ms/step is the median of 5 runs; no data is uploaded or read while they are timed.\n"
      "GFLOP/s counts the operations of the plan.\n" +
      bench_model_list() + "Example:\n  tg bench --models mlp_sin,addition --json");
  command.callback([options, &exit_code] {
    options->where.progress = count_compiled(stderr);
    bench_all(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
