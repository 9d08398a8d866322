#include "text_settings.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "read_json.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/utf8.h"
#include "tensorgrad/dataset.h"
#include "text/words.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr const char* kEndOfText = "<|endoftext|>";

// Reads the first `bytes` of a file, piece by piece.
template <class F>
void read_pieces(const std::string& file, std::int64_t bytes, F&& use) {
  const InputFile in(file);
  std::string piece;
  for (std::size_t at = 0, end = usize(bytes); at < end; at += piece.size()) {
    piece.resize(std::min(end - at, kPiece));
    in.read(at, piece);
    use(piece);
  }
}

// A tokenizer of the distinct characters in the first `bytes`.
Tokenizer characters_of(const std::string& file, std::int64_t bytes) {
  std::set<std::string> different;
  std::string pending;
  const auto take = [&](std::string_view text) {
    const Tokenizer some = Tokenizer::characters(text);
    for (std::int32_t id = 1; id < some.vocab_size(); ++id) different.insert(some.token(id));
  };
  try {
    read_pieces(file, bytes, [&](const std::string& piece) {
      pending += piece;
      const std::size_t whole = pending.size() - incomplete_tail(pending);
      take(std::string_view(pending).substr(0, whole));
      pending.erase(0, whole);
    });
    take(pending);
  } catch (const ReadError&) {
    throw;
  } catch (const UserError&) {
    user_error(
        "{}: not UTF-8, which --tokenizer chars needs\n  hint: --tokenizer bytes or bpe accepts "
        "any text",
        file);
  }
  std::string all;
  for (const std::string& character : different) all += character;
  return Tokenizer::characters(all);
}

// The fields of one JSON object, each checked and read once.
class Fields {
 public:
  Fields(Json object, std::string where) : object_(std::move(object)), where_(std::move(where)) {
    if (!object_.is_object()) user_error("{}not an object: {}", where_, shown(object_));
  }

  bool has(const char* name) const { return object_.contains(name); }
  Json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) user_error("'{}{}' is missing", where_, name);
    Json value = std::move(*found);
    object_.erase(found);
    return value;
  }
  void read(const char* name, std::string& to) {
    const Json value = take(name);
    if (!value.is_string()) user_error("'{}{}' must be a string: {}", where_, name, shown(value));
    to = value.get<std::string>();
  }
  void read(const char* name, double& to) {
    const Json value = take(name);
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kLargest))
      user_error("'{}{}' must be a number: {}", where_, name, shown(value));
    to = value.get<double>();
  }
  template <class Whole>
  requires std::is_integral_v<Whole>
  void read(const char* name, Whole& to, std::int64_t least = 0) {
    const Json value = take(name);
    const bool fits = value.is_number_integer() && value <= std::numeric_limits<Whole>::max();
    if (!fits || value < least)
      user_error("'{}{}' must be an integer of at least {}: {}", where_, name, least, shown(value));
    to = value.get<Whole>();
  }
  // Throws if a field was not read.
  void finish() const {
    if (!object_.empty()) user_error("unknown name '{}{}'", where_, object_.begin().key());
  }

 private:
  static constexpr double kLargest = std::numeric_limits<float>::max();
  Json object_;
  std::string where_;
};

}  // namespace

std::string TextSettings::to_json() const {
  const Json json{{"file", file},
                  {"model", Json::parse(model.to_json())},
                  {"tokenizer", tokenizer},
                  {"vocab", vocab},
                  {"training",
                   {{"batch", batch},
                    {"steps", steps},
                    {"accumulate", accumulate},
                    {"lr", lr},
                    {"warmup", warmup},
                    {"lr_schedule", word_of(lr_schedule)},
                    {"last_lr_share", last_lr_share},
                    {"weight_decay", weight_decay},
                    {"validation", validation},
                    {"seed", seed}}},
                  {"run",
                   {{"device", device},
                    {"save_every", save_every},
                    {"validate_every", validate_every},
                    {"keep", keep},
                    {"sample", sample},
                    {"prompt", prompt}}}};
  try {
    return json.dump(2) + "\n";
  } catch (const Json::exception&) {
    user_error(
        "{}: the file name, the prompt and all other text settings must be UTF-8, because "
        "config.json stores them",
        file);
  }
}

TextSettings TextSettings::from_json(const std::string& text, const std::string& name) {
  try {
    Fields all(parse_json(text, 2), "");
    TextSettings made;
    all.read("file", made.file);
    made.model = TextModelConfig::from_json(all.take("model").dump());
    all.read("tokenizer", made.tokenizer);
    all.read("vocab", made.vocab, 1);
    Fields training(all.take("training"), "training."), run(all.take("run"), "run.");
    all.finish();
    training.read("batch", made.batch, 1), training.read("steps", made.steps, 1);
    training.read("accumulate", made.accumulate, 1);
    training.read("lr", made.lr);
    std::string schedule = "cosine";  // of runs from before it could be chosen
    made.last_lr_share = 0.1;
    if (training.has("lr_schedule")) {
      training.read("lr_schedule", schedule);
      training.read("warmup", made.warmup), training.read("last_lr_share", made.last_lr_share);
    }
    made.lr_schedule = from_word<LrSchedule>(schedule);
    training.read("weight_decay", made.weight_decay);
    training.read("validation", made.validation), training.read("seed", made.seed);
    training.finish();
    run.read("device", made.device);
    run.read("save_every", made.save_every), run.read("validate_every", made.validate_every);
    run.read("keep", made.keep, 1), run.read("sample", made.sample);
    run.read("prompt", made.prompt);
    run.finish();
    return made;
  } catch (const UserError& error) {
    user_error("{}: not the config of a run: {}", name, error.what());
  }
}

TrainerOptions TextSettings::trainer(const DeviceOptions& where) const {
  return {.batch = batch,
          .steps = steps,
          .lr = lr,
          .warmup = warmup,
          .lr_schedule = lr_schedule,
          .last_lr_share = last_lr_share,
          .weight_decay = static_cast<float>(weight_decay),
          .accumulate = accumulate,
          .seed = seed,
          .device = device,
          .threads = where.threads,
          .without = where.without};
}

Tokenizer make_tokenizer(const TextSettings& settings) {
  if (settings.tokenizer == "bytes") return Tokenizer::bytes();
  if (settings.tokenizer != "chars" && settings.tokenizer != "bpe") {
    if (file_type_at(settings.tokenizer) != fs::file_type::not_found)
      return read_tokenizer(settings.tokenizer);
    user_error(
        "there is no tokenizer '{}': use bpe, bytes, chars, a folder with vocab.json and "
        "merges.txt, or a tokenizer.json",
        settings.tokenizer);
  }
  const std::int64_t bytes = training_bytes_of(settings.file, settings.validation);
  if (settings.tokenizer == "chars") return characters_of(settings.file, bytes);
  Tokenizer::Training training;
  read_pieces(settings.file, bytes, [&](const std::string& piece) { training.add(piece); });
  return training.finish(settings.vocab);
}

Tokenizer read_tokenizer(const fs::path& path) {
  if (file_type_at(path) != fs::file_type::directory) {
    const std::string text = read_file(path);
    try {
      return Tokenizer::from_json(text);
    } catch (const UserError& error) {
      user_error("{}: {}", path.string(), error.what());
    }
  }
  // Adds GPT-2's special token if the vocabulary has it.
  std::vector<std::string> special;
  if (file_type_at(path / "vocab.json") != fs::file_type::not_found &&
      read_file(path / "vocab.json").find(kEndOfText) != std::string::npos)
    special.push_back(kEndOfText);
  return Tokenizer::read_bpe(path / "vocab.json", path / "merges.txt", special);
}

}  // namespace tensorgrad::tool
