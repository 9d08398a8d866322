#include "text_settings.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "io/json_error.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/utf8.h"
#include "tensorgrad/dataset.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr const char* kEndOfText = "<|endoftext|>";

// The first `bytes` of a file, piece by piece.
template <class F>
void read_pieces(const std::string& file, std::int64_t bytes, F&& use) {
  std::ifstream in(file, std::ios::binary);
  std::string piece;
  while (bytes > 0) {
    piece.resize(static_cast<std::size_t>(std::min<std::int64_t>(bytes, kPiece)));
    if (!in.read(piece.data(), static_cast<std::streamsize>(piece.size())))
      user_error("{}: cannot read: it has become shorter", file);
    use(piece);
    bytes -= static_cast<std::int64_t>(piece.size());
  }
}

// The characters of the first `bytes`, of which only the different ones are kept.
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
  } catch (const UserError&) {
    user_error(
        "{}: not UTF-8, so that it has no characters\n  hint: --tokenizer bytes or bpe takes any "
        "text",
        file);
  }
  std::string all;
  for (const std::string& character : different) all += character;
  return Tokenizer::characters(all);
}

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
    user_error("{}: its name, the prompt and other words must be UTF-8 to be kept in config.json",
               file);
  }
}

TextSettings TextSettings::from_json(const std::string& text, const std::string& name) {
  try {
    const Json json = Json::parse(text);
    const Json &training = json.at("training"), &run = json.at("run");
    TextSettings made;
    made.file = json.at("file");
    made.model = TextModelConfig::from_json(json.at("model").dump());
    made.tokenizer = json.at("tokenizer");
    made.vocab = json.at("vocab");
    made.batch = training.at("batch"), made.steps = training.at("steps"),
    made.accumulate = training.at("accumulate");
    made.lr = training.at("lr"), made.weight_decay = training.at("weight_decay");
    made.validation = training.at("validation"), made.seed = training.at("seed");
    made.device = run.at("device");
    made.save_every = run.at("save_every"), made.validate_every = run.at("validate_every");
    made.keep = run.at("keep"), made.sample = run.at("sample"), made.prompt = run.at("prompt");
    if (made.steps < 1 || made.keep < 1 || made.save_every < 0 || made.validate_every < 0)
      user_error("not the config of a run: steps and keep must be at least 1");
    return made;
  } catch (const Json::exception& error) {
    user_error("{}: not the config of a run: {}", name, io::reason(error));
  } catch (const UserError& error) {
    user_error("{}: {}", name, error.what());
  }
}

TrainerOptions TextSettings::trainer(const DeviceOptions& where) const {
  return {.batch = batch,
          .steps = steps,
          .lr = lr,
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
    if (fs::exists(settings.tokenizer)) return read_tokenizer(settings.tokenizer);
    user_error(
        "there is no tokenizer '{}': bpe, bytes and chars are, or a folder with vocab.json and "
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
  if (!fs::is_directory(path)) {
    const std::string text = read_file(path);
    try {
      return Tokenizer::from_json(text);
    } catch (const UserError& error) {
      user_error("{}: {}", path.string(), error.what());
    }
  }
  // GPT-2's own special token, where the vocabulary has it.
  std::vector<std::string> special;
  if (fs::exists(path / "vocab.json") &&
      read_file(path / "vocab.json").find(kEndOfText) != std::string::npos)
    special.push_back(kEndOfText);
  return Tokenizer::read_bpe(path / "vocab.json", path / "merges.txt", special);
}

}  // namespace tensorgrad::tool
