#include "convert.h"

#include <filesystem>
#include <utility>

#include "command.h"
#include "io/named.h"
#include "run_folder.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/text.h"
#include "tensorgrad/safetensors.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"
#include "text_settings.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

struct ConvertCommand {
  std::string in, out, to, tokenizer, activation, config;
  int heads = 0;
  bool json = false, force = false;

  // Reports the result, for people and for programs.
  void report(const std::string& words, const TextModelConfig& model,
              const std::vector<std::string>& assumed = {}) const {
    print_to(people(json), "{}: {}\n", out, words);
    if (json)
      print_json({{"event", "converted"},
                  {"out", out},
                  {"to", to},
                  {"model", Json::parse(model.to_json())},
                  {"assumed", assumed}});
  }
};

// Metadata that our own reader needs beside the weights; other programs ignore it.
constexpr const char *kConfig = "tensorgrad.config", *kTokenizer = "tensorgrad.tokenizer";

// Converts a checkpoint of our model to weights under PyTorch's names.
void to_torch(const ConvertCommand& command) {
  std::vector<std::string> said;
  const Checkpoint checkpoint = find_checkpoint(command.in, said);
  if (checkpoint.config.empty())
    user_error("{}: its config is missing, so the kind of model is unknown", command.in);
  const TextModelConfig config =
      io::named(command.in, [&] { return TextModelConfig::from_json(checkpoint.config); });
  TensorFile file{.tensors = io::named(
                      command.in, [&] { return to_torch_names(config, checkpoint.parameters); }),
                  .metadata = {{"format", "pt"}, {kConfig, checkpoint.config}}};
  if (!checkpoint.tokenizer.empty()) file.metadata[kTokenizer] = checkpoint.tokenizer;
  write_safetensors(command.out, file);
  for (const std::string& line : said) print_to(people(command.json), "from {}\n", line);
  command.report(fmt::format("weights of a model of kind {} under PyTorch's names", config.kind),
                 config);
  if (config.kind == "gpt")
    print_to(people(command.json),
             "in GPT-2's config: n_head {}, activation_function \"{}\", n_positions {}\n",
             config.heads, config.activation == "gelu_tanh" ? "gelu_new" : config.activation,
             config.context);
  if (command.tokenizer.empty()) return;
  const fs::path folder = command.tokenizer;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) user_error("{}: cannot create the folder: {}", folder.string(), error.message());
  Tokenizer::from_json(checkpoint.tokenizer)
      .write_bpe(folder / "vocab.json", folder / "merges.txt");
}

// The model that a weights file and its neighbours describe.
struct DetectedModel {
  TextModelConfig config;
  std::vector<std::string> assumed;  // settings that had to be guessed
  std::string from;                  // config.json, if it was read
};

// Lists the settings that weights alone do not show.
std::vector<std::string> assumptions(const TextModelConfig& config, const ConvertCommand& command) {
  std::vector<std::string> assumed;
  if (config.kind == "gpt" && command.heads == 0)
    assumed.push_back(fmt::format("heads {}", config.heads));
  if (config.kind == "gpt" && command.activation.empty())
    assumed.push_back(fmt::format("activation {}", config.activation));
  if (config.kind == "mamba2")
    assumed.push_back(fmt::format("one group with a state of {}", config.state));
  assumed.push_back(fmt::format("epsilon {}", config.eps));
  return assumed;
}

// The config.json to read; empty if there is none.
fs::path config_file(const ConvertCommand& command) {
  if (command.config == "none") return {};
  if (!command.config.empty()) return command.config;
  const fs::path beside = fs::path(command.in).parent_path() / "config.json";
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside : fs::path();
}

DetectedModel detect_model(const TensorFile& file, const ConvertCommand& command) {
  constexpr std::size_t kLongestConfig = 1 << 20;
  DetectedModel detected;
  const fs::path path = config_file(command);
  const auto own = file.metadata.find(kConfig);
  // An explicit --config, including "none", has priority over the metadata of the weights.
  if (own != file.metadata.end() && command.config.empty()) {
    detected.config =
        io::named(command.in, [&] { return TextModelConfig::from_json(own->second); });
  } else if (path.empty()) {
    detected.config = io::named(command.in, [&] { return config_of_torch_weights(file.tensors); });
    detected.assumed = assumptions(detected.config, command);
  } else {
    const std::string text = read_file(path, kLongestConfig);
    detected.from = path.string();
    try {
      detected.config = config_of_torch_weights(file.tensors, text);
    } catch (const UserError& error) {
      user_error("{}: {}\n  hint: --config FILE reads another one, --config none reads none",
                 detected.from, error.what());
    }
  }
  if (command.heads > 0) detected.config.heads = command.heads;
  if (!command.activation.empty()) detected.config.activation = command.activation;
  return detected;
}

// Converts weights to a checkpoint without optimizer, for generation.
void from_torch(const ConvertCommand& command) {
  std::error_code ignored;  // the reader reports it
  if (fs::is_directory(command.in, ignored))
    user_error(
        "{}: is a folder\n  hint: --to tensorgrad needs a safetensors file of PyTorch weights",
        command.in);
  const TensorFile file = read_safetensors(command.in);
  const DetectedModel detected = detect_model(file, command);
  const TextModelConfig& config = detected.config;
  Checkpoint checkpoint{
      .parameters = io::named(command.in, [&] { return from_torch_names(config, file.tensors); }),
      .config = config.to_json()};
  const auto tokenizer = file.metadata.find(kTokenizer);
  if (!command.tokenizer.empty())
    checkpoint.tokenizer = read_tokenizer(command.tokenizer).to_json();
  else if (tokenizer != file.metadata.end())
    checkpoint.tokenizer = tokenizer->second;
  save_checkpoint(command.out, checkpoint);
  command.report(fmt::format("a model of kind {}, {} layers of width {}, {} tokens", config.kind,
                             config.layers, config.dim, config.vocab),
                 config, detected.assumed);
  if (!detected.from.empty())
    print_to(people(command.json), "config read from {}\n", detected.from);
  if (!detected.assumed.empty())
    print_to(people(command.json),
             "no config.json was read; assumed: {}\n  hint: --config FILE{}\n",
             join(detected.assumed, ", "),
             config.kind == "gpt" ? ", --heads N or --activation NAME" : "");
  if (checkpoint.tokenizer.empty())
    print_to(
        people(command.json),
        "the weights have no tokenizer, which tg generate needs\n  hint: --tokenizer FOLDER with "
        "vocab.json and merges.txt\n");
}

// Refuses options that would have no effect.
void check_options(const ConvertCommand& command) {
  if (command.to != "torch") return;
  const std::pair<const char*, bool> of_weights[] = {{"--config", !command.config.empty()},
                                                     {"--heads", command.heads > 0},
                                                     {"--activation", !command.activation.empty()}};
  for (const auto& [name, given] : of_weights)
    if (given)
      usage_error(
          "{}: only for --to tensorgrad: with --to torch the checkpoint describes the model", name);
}

void convert(const ConvertCommand& command) {
  check_options(command);
  std::error_code ignored;
  if (fs::equivalent(command.in, command.out, ignored))
    usage_error("{}: IN and OUT are the same file", command.in);
  if (fs::exists(command.out, ignored) && !command.force)
    usage_error("{}: the file exists\n  hint: --force overwrites it", command.out);
  command.to == "torch" ? to_torch(command) : from_torch(command);
}

}  // namespace

void add_convert_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<ConvertCommand>();
  CLI::App& command =
      *tg.add_subcommand("convert", "Convert weights from and to PyTorch's names and layouts");
  command
      .add_option("in", options->in,
                  "A checkpoint, a run, or a safetensors file of PyTorch weights")
      ->required()
      ->type_name("IN");
  command.add_option("out", options->out, "The file to write")->required()->type_name("OUT");
  command.add_option("--to", options->to, "Names and layouts to convert to: torch or tensorgrad")
      ->required()
      ->check(one_of({"torch", "tensorgrad"}))
      ->type_name("WHOSE");
  command
      .add_option("--heads", options->heads,
                  "Attention heads, which PyTorch weights do not show (default: from config.json, "
                  "or one per 64 of the width)")
      ->check(in_range(1, 1 << 20))
      ->type_name("N");
  command
      .add_option("--activation", options->activation,
                  "Activation of GPT-2, which the weights do not show either")
      ->check(one_of({"gelu", "gelu_tanh", "relu", "silu", "tanh"}))
      ->type_name("NAME");
  command
      .add_option(
          "--tokenizer", options->tokenizer,
          "Folder to read vocab.json and merges.txt from, or with --to torch to write them to")
      ->type_name("FOLDER");
  command
      .add_option("--config", options->config,
                  "config.json of the PyTorch weights, as Hugging Face and state-spaces write it; "
                  "none reads no config (default: the config that convert stored in the weights, "
                  "or config.json in the same folder)")
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Overwrite OUT");
  add_json_flag(command, options->json);
  command.footer(
      "PyTorch's names are those of Hugging Face and nanoGPT for GPT-2, and those of state-spaces "
      "for\nMamba and Mamba-2.\nExample:\n  tg convert runs/book-gpt book.safetensors --to torch");
  command.callback([options, &exit_code] {
    convert(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
