// What a run of `tg train text` left in its folder, thinned out to what a page can draw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "command.h"

namespace tensorgrad::tool {

struct CurvePoint {
  std::int64_t step = 0;
  double seconds = 0;
  double value = 0;  // NaN: the log has null
  double mean = 0;   // of the points that this one stands for
};

// About `most` points at most: of each stretch the lowest and the highest, and one that is NaN if there is any; the
// first and the last of all are among them. Each has its stretch's mean.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, std::size_t most);

struct Curve {
  std::string name;  // "loss", "validation_loss": what the page calls it
  std::vector<CurvePoint> points;
};

struct Sample {
  std::int64_t step = 0;
  std::string prompt, text;
};

struct Run {
  std::string name;  // the folder's own, or its path where two have the same
  std::filesystem::path folder;
  Json config = Json::object(), start = Json::object();
  Json done;                          // null: it was not finished
  std::vector<std::int64_t> resumed;  // from which steps
  std::vector<Curve> curves;          // all of them, thinned out; some may be empty
  std::vector<Sample> samples;
  std::int64_t all_samples = 0;
  std::int64_t steps = 0;       // the last one in the log
  std::int64_t not_finite = 0;  // losses
  double seconds = 0;           // of training, also before it was resumed
  std::optional<double> tokens_per_step;
  std::vector<std::string> warnings;

  const Curve& curve(std::string_view name) const;
};

// A UserError when a folder is no run.
std::vector<Run> read_runs(const std::vector<std::filesystem::path>& folders);

// What the page draws, as JSON, and the whole page around it.
Json runs_json(const std::vector<Run>& runs);
std::string plot_page(const std::vector<Run>& runs);
extern const char* const kPlotScript;

}  // namespace tensorgrad::tool
