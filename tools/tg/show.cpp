#include "show.h"

#include "bench_models.h"

namespace tensorgrad::tool {

namespace {

struct ShowOptions {
  std::string model, stage = "plan";
  std::int64_t batch = 0;  // 0: the model's default
  std::vector<std::string> without;
  bool json = false;
};

std::vector<std::string> stage_names() {
  const auto stages = ProgramHandle::stages();
  return {stages.begin(), stages.end()};
}

Json plan_json(const ProgramHandle& program) {
  Json kernels = Json::array();
  for (const PlannedKernel& kernel : program.plan()) {
    Json writes = Json::array();
    for (const PlannedTensor& tensor : kernel.writes)
      writes.push_back({{"type", tensor.type},
                        {"space", tensor.space},
                        {"offset", tensor.offset},
                        {"bytes", tensor.bytes},
                        {"last_use", tensor.last_use},
                        {"in_place", tensor.in_place}});
    kernels.push_back({{"kind", kernel.kind},
                       {"phase", kernel.phase},
                       {"stage", kernel.stage},
                       {"ops", kernel.ops},
                       {"operations", kernel.operations},
                       {"bytes_read", kernel.bytes_read},
                       {"bytes_written", kernel.bytes_written},
                       {"writes", writes}});
  }
  return kernels;
}

void show(const ShowOptions& options) {
  if (options.model.empty())
    usage_error("show: which model?\n  hint: tg show addition; tg show --help lists the models");
  const BenchModel& model = find_bench_model(options.model);
  const std::vector<std::string> stages = stage_names();
  if (std::find(stages.begin(), stages.end(), options.stage) == stages.end())
    unknown_name("stage", options.stage, stages);

  const std::int64_t batch = options.batch ? options.batch : model.batch;
  const BenchProgram built =
      model.build(model, batch, {.device = "cpu", .threads = 1, .without = options.without});
  const std::string text = built.program().show(options.stage);
  const Counts counts = built.program().counts();
  if (options.json) {
    Json line = {{"model", model.name},
                 {"stage", options.stage},
                 {"batch", batch},
                 {"kernels", counts.kernels},
                 {"dispatches", counts.dispatches},
                 {"passes", counts.passes},
                 {"submits", counts.submits},
                 {"arena_bytes", counts.arena_bytes},
                 {"param_bytes", counts.param_bytes},
                 {"gradient_bytes", counts.gradient_bytes},
                 {"state_bytes", counts.state_bytes},
                 {"input_bytes", counts.input_bytes},
                 {"operations", counts.operations},
                 {"bytes_moved", counts.bytes_moved}};
    line["text"] = text;
    if (options.stage == "plan") line["plan"] = plan_json(built.program());
    print_json(line);
    return;
  }
  print_out("{}", text);
  print_to(stderr, "{} at batch {}, stage {}: {} kernels, {:.2f} MB of activations\n", model.name,
           batch, options.stage, counts.kernels, static_cast<double>(counts.arena_bytes) / 1e6);
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
  add_batch_option(command, options->batch);
  add_without_option(command, options->without);
  add_json_flag(command, options->json);
  command.footer(bench_model_list() + "Example:\n  tg show addition --stage fuse");
  command.callback([options, &exit_code] {
    show(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
