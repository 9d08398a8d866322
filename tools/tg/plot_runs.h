// The contents of a run folder of `tg train text`, thinned out to what a page can draw.
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
  double mean = 0;   // of the points that this one represents
};

// Keeps about `most` points: of each interval the lowest, the highest, and one NaN if there is any.
// Always keeps the first and the last point. Each point carries the mean of its interval.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, std::size_t most);

struct Curve {
  std::string name;  // its name on the page: "loss", "validation_loss"
  std::vector<CurvePoint> points;
};

struct Sample {
  std::int64_t step = 0;
  std::string prompt, text;
};

struct Run {
  std::string name;  // name of the folder, or its path if two names are equal
  std::filesystem::path folder;
  Json config = Json::object(), start = Json::object();
  Json done;                          // null: not finished
  Json final;                         // the last validation, over more tokens; null: none
  std::vector<std::int64_t> resumed;  // steps that it was resumed from
  std::vector<Curve> curves;          // every curve, thinned out; some may be empty
  std::vector<Sample> samples;
  std::int64_t all_samples = 0;
  std::int64_t steps = 0;       // the last step in the log
  std::int64_t not_finite = 0;  // non-finite losses
  double seconds = 0;           // of training, including time before it was resumed
  std::optional<double> tokens_per_step;
  std::vector<std::string> warnings;

  const Curve& curve(std::string_view name) const;
};

// Throws a UserError if a folder is not a run.
std::vector<Run> read_runs(const std::vector<std::filesystem::path>& folders);

// The data of the page as JSON, and the whole page.
Json runs_json(const std::vector<Run>& runs);
std::string plot_page(const std::vector<Run>& runs);
extern const char* const kPlotScript;

}  // namespace tensorgrad::tool
