#include "train.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>

#include "compile_counter.h"
#include "interrupt.h"
#include "progress.h"
#include "task.h"
#include "train_text.h"

namespace tensorgrad::tool {

namespace {

struct TaskKind {
  const char* name;
  const char* description;
  std::int64_t steps, batch;
  double lr;
  std::unique_ptr<Task> (*make)(const TaskOptions& options);
};

constexpr TaskKind kTasks[] = {
    {"addition", "a transformer adds two numbers of two digits", 1500, 128, 3e-3, make_addition},
    {"copy", "Mamba finds letters among noise and lists them in order", 1500, 64, 5e-3, make_copy},
    {"sin", "a multilayer perceptron fits the sine", 1000, 256, 5e-3, make_sin},
};

struct TrainOptions {
  std::string task;
  TaskOptions run;  // 0 for steps, batch and lr: the task's default
  bool json = false;
};

constexpr std::int64_t kReports = 20;  // number of JSON lines about steps
constexpr std::int64_t kLooks = 10;    // number of evaluations on held-out examples

// Drivers compile kernels when they first run. To exclude that from the training time, everything
// runs once and training is reset. Returns milliseconds.
double warm_up(Task& task) {
  const auto start = std::chrono::steady_clock::now();
  task.step().wait();
  task.accuracy(Task::Extent::some);
  task.training().reset();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

struct Trained {
  std::int64_t steps = 0;
  double seconds = 0;
  float loss = 0;  // of the last step
};

// Makes all steps, or stops at ctrl-C or if the reader of stdout is gone. Reads a loss only to show
// it, so that nothing else blocks on the device.
Trained run_steps(Task& task, std::int64_t steps, bool json, const Interrupt& interrupt) {
  const std::int64_t every_report = std::max<std::int64_t>(1, steps / kReports);
  const std::int64_t every_look = std::max<std::int64_t>(1, steps / kLooks);
  Trained done;
  Progress progress(people(json), steps);
  for (bool last = false; !last;) {
    const Result result = task.step();
    ++done.steps;
    last = done.steps == steps || interrupt.happened() || reader_left();
    const bool report = json && (last || done.steps % every_report == 0);
    const bool show = last || progress.due(done.steps);
    if (report || show) done.loss = result.loss();
    if (report)
      print_json({{"event", "step"}, {"step", done.steps}, {"loss", shortest(done.loss)}});
    if (!last && done.steps % every_look == 0) {
      const double accuracy = task.accuracy(Task::Extent::some);
      progress.set_accuracy(accuracy);
      if (json) print_json({{"event", "eval"}, {"step", done.steps}, {"accuracy", accuracy}});
    }
    if (show) progress.show(done.steps, done.loss);
  }
  done.seconds = progress.seconds();
  return done;
}

const TaskKind& find_task(const std::string& wanted) {
  for (const TaskKind& kind : kTasks)
    if (kind.name == wanted) return kind;
  if (std::error_code ignored; std::filesystem::exists(wanted, ignored))
    usage_error("train: '{0}' is a file, not a task\n  hint: tg train text {0}", wanted);
  std::vector<std::string> names;
  for (const TaskKind& kind : kTasks) names.emplace_back(kind.name);
  names.emplace_back("text");
  unknown_name("task", wanted, names);
}

int train(const TrainOptions& options) {
  outlive_reader();
  if (options.task.empty()) usage_error("train: which task?\n  hint: tg train addition");
  const TaskKind& kind = find_task(options.task);
  TaskOptions run = options.run;
  if (run.steps == 0) run.steps = kind.steps;
  if (run.batch == 0) run.batch = kind.batch;
  if (run.lr == 0) run.lr = kind.lr;

  // Print the header first: a software driver may take minutes to compile.
  std::FILE* out = people(options.json);
  print_to(out, "{}: {}\n", kind.name, kind.description);
  run.where.progress = count_compiled(out);
  const std::unique_ptr<Task> task = kind.make(run);
  TrainingHandle& training = task->training();
  const bool gpu = training.threads() == 0;
  const double compile_ms = training.compile_ms() + (gpu ? warm_up(*task) : 0);
  print_to(out, "{} parameters, batch {}, seed {}, on {}, compiled in {:.0f} ms\n",
           grouped(parameter_count(training)), run.batch, run.seed,
           where_text(training.device(), training.threads()), compile_ms);

  const Interrupt interrupt;
  const Trained done = run_steps(*task, run.steps, options.json, interrupt);
  if (reader_left()) return 128 + SIGPIPE;

  const bool stopped = done.steps < run.steps;
  const double accuracy = task->accuracy(Task::Extent::all);
  const std::string sha256 = training.fingerprint();
  print_to(out, "{}{} in {:.1f} s, loss {:#.3g}, held-out accuracy {:.2f} % ({})\n",
           stopped ? "stopped: " : "", counted(done.steps, "step"), done.seconds, done.loss,
           100 * accuracy, task->right());
  for (const std::string& line : task->samples()) print_to(out, "  {}\n", line);
  print_to(out, "parameters {}\n", sha256);
  if (options.json) {
    print_json({{"event", "done"},
                {"task", kind.name},
                {"device", training.device()},
                {"seed", run.seed},
                {"steps", done.steps},
                {"seconds", rounded(done.seconds, 3)},
                {"compile_ms", rounded(compile_ms, 1)},
                {"loss", shortest(done.loss)},
                {"accuracy", accuracy},
                {"params_sha256", sha256}});
  }
  return stopped ? 128 + interrupt.signal() : 0;
}

}  // namespace

void add_train_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command =
      *tg.add_subcommand("train", "Train a model on a built-in task or a text file");
  std::string list = "Task to train on:";
  std::string example = "Tasks:\n";
  for (const TaskKind& kind : kTasks) {
    list += fmt::format("{} {}", &kind == kTasks ? "" : ",", kind.name);
    example += fmt::format("  {:<10}{}: {} steps of {}, learning rate {}\n", kind.name,
                           kind.description, kind.steps, kind.batch, kind.lr);
  }
  example += "  text FILE train a language model on a file: tg train text --help\n";
  command.add_option("task", options->task, list)->type_name("TASK");
  command.add_option("--steps", options->run.steps, "Training steps (default: the task's)")
      ->check(in_range(1, std::int64_t{1} << 31))
      ->type_name("N");
  command.add_option("--seed", options->run.seed, "Seed of weights and data")
      ->check(in_range(0, std::numeric_limits<std::uint32_t>::max()))
      ->capture_default_str()
      ->type_name("S");
  add_batch_option(command, options->run.batch);
  command.add_option("--lr", options->run.lr, "Peak learning rate (default: the task's)")
      ->check(positive())
      ->type_name("X");
  add_device_options(command, options->run.where);
  add_json_flag(command, options->json);
  command.footer(example + "Example:\n  tg train addition --seed 1");
  add_train_text_command(command, exit_code);
  command.callback([options, &command, &exit_code] {
    if (command.get_subcommands().empty()) exit_code = train(*options);
  });
}

}  // namespace tensorgrad::tool
