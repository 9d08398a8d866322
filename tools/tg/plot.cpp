#include "plot.h"

#include <cmath>

#include "command.h"
#include "plot_runs.h"
#include "progress.h"
#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::tool {

namespace {

namespace fs = std::filesystem;

struct PlotOptions {
  std::vector<std::string> runs;
  std::string out;
  bool json = false;
};

// The last value that is a number; NaN if there is none.
CurvePoint last_of(const Curve& curve) {
  for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
    if (!std::isnan(point->value)) return *point;
  return {0, 0, std::nan(""), 0};
}

CurvePoint lowest_of(const Curve& curve) {
  CurvePoint lowest{0, 0, std::nan(""), 0};
  for (const CurvePoint& point : curve.points)
    if (!std::isnan(point.value) && !(point.value >= lowest.value)) lowest = point;
  return lowest;
}

Json summary_json(const Run& run) {
  const auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  const CurvePoint best = lowest_of(run.curve("validation_loss"));
  return {
      {"run", run.name},
      {"folder", run.folder.string()},
      {"steps", run.steps},
      {"finished", !run.done.is_null()},
      {"seconds", rounded(run.seconds, 3)},
      {"loss", number(last_of(run.curve("loss")).value)},
      {"validation_loss", number(last_of(run.curve("validation_loss")).value)},
      {"final_validation_loss", run.final.is_object() ? run.final.value("loss", Json()) : Json()},
      {"best_validation_loss", number(best.value)},
      {"best_step", std::isnan(best.value) ? Json() : Json(best.step)},
      {"not_finite", run.not_finite},
      {"samples", run.all_samples},
      {"warnings", run.warnings}};
}

void print_summary(const Run& run) {
  const double loss = last_of(run.curve("loss")).value;
  const CurvePoint best = lowest_of(run.curve("validation_loss"));
  std::string line =
      fmt::format("{}: {} in {}", run.name, counted(run.steps, "step"), duration(run.seconds));
  if (!std::isnan(loss)) line += fmt::format(", loss {:.4f}", loss);
  if (!std::isnan(best.value))
    line += fmt::format(", best validation loss {:.4f} at step {}", best.value, grouped(best.step));
  if (run.not_finite)
    line += fmt::format(", {} loss{} not finite", grouped(run.not_finite),
                        run.not_finite == 1 ? "" : "es");
  print_out("{}\n", line);
}

void write_page(const std::vector<Run>& runs, const fs::path& out) {
  for (const Run& run : runs)
    for (const std::string& warning : run.warnings) print_to(stderr, "tg: {}\n", warning);
  write_file(out, plot_page(runs));
}

void plot(const PlotOptions& options) {
  if (options.runs.empty()) usage_error("plot: which run?\n  hint: tg plot runs/book-gpt");
  const std::vector<fs::path> folders(options.runs.begin(), options.runs.end());
  const std::vector<Run> runs = read_runs(folders);
  const fs::path out = !options.out.empty() ? fs::path(options.out)
                       : runs.size() == 1   ? folders[0] / "plot.html"
                                            : fs::path("plot.html");
  write_page(runs, out);
  for (const Run& run : runs) {
    if (options.json)
      print_json(summary_json(run));
    else
      print_summary(run);
  }
  print_to(people(options.json), "page written to {}\n", out.string());
}

}  // namespace

void write_plot(const std::vector<fs::path>& runs, const fs::path& out) {
  write_page(read_runs(runs), out);
}

void add_plot_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App& command = *tg.add_subcommand(
      "plot", "Write a page with the curves, samples and settings of training runs");
  command.add_option("runs", options->runs, "Folders of runs of tg train text")->type_name("RUN");
  command
      .add_option("--out", options->out,
                  "File for the page, self-contained HTML (default: plot.html in the "
                  "run's\nfolder; for several runs, in the current folder)")
      ->type_name("FILE");
  add_json_flag(command, options->json);
  command.footer("Example:\n  tg plot runs/book-gpt runs/book-mamba --out both.html");
  command.callback([options, &exit_code] {
    plot(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
