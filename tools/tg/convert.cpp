#include "convert.h"

#include <filesystem>

#include "command.h"
#include "run_folder.h"
#include "support/fail.h"
#include "tensorgrad/safetensors.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"
#include "text_settings.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

struct ConvertCommand {
  std::string in, out, to, tokenizer, activation;
  int heads = 0;
  bool json = false, force = false;

  // What was done, for people and for programs.
  void report(const std::string& words, const TextModelConfig& config) const {
    fmt::print(people(json), "{}: {}\n", out, words);
    if (json)
      print_json({{"event", "converted"},
                  {"out", out},
                  {"to", to},
                  {"model", Json::parse(config.to_json())}});
  }
};

// What our own reader needs to know beside the weights; others ignore it.
constexpr const char *kConfig = "tensorgrad.config", *kTokenizer = "tensorgrad.tokenizer";

// A checkpoint of a model of ours -> weights under PyTorch's names.
void to_torch(const ConvertCommand& command) {
  std::vector<std::string> said;
  const Checkpoint checkpoint = find_checkpoint(command.in, said);
  if (checkpoint.config.empty())
    user_error("{}: it does not say which model it is: its config is missing", command.in);
  const TextModelConfig config = TextModelConfig::from_json(checkpoint.config);
  TensorFile file{.tensors = to_torch_names(config, checkpoint.parameters),
                  .metadata = {{"format", "pt"}, {kConfig, checkpoint.config}}};
  if (!checkpoint.tokenizer.empty()) file.metadata[kTokenizer] = checkpoint.tokenizer;
  write_safetensors(command.out, file);
  for (const std::string& line : said) fmt::print(people(command.json), "from {}\n", line);
  command.report(fmt::format("weights of a model of kind {} under PyTorch's names", config.kind),
                 config);
  if (config.kind == "gpt")
    fmt::print(people(command.json),
               "in GPT-2's config: n_head {}, activation_function \"{}\", n_positions {}\n",
               config.heads, config.activation == "gelu_tanh" ? "gelu_new" : config.activation,
               config.context);
  if (command.tokenizer.empty()) return;
  const fs::path folder = command.tokenizer;
  fs::create_directories(folder);
  Tokenizer::from_json(checkpoint.tokenizer)
      .write_bpe(folder / "vocab.json", folder / "merges.txt");
}

// The other way: a checkpoint without optimizer, to generate from.
void from_torch(const ConvertCommand& command) {
  if (fs::is_directory(command.in))
    user_error("{}: a folder\n  hint: --to tensorgrad takes a safetensors file of PyTorch weights",
               command.in);
  const TensorFile file = read_safetensors(command.in);
  const auto own = file.metadata.find(kConfig), tokenizer = file.metadata.find(kTokenizer);
  TextModelConfig config = own == file.metadata.end() ? config_of_torch_weights(file.tensors)
                                                      : TextModelConfig::from_json(own->second);
  if (command.heads > 0) config.heads = command.heads;
  if (!command.activation.empty()) config.activation = command.activation;
  Checkpoint checkpoint{.parameters = from_torch_names(config, file.tensors),
                        .config = config.to_json()};
  if (!command.tokenizer.empty())
    checkpoint.tokenizer = read_tokenizer(command.tokenizer).to_json();
  else if (tokenizer != file.metadata.end())
    checkpoint.tokenizer = tokenizer->second;
  save_checkpoint(command.out, checkpoint);
  command.report(fmt::format("a model of kind {}, {} layers of width {}, {} tokens", config.kind,
                             config.layers, config.dim, config.vocab),
                 config);
  if (own == file.metadata.end() && config.kind == "gpt")
    fmt::print(people(command.json),
               "weights do not tell heads and activation: {} and {} it is, unless --heads and "
               "--activation say otherwise\n",
               config.heads, config.activation);
  if (checkpoint.tokenizer.empty())
    fmt::print(people(command.json),
               "it has no tokenizer: tg generate needs one\n  hint: --tokenizer FOLDER with "
               "vocab.json and merges.txt\n");
}

void convert(const ConvertCommand& command) {
  std::error_code ignored;
  if (fs::equivalent(command.in, command.out, ignored))
    usage_error("{}: both to read and to write", command.in);
  if (fs::exists(command.out) && !command.force)
    usage_error("{}: there already\n  hint: --force writes over it", command.out);
  command.to == "torch" ? to_torch(command) : from_torch(command);
}

}  // namespace

void add_convert_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<ConvertCommand>();
  CLI::App& command =
      *tg.add_subcommand("convert", "Convert weights from and to PyTorch's names and layouts");
  command
      .add_option("in", options->in,
                  "A checkpoint or a run; or a safetensors file of PyTorch weights")
      ->required()
      ->type_name("IN");
  command.add_option("out", options->out, "The file to write")->required()->type_name("OUT");
  command.add_option("--to", options->to, "torch or tensorgrad")
      ->required()
      ->check(one_of({"torch", "tensorgrad"}))
      ->type_name("WHOSE");
  command
      .add_option(
          "--heads", options->heads,
          "Of attention, which PyTorch weights do not tell (default: one for 64 of the width)")
      ->check(in_range(1, 1 << 20))
      ->type_name("N");
  command
      .add_option("--activation", options->activation, "Of GPT-2, which weights do not tell either")
      ->check(one_of({"gelu", "gelu_tanh", "relu", "silu", "tanh"}))
      ->type_name("NAME");
  command
      .add_option("--tokenizer", options->tokenizer,
                  "A folder with vocab.json and merges.txt that goes with the weights: read, or "
                  "with --to torch written")
      ->type_name("FOLDER");
  command.add_flag("--force", options->force, "Write over OUT");
  add_json_flag(command, options->json);
  command.footer(
      "GPT-2 as Hugging Face and nanoGPT name it, Mamba and Mamba-2 as state-spaces "
      "does.\nExample:\n  tg convert runs/book book.safetensors --to torch");
  command.callback([options, &exit_code] {
    convert(*options);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
