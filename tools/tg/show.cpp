#include "show.h"

#include "bench_models.h"
#include "compile/report_json.h"

namespace tensorgrad::tool {

namespace {

struct ShowOptions {
  std::string model, stage = "plan", device = "cpu";
  bool times = false;
  std::int64_t batch = 0;  // 0: the model's default
  std::vector<std::string> without;
  bool json = false;
};

std::vector<std::string> stage_names() {
  std::vector<std::string> out;
  for (const StageInfo& stage : compiler_stages()) out.emplace_back(stage.name);
  return out;
}

void show_times(const ShowOptions& options, const ProgramHandle& program, std::int64_t batch) {
  double total = 0;
  Json stages = Json::array();
  for (const StageTime& time : program.stage_times()) {
    total += time.milliseconds;
    stages.push_back({{"stage", time.stage}, {"ms", time.milliseconds}});
  }
  if (options.json) {
    print_json({{"model", options.model},
                {"device", program.device()},
                {"batch", batch},
                {"times", stages},
                {"total_ms", total}});
    return;
  }
  for (const StageTime& time : program.stage_times())
    print_out("{:<14}{:>10.2f} ms{:>6.0f} %\n", time.stage, time.milliseconds,
              100 * time.milliseconds / total);
  print_out("{:<14}{:>10.2f} ms\n", "all", total);
}

void show(const ShowOptions& options) {
  if (options.model.empty())
    usage_error("show: which model?\n  hint: tg show addition; tg show --help lists the models");
  const BenchModel& model = find_bench_model(options.model);
  const std::vector<std::string> stages = stage_names();
  if (std::find(stages.begin(), stages.end(), options.stage) == stages.end())
    unknown_name("stage", options.stage, stages);

  const std::int64_t batch = options.batch ? options.batch : model.batch;
  const BenchProgram built = model.build(
      model, batch, {.device = options.device, .threads = 1, .without = options.without});
  if (options.times) return show_times(options, built.program(), batch);
  const std::string text = built.program().show(options.stage);
  const Counts counts = built.program().counts();
  if (options.json) {
    Json line = {{"model", model.name},
                 {"stage", options.stage},
                 {"device", built.program().device()},
                 {"batch", batch}};
    line.update(Json::parse(detail::json_of(counts)));
    line["text"] = text;
    if (options.stage == "plan")
      line["plan"] = Json::parse(detail::json_of(built.program().plan()));
    print_json(line);
    return;
  }
  print_out("{}", text);
  print_to(stderr, "{} at batch {} on {}, stage {}: {} kernels, {:.2f} MB of activations\n",
           model.name, batch, built.program().device(), options.stage, counts.kernels,
           static_cast<double>(counts.arena_bytes) / 1e6);
}

}  // namespace

void add_show_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App& command = *tg.add_subcommand("show", "Print a model after a stage of the compiler");
  command.add_option("model", options->model, "One of the models below")->type_name("MODEL");
  command
      .add_option("--stage", options->stage,
                  fmt::format("Stage to print: {}", fmt::join(stage_names(), ", ")))
      ->capture_default_str()
      ->type_name("STAGE");
  command
      .add_option("--device", options->device,
                  "Device to compile for; wgsl shows a GPU's shaders without a GPU")
      ->check(device_name({"wgsl"}))
      ->capture_default_str()
      ->type_name("NAME");
  command.add_flag("--times", options->times, "Print how long each stage takes instead");
  add_batch_option(command, options->batch);
  add_without_option(command, options->without);
  add_json_flag(command, options->json);
  command.footer(bench_model_list() +
                 "Example:\n  tg show addition --stage fuse\n  tg show addition --stage emit "
                 "--device webgpu\n  tg show addition --times");
  command.callback([options, &exit_code] {
    show(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
