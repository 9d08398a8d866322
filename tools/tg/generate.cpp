#include "generate.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>

#include "command.h"
#include "compile_counter.h"
#include "interrupt.h"
#include "line_reader.h"
#include "run_folder.h"
#include "tensorgrad/generate.h"

namespace tensorgrad::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct GenerateCommand {
  std::string checkpoint, prompt;
  GenerateOptions options;
  std::int64_t capacity = 0;
  bool interactive = false, json = false;
  DeviceOptions where;
};

struct Written {
  std::string text;
  std::int64_t tokens = 0;
  double seconds = 0;
};

// A terminal would execute control characters. A file or a pipe gets the exact text.
void print_model_text(std::string_view text) {
  print_text(stdout, is_terminal(stdout) ? printable(text) : std::string(text));
}

// Continues the prompt. Streams the text, unless it becomes JSON.
Written write(Generator& model, const GenerateCommand& command, const std::string& prompt,
              const GenerateOptions& base, const Interrupt& interrupt) {
  GenerateOptions options = base;
  options.on_text = [&](std::string_view piece) {
    if (!command.json) print_model_text(piece);
    return !interrupt.happened() && !reader_left() && output_error() == 0;
  };
  // Counts the generated tokens without the prompt, which is one token even if it is empty.
  const auto said =
      static_cast<std::int64_t>(std::max<std::size_t>(1, model.tokenizer().encode(prompt).size()));
  const auto before = static_cast<std::int64_t>(model.heard().size()) + said;
  const auto start = Clock::now();
  Written written;
  written.text = generate(model, prompt, options);
  written.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  written.tokens = static_cast<std::int64_t>(model.heard().size()) - before;
  return written;
}

void print_as_json(const std::string& prompt, const Written& written) {
  print_json({{"event", "text"},
              {"prompt", prompt},
              {"text", written.text},
              {"tokens", written.tokens},
              {"seconds", rounded(written.seconds, 4)}});
}

// Reads lines from the terminal and answers each up to the stop text; the default is a newline.
int talk(Generator& model, const GenerateCommand& command) {
  GenerateOptions options = command.options;
  if (options.stop.empty()) options.stop = {"\n"};
  print_to(stderr, "type a line; /forget starts over, an empty line or ctrl-D ends\n");
  LineReader lines("> ");
  for (std::uint32_t turn = 0;; ++turn) {
    const std::optional<std::string> line = lines.read();
    if (!line && is_terminal(stdin)) print_to(stderr, "\n");  // end the line of the prompt
    if (!line || line->empty()) break;
    if (*line == "/forget") {
      model.forget();
      continue;
    }
    const Interrupt interrupt;
    options.seed = command.options.seed + turn;
    const std::string prompt = command.prompt + *line + "\n";
    const Written written = write(model, command, prompt, options, interrupt);
    if (command.json)
      print_as_json(prompt, written);
    else
      print_out("\n");
    if (reader_left()) return 128 + SIGPIPE;
  }
  return 0;
}

int generate_text(GenerateCommand command) {
  outlive_reader();
  command.prompt = unescaped(command.prompt);
  for (std::string& text : command.options.stop) text = unescaped(text);
  std::vector<std::string> said;
  Checkpoint checkpoint = find_checkpoint(command.checkpoint, said);
  for (const std::string& line : said) print_to(stderr, "{}\n", line);
  const GeneratorOptions options{.device = command.where.device,
                                 .threads = command.where.threads,
                                 .without = command.where.without,
                                 .capacity = command.capacity,
                                 .progress = count_compiled(stderr)};
  Generator model(std::move(checkpoint), options);
  if (command.interactive) return talk(model, command);
  const Interrupt interrupt;
  if (!command.json) print_model_text(command.prompt);
  const Written written = write(model, command, command.prompt, command.options, interrupt);
  if (command.json)
    print_as_json(command.prompt, written);
  else
    print_out("\n");
  if (is_terminal(stderr) && written.seconds > 0)
    print_to(stderr, "{}, {:.0f} per second, on {}\n", counted(written.tokens, "token"),
             static_cast<double>(written.tokens) / written.seconds,
             where_text(model.device(), model.threads()));
  if (reader_left()) return 128 + SIGPIPE;
  return interrupt.happened() ? 128 + interrupt.signal() : 0;
}

}  // namespace

void add_generate_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<GenerateCommand>();
  CLI::App& command = *tg.add_subcommand("generate", "Write text with a trained model");
  GenerateOptions& how = options->options;
  command
      .add_option("checkpoint", options->checkpoint,
                  "A checkpoint, or a run to use its newest checkpoint")
      ->required()
      ->type_name("CHECKPOINT");
  command.add_option("--prompt", options->prompt, "Text to continue; \\n is a newline")
      ->type_name("TEXT");
  command.add_option("--tokens", how.tokens, "Maximum number of tokens to generate")
      ->check(in_range(0, std::int64_t{1} << 40))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--temperature", how.temperature,
                  "Sampling temperature; 0: always take the most likely token")
      ->check(share(0, 1000))
      ->capture_default_str()
      ->type_name("X");
  command.add_option("--top-k", how.top_k, "Sample from the N most likely tokens; 0: from all")
      ->check(in_range(0, 1 << 30))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--top-p", how.top_p,
                  "Sample from the most likely tokens whose probabilities add up to X")
      ->check(share(1e-9, 1))
      ->capture_default_str()
      ->type_name("X");
  command
      .add_option("--min-p", how.min_p, "Drop tokens less likely than X times the most likely one")
      ->check(share(0, 1))
      ->capture_default_str()
      ->type_name("X");
  command
      .add_option("--repetition-penalty", how.repetition_penalty,
                  "Above 1: make tokens that occurred before less likely")
      ->check(positive())
      ->capture_default_str()
      ->type_name("X");
  command.add_option("--stop", how.stop, "Stop before this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_option("--seed", how.seed, "Seed of the sampling")
      ->check(in_range(0, std::numeric_limits<std::uint32_t>::max()))
      ->capture_default_str()
      ->type_name("S");
  command
      .add_option("--cache", options->capacity,
                  "Size of the attention cache in tokens (default: the model's context)")
      ->check(in_range(2, 1 << 24))
      ->type_name("N");
  command.add_flag("--interactive", options->interactive, "Chat: answer each line that you type");
  add_device_options(command, options->where);
  add_json_flag(command, options->json);
  command.footer(
      "Examples:\n  tg generate runs/book-gpt --prompt \"Once upon a time\"\n"
      "  tg generate runs/book-gpt --interactive");
  command.callback([options, &exit_code] { exit_code = generate_text(*options); });
}

}  // namespace tensorgrad::tool
