// Reads the file once. Computes statistics of every tensor, listed or not, so that no NaN is
// missed.
#include "inspect.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "command.h"
#include "io/checkpoint_bytes.h"
#include "io/element_type.h"
#include "read_json.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/text.h"
#include "tensor_table.h"

namespace tensorgrad::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOptimizer = "optimizer/";  // prefix of its tensors

struct InspectOptions {
  std::string file;
  std::vector<std::string> patterns;
  bool optimizer = false, json = false;
  std::int64_t width = 0;  // 0: the terminal's width
};

bool of_optimizer(const TensorRow& tensor) { return tensor.name.starts_with(kOptimizer); }

struct Totals {
  std::int64_t tensors = 0, count = 0, bytes = 0;

  void add(const TensorRow& tensor) { ++tensors, count += tensor.count, bytes += tensor.bytes; }
};

// ---- which file

// The newest readable checkpoint of a run or of its folder of checkpoints.
fs::path newest_in(const fs::path& folder) {
  for (const fs::path& place : {folder / "checkpoints", folder}) {
    if (std::error_code ignored; !fs::is_directory(place, ignored)) continue;
    const auto found = CheckpointFolder(place).newest(CheckpointPart::model);
    if (!found) continue;
    for (const std::string& bad : found->unreadable) print_to(stderr, "tg: skipped: {}\n", bad);
    return found->path;
  }
  user_error(
      "{}: a folder without checkpoints\n  hint: files are named "
      "checkpoints/step-00000100.safetensors",
      folder.string());
}

// ---- what it says of itself

// Parses JSON, or returns the text as a string. Limits the depth, because printing JSON is
// recursive.
Json value_of(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const UserError&) {
    return text;
  }
}

// Kind and size of a tokenizer, from its JSON and the model's config.
Json about_tokenizer(const Json& tokenizer, const Json& config) {
  Json about = Json::object();
  if (tokenizer.is_object() && tokenizer.contains("kind")) about["kind"] = tokenizer["kind"];
  if (config.is_object() && config.contains("vocab")) about["vocab"] = config["vocab"];
  return about;
}

// All metadata: known names first, a tokenizer as its kind and size.
Json describe(const std::map<std::string, std::string>& metadata) {
  Json all = Json::object();
  for (const auto& [key, text] : metadata)
    if (!text.empty()) all[key] = value_of(text);
  Json about = Json::object();
  const Json config = all.value("config", Json());
  for (const char* key : {"step", "seed", "position"})
    if (all.contains(key)) about[key] = all[key];
  if (config.is_object() && config.contains("kind")) about["kind"] = config["kind"];
  if (all.contains("config")) about["config"] = config;
  if (all.contains("tokenizer")) about["tokenizer"] = about_tokenizer(all["tokenizer"], config);
  Json more = Json::object();
  for (const auto& [key, text] : metadata)
    if (!text.empty() && (!about.contains(key) || key == "kind")) more[key] = text;
  about["metadata"] = more;
  return about;
}

// "dim 64, layers 2": JSON for people, cut if long.
std::string in_words(const Json& value) {
  constexpr std::size_t kLongest = 200;
  if (value.is_object()) {
    std::vector<std::string> parts;
    for (const auto& [key, part] : value.items())
      parts.push_back(plain(key) + " " + in_words(part));
    return join(parts, ", ");
  }
  std::string text = plain(value.is_string() ? value.get<std::string>() : value.dump());
  if (text.empty()) return "-";
  if (text.size() <= kLongest) return text;
  std::size_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
    --cut;  // not inside a character
  return fmt::format("{}... ({} bytes)", text.substr(0, cut),
                     grouped(static_cast<std::int64_t>(text.size())));
}

// ---- the command

Json tensor_json(const TensorRow& tensor, const Shape& shape) {
  const TensorStats& s = tensor.stats;
  const auto number = [&](double value) { return s.finite ? Json(value) : Json(); };
  Json sizes = Json::array();
  for (const std::int64_t size : shape) sizes.push_back(size);
  return {{"tensor", tensor.name},  {"dtype", tensor.dtype},  {"shape", sizes},
          {"count", tensor.count},  {"bytes", tensor.bytes},  {"min", number(s.min)},
          {"max", number(s.max)},   {"mean", number(s.mean)}, {"std", number(s.deviation)},
          {"norm", number(s.norm)}, {"zeros", s.zeros},       {"nan", s.nans},
          {"inf", s.infs}};
}

Json totals_json(const Totals& totals) {
  return {{"tensors", totals.tensors}, {"count", totals.count}, {"bytes", totals.bytes}};
}

std::string totals_words(const Totals& totals) {
  return fmt::format("{} in {} tensor{}, {} bytes", grouped(totals.count), grouped(totals.tensors),
                     totals.tensors == 1 ? "" : "s", grouped(totals.bytes));
}

std::vector<TensorRow> rows_of(const TensorFile& file) {
  std::vector<TensorRow> all;
  for (const auto& [name, array] : file.tensors) {
    const std::string& dtype = file.stored.at(name);
    const auto bytes = static_cast<std::int64_t>(io::find_element_type(dtype)->bytes);
    all.push_back({name, dtype, array.shape().text(), array.count(), array.count() * bytes,
                   tensor_stats(array)});
  }
  return all;
}

// Lists tensors of the optimizer only on request, by the flag or by a pattern with their prefix.
std::vector<const TensorRow*> listed(const std::vector<TensorRow>& all,
                                     const InspectOptions& options) {
  for (const std::string& pattern : options.patterns)
    if (std::none_of(all.begin(), all.end(),
                     [&](const TensorRow& t) { return matches(pattern, t.name); })) {
      std::vector<std::string> names;
      for (const TensorRow& tensor : all) names.push_back(tensor.name);
      const std::string hint = name_hint(pattern, names);
      user_error("--tensors: no tensor matches '{}'{}", pattern,
                 hint.empty() ? "" : "\n  hint: " + hint);
    }
  std::vector<const TensorRow*> chosen;
  for (const TensorRow& tensor : all) {
    bool wanted = options.patterns.empty() && (options.optimizer || !of_optimizer(tensor));
    for (const std::string& pattern : options.patterns)
      wanted = wanted ||
               (matches(pattern, tensor.name) &&
                (options.optimizer || !of_optimizer(tensor) || pattern.starts_with(kOptimizer)));
    if (wanted) chosen.push_back(&tensor);
  }
  return chosen;
}

std::size_t columns(const InspectOptions& options) {
  if (options.width > 0) return usize(options.width);
  winsize size{};
  if (is_terminal(stdout) && ioctl(fileno(stdout), TIOCGWINSZ, &size) == 0) return size.ws_col;
  return 0;
}

// A file and everything that is printed about it.
struct Report {
  fs::path path, asked;
  Json about;
  std::vector<TensorRow> all = {};
  std::vector<const TensorRow*> rows = {};  // the tensors to list
  Totals parameters = {}, optimizer = {};
  std::string damage = {};  // of a checkpoint; empty: none
};

void print_for_people(const Report& report, const InspectOptions& options) {
  const Json& about = report.about;
  const bool itself = report.path == report.asked;
  print_out("{}{}\n", report.path.string(),
            itself ? "" : fmt::format(" (the newest of {})", report.asked.string()));
  print_out("  {}\n", about.contains("step") ? "checkpoint at step " + in_words(about["step"])
                                             : "safetensors file");
  for (const auto& [key, value] : about.items())
    if (key != "step" && key != "metadata" && key != "kind")
      print_out("  {:<10} {}\n", key, in_words(value));
  for (const auto& [key, value] : about["metadata"].items())
    print_out("  {:<10} {}\n", plain(key), in_words(value));
  print_out("\n");
  if (!report.rows.empty()) print_out("{}\n", tensor_table(report.rows, columns(options)));
  print_out("parameters  {}\n", totals_words(report.parameters));
  if (report.optimizer.tensors) print_out("optimizer   {}\n", totals_words(report.optimizer));
  if (const std::size_t hidden = report.all.size() - report.rows.size())
    print_out("not listed  {} of {} tensors{}\n", hidden, report.all.size(),
              report.optimizer.tensors && !options.optimizer
                  ? "; --optimizer lists those of the optimizer"
                  : "");
  for (const TensorRow& tensor : report.all)
    if (tensor.stats.bad())
      print_out("!! {} holds {}\n", plain(tensor.name), bad_words(tensor.stats));
  if (!report.damage.empty()) print_out("!! {}\n", report.damage);
}

void print_lines(const Report& report, const TensorFile& file) {
  Json line = {{"file", report.path.string()}, {"bytes", InputFile(report.path).size()}};
  line.update(report.about);
  line["parameters"] = totals_json(report.parameters);
  line["optimizer"] = totals_json(report.optimizer);
  line["not_finite"] =
      std::count_if(report.all.begin(), report.all.end(),
                    [](const TensorRow& tensor) { return tensor.stats.bad() > 0; });
  if (!report.damage.empty()) line["damage"] = report.damage;
  print_json(line);
  for (const TensorRow* tensor : report.rows)
    print_json(tensor_json(*tensor, file.tensors.at(tensor->name).shape()));
}

// Returns the exit code: 1 for a damaged checkpoint.
int inspect(const InspectOptions& options) {
  if (options.file.empty())
    usage_error("inspect: which file?\n  hint: tg inspect model.safetensors");
  const fs::path asked = options.file;
  std::error_code error;  // the reader reports a file that cannot be accessed
  const fs::path path = fs::is_directory(asked, error) ? newest_in(asked) : asked;
  io::TensorsAndDamage read = io::read_with_damage(path);
  const TensorFile& file = read.file;
  Report report{
      .path = path, .asked = asked, .about = describe(file.metadata), .all = rows_of(file)};
  report.rows = listed(report.all, options);
  report.damage = std::move(read.damage);
  for (const TensorRow& tensor : report.all)
    (of_optimizer(tensor) ? report.optimizer : report.parameters).add(tensor);
  if (options.json)
    print_lines(report, file);
  else
    print_for_people(report, options);
  return report.damage.empty() ? 0 : 1;
}

}  // namespace

void add_inspect_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command =
      *tg.add_subcommand("inspect", "Show the contents of a safetensors file or a checkpoint");
  command
      .add_option("file", options->file,
                  "A file, or the folder of a run to use its newest checkpoint")
      ->type_name("FILE");
  command
      .add_option("--tensors", options->patterns,
                  "Tensors to list; * and ? are wildcards (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  command.add_flag("--optimizer", options->optimizer, "List the optimizer's tensors too");
  command
      .add_option("--width", options->width,
                  "Width of the table in columns (default: the terminal's)")
      ->check(in_range(1, 10000))
      ->type_name("N");
  add_json_flag(command, options->json);
  command.footer(
      "Statistics cover the finite elements, in double; std divides by their count. NaN and inf "
      "are\ncounted and marked with !!, also in tensors that are not listed.\n"
      "Example:\n  tg inspect model.safetensors --tensors 'layers.0.*'");
  command.callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace tensorgrad::tool
