// Reads config.json and log.jsonl. A log may end inside a line and be continued after a resume.
// Steps that were repeated replace the earlier ones.
#include "plot_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <system_error>

#include "io/named.h"
#include "read_json.h"
#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPoints = 2000, kMostSamples = 200, kLongestSample = 20'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Curves and the source of their values: the event and its key.
struct CurveSource {
  const char *name, *event, *key;
};
constexpr CurveSource kCurves[] = {
    {"loss", "step", "loss"},
    {"lr", "step", "lr"},
    {"grad_norm", "step", "grad_norm"},
    {"tokens_per_second", "step", "tokens_per_second"},
    {"validation_loss", "validation", "loss"},
    {"perplexity", "validation", "perplexity"},
    {"bits_per_byte", "validation", "bits_per_byte"},
};

// Replaces bytes that are not UTF-8 by U+FFFD.
std::string valid_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

// Parses an object with an event and a step, which all events have; nothing if it is no log line.
std::optional<Json> parse_line(const std::string& text) {
  const auto parse = [](const std::string& words) {
    try {
      return parse_json(words);
    } catch (const UserError&) {
      return Json();
    }
  };
  Json line = parse(text);
  if (!line.is_object()) line = parse(valid_utf8(text));
  if (!line.is_object() || !line.contains("event") || !line["event"].is_string()) return {};
  if (!line.contains("step") || !line["step"].is_number_integer()) return {};
  return line;
}

double number(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kNan;
}

std::string text(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

class LogReader {
 public:
  explicit LogReader(Run& run) : run_(run) {
    for (const CurveSource& source : kCurves) run_.curves.push_back({source.name, {}});
  }

  void read(const fs::path& path) {
    if (file_type_at(path) == fs::file_type::not_found)
      user_error("{}: not a run: it has no readable log.jsonl", run_.folder.string());
    std::istringstream in(read_file(path));
    std::int64_t at = 0, skipped = 0, first = 0;
    for (std::string words; std::getline(in, words);) {
      ++at;
      if (words.find_first_not_of(" \t\r") == words.npos) continue;
      const bool torn = in.eof();  // the newline is missing
      if (const auto line = parse_line(words))
        take(*line);
      else if (!torn && skipped++ == 0)
        first = at;
    }
    if (skipped)
      run_.warnings.push_back(fmt::format("{}: {} unreadable line{} skipped, the first is line {}",
                                          path.string(), grouped(skipped),
                                          skipped == 1 ? " was" : "s were", first));
    finish(path);
  }

 private:
  void take(const Json& line) {
    const std::string event = line["event"];
    const auto step = line["step"].get<std::int64_t>();
    if (event == "start") run_.start = line;
    if (event == "done" && line.value("stopped", Json()) != true) run_.done = line;
    if (event == "final") run_.final = line;
    if (event == "resume") {
      run_.resumed.push_back(step);
      go_back_to(step);
    }
    if (event == "step") {
      if (!steps_.empty() && step <= steps_.back()) go_back_to(step - 1);
      steps_.push_back(step);
      seconds_.push_back(whole_seconds(number(line, "seconds")));
    }
    for (std::size_t i = 0; i < std::size(kCurves); ++i) {
      if (event != kCurves[i].event || !line.contains(kCurves[i].key)) continue;
      const double value = number(line, kCurves[i].key);
      run_.curves[i].points.push_back({step, seconds_.empty() ? 0 : seconds_.back(), value, value});
    }
    if (event == "sample") run_.samples.push_back({step, text(line, "prompt"), text(line, "text")});
  }

  // Seconds of the whole run. The log starts at 0 again after each resume.
  double whole_seconds(double logged) {
    const double last = seconds_.empty() ? 0 : seconds_.back();
    if (!std::isfinite(logged)) return last;
    if (resumed_ && logged + before_ < last) before_ = last;
    resumed_ = false;
    return logged + before_;
  }

  // Drops everything after that step, because it will be repeated.
  void go_back_to(std::int64_t step) {
    const auto later = [step](const auto& item) { return item.step > step; };
    for (Curve& curve : run_.curves) std::erase_if(curve.points, later);
    std::erase_if(run_.samples, later);
    while (!steps_.empty() && steps_.back() > step) steps_.pop_back(), seconds_.pop_back();
    run_.done = run_.final = Json();
    resumed_ = true;
  }

  void finish(const fs::path& path) {
    if (steps_.empty()) run_.warnings.push_back(fmt::format("{}: no steps yet", path.string()));
    run_.steps = steps_.empty() ? 0 : steps_.back();
    run_.seconds = seconds_.empty() ? 0 : seconds_.back();
    for (Curve& curve : run_.curves) {
      if (curve.name == "loss")
        run_.not_finite =
            std::count_if(curve.points.begin(), curve.points.end(),
                          [](const CurvePoint& point) { return std::isnan(point.value); });
      curve.points = thin_out(curve.points, kMostPoints);
    }
    run_.all_samples = static_cast<std::int64_t>(run_.samples.size());
    thin_out_samples();
  }

  // Keeps evenly spaced samples, including the first and the last.
  void thin_out_samples() {
    std::vector<Sample>& all = run_.samples;
    if (all.size() > kMostSamples) {
      std::vector<Sample> kept;
      for (std::size_t i = 0; i < kMostSamples; ++i)
        kept.push_back(std::move(all[i * (all.size() - 1) / (kMostSamples - 1)]));
      all = std::move(kept);
    }
    for (Sample& sample : all)
      if (sample.text.size() > kLongestSample)
        sample.text =
            valid_utf8(sample.text.substr(0, kLongestSample)) +
            fmt::format("... ({} bytes)", grouped(static_cast<std::int64_t>(sample.text.size())));
  }

  Run& run_;
  std::vector<std::int64_t> steps_;
  std::vector<double> seconds_;  // at those steps
  double before_ = 0;            // seconds before the last resume
  bool resumed_ = false;
};

Json read_config(const fs::path& path, std::vector<std::string>& warnings) {
  try {
    Json config = io::named(path.string(), [&] { return parse_json(valid_utf8(read_file(path))); });
    if (config.is_object()) return config;
    warnings.push_back(fmt::format("{}: no JSON object", path.string()));
  } catch (const UserError& error) {
    warnings.push_back(error.what());
  }
  return Json::object();
}

// batch * context
std::optional<double> tokens_per_step(const Json& config) {
  const Json none = Json::object();
  const Json training = config.value("training", none), model = config.value("model", none);
  if (!training.is_object() || !model.is_object()) return {};
  const double accumulate = training.contains("accumulate") ? number(training, "accumulate") : 1;
  const double tokens = number(training, "batch") * accumulate * number(model, "context");
  return tokens > 0 ? std::optional(tokens) : std::nullopt;
}

Run read_run(const fs::path& folder) {
  Run run;
  run.folder = folder;
  if (file_type_at(folder) != fs::file_type::directory)
    user_error("{}: not a run: there is no such folder", folder.string());
  std::error_code error;
  fs::path whole = fs::absolute(folder, error);
  if (error) whole = folder;  // only used for the name
  whole = whole.lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  LogReader(run).read(folder / "log.jsonl");
  run.config = read_config(folder / "config.json", run.warnings);
  run.tokens_per_step = tokens_per_step(run.config);
  return run;
}

}  // namespace

const Curve& Run::curve(std::string_view wanted) const {
  return *std::find_if(curves.begin(), curves.end(),
                       [&](const Curve& c) { return c.name == wanted; });
}

std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<CurvePoint> kept;
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t begin = i * points.size() / stretches,
                      end = (i + 1) * points.size() / stretches;
    std::size_t low = end, high = end, bad = end, finite = 0;
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j) {
      const double value = points[j].value;
      if (std::isnan(value)) {
        bad = std::min(bad, j);
        continue;
      }
      if (low == end || value < points[low].value) low = j;
      if (high == end || value > points[high].value) high = j;
      sum += value, ++finite;
    }
    std::vector<std::size_t> chosen = {low, high, bad};
    if (i == 0) chosen.push_back(begin);
    if (i + 1 == stretches) chosen.push_back(end - 1);
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const std::size_t j : chosen) {
      if (j == end) continue;
      kept.push_back(points[j]);
      kept.back().mean = finite ? sum / static_cast<double>(finite) : kNan;
    }
  }
  return kept;
}

std::vector<Run> read_runs(const std::vector<fs::path>& folders) {
  std::vector<Run> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run(folder));
  // Runs with equal names are named by their paths.
  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name);
  for (Run& run : runs)
    if (std::count(names.begin(), names.end(), run.name) > 1) run.name = run.folder.string();
  return runs;
}

}  // namespace tensorgrad::tool
