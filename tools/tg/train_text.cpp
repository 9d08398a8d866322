#include "train_text.h"

#include <fstream>
#include <limits>
#include <optional>

#include "run_folder.h"
#include "support/fail.h"
#include "support/file.h"
#include "tensorgrad/dataset.h"
#include "text_run.h"
#include "text_settings.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBinaryLook = std::size_t{1}
                                    << 16;  // bytes that tell a text from other files

struct TextCommand {
  TextSettings asked;
  std::string out;
  bool resume = false, json = false;
  DeviceOptions where;

  // An option that was given, as a change of settings.
  struct Change {
    const CLI::Option* option;
    std::function<void(TextSettings& to)> apply;
    bool allowed;  // when a run goes on
  };
  std::vector<Change> changes;
};

// Text has no zero bytes; whoever means to train on bytes says so.
void check_is_text(const TextSettings& settings) {
  training_bytes_of(settings.file, settings.validation);  // there, plain, and not empty
  if (settings.tokenizer == "bytes") return;
  std::ifstream in(settings.file, std::ios::binary);
  std::string start(kBinaryLook, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(in.gcount()));
  if (const std::size_t zero = start.find('\0'); zero != start.npos)
    user_error("{}: not a text: byte {} is zero\n  hint: --tokenizer bytes takes any file",
               settings.file, zero);
}

// runs/book-gpt, or the next free runs/book-gpt-2.
fs::path free_folder(const TextSettings& settings) {
  const fs::path base =
      fs::path("runs") /
      fmt::format("{}-{}", fs::path(settings.file).stem().string(), settings.model.kind);
  fs::path path = base;
  for (int i = 2; fs::exists(path); ++i) path = fmt::format("{}-{}", base.string(), i);
  return path;
}

// A folder for a new run, which goes again if the run does not begin. It may be there already, if
// it is empty or has what a start that was killed leaves.
class NewFolder {
 public:
  explicit NewFolder(const RunFolder& run) : run_(run), made_(!fs::exists(run.path())) {
    std::error_code error;
    fs::create_directories(run.path(), error);
    if (error || !fs::is_directory(run.path()))
      user_error("{}: cannot make the folder: {}", run.path().string(),
                 error ? error.message() : "Not a directory");
    remove_unfinished(run.path());
    for (const auto& entry : fs::directory_iterator(run.path()))
      if (entry.path() != run.tokens() && entry.path() != run.tokenizer() &&
          entry.path() != run.lock())
        usage_error("{}: not an empty folder\n  hint: another --out", run.path().string());
  }
  ~NewFolder() {
    if (run_.holds_run()) return;
    std::error_code ignored;
    for (const fs::path& path : {run_.tokens(), run_.tokenizer(), run_.lock()})
      fs::remove(path, ignored);
    if (made_) fs::remove(run_.path(), ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

 private:
  RunFolder run_;
  bool made_;
};

// The settings of the run in the folder, with what may change taken from the command line.
TextSettings settings_to_go_on(const TextCommand& command, const RunFolder& run) {
  TextSettings settings = TextSettings::from_json(read_file(run.config()), run.config().string());
  for (const TextCommand::Change& change : command.changes) {
    if (change.option->count() == 0) continue;
    TextSettings changed = settings;
    change.apply(changed);
    if (!change.allowed && changed.to_json() != settings.to_json())
      usage_error(
          "{}: the run in {} has another value\n  hint: leave it out, or begin a new run with "
          "another --out",
          change.option->get_name(), run.path().string());
    settings = changed;
  }
  return settings;
}

int begin(const TextCommand& command, const fs::path& out) {
  TextSettings settings = command.asked;
  for (const TextCommand::Change& change : command.changes)
    if (change.option->count() > 0) change.apply(settings);
  check_is_text(settings);
  const RunFolder run(out.empty() ? free_folder(settings) : out);
  const NewFolder folder(run);
  const RunLock lock(run);
  return TextRun(settings, command.where, run, command.json, {}).train();
}

int go_on(const TextCommand& command, const RunFolder& run) {
  const TextSettings settings = settings_to_go_on(command, run);
  const RunLock lock(run);
  remove_unfinished(run.path());
  const auto last = CheckpointFolder(run.checkpoints(), settings.keep).newest();
  if (!last) check_is_text(settings);
  return TextRun(settings, command.where, run, command.json, last).train();
}

int train_text(const TextCommand& command) {
  const fs::path out = command.out;
  if (command.resume && out.empty())
    usage_error("train text: --resume goes on with the run of a folder\n  hint: --out RUN");
  const bool holds_run = !out.empty() && RunFolder(out).holds_run();
  if (command.resume && holds_run) return go_on(command, RunFolder(out));
  if (command.resume && command.asked.file.empty())
    user_error("{}: there is no run here to go on with", out.string());
  if (command.asked.file.empty())
    usage_error("train text: which file?\n  hint: tg train text book.txt");
  if (holds_run)
    usage_error(
        "{}: there is a run here already\n  hint: --resume goes on with it, another --out begins a "
        "new one",
        out.string());
  if (command.resume)
    fmt::print(people(command.json), "{}: nothing to go on with yet: a new run begins\n",
               out.string());
  return begin(command, out);
}

// Declares the options and remembers how each changes the settings.
class Options {
 public:
  Options(CLI::App& command, const std::shared_ptr<TextCommand>& to) : command_(command), to_(to) {}

  enum class WhenGoingOn { fixed, changes };

  template <class T>
  CLI::Option& add(const char* name, T TextSettings::*field, const char* help,
                   WhenGoingOn when = WhenGoingOn::fixed) {
    CLI::Option& option =
        *command_.add_option(name, to_->asked.*field, help)->capture_default_str();
    remember(
        option, [to = to_.get(), field](TextSettings& s) { s.*field = to->asked.*field; }, when);
    return option;
  }
  template <class T>
  CLI::Option& add(const char* name, T TextModelConfig::*field, const char* help) {
    CLI::Option& option =
        *command_.add_option(name, to_->asked.model.*field, help)->capture_default_str();
    remember(
        option,
        [to = to_.get(), field](TextSettings& s) { s.model.*field = to->asked.model.*field; },
        WhenGoingOn::fixed);
    return option;
  }
  void remember(CLI::Option& option, std::function<void(TextSettings&)> apply, WhenGoingOn when) {
    to_->changes.push_back({&option, std::move(apply), when == WhenGoingOn::changes});
  }

 private:
  CLI::App& command_;
  std::shared_ptr<TextCommand> to_;
};

void count(CLI::Option& option, std::int64_t least = 1, std::int64_t most = std::int64_t{1} << 24) {
  option.check(in_range(least, most))->type_name("N");
}

}  // namespace

void add_train_text_command(CLI::App& train, int& exit_code) {
  auto to = std::make_shared<TextCommand>();
  CLI::App& command = *train.add_subcommand("text", "Train a language model on a text file");
  Options options(command, to);
  constexpr auto kChanges = Options::WhenGoingOn::changes;
  options.add("file", &TextSettings::file, "The text; not needed with --resume", kChanges)
      .type_name("FILE")
      ->default_str("");
  options.add("--model", &TextModelConfig::kind, "gpt, mamba, mamba2 or hybrid")
      .check(one_of({"gpt", "mamba", "mamba2", "hybrid"}))
      ->type_name("KIND");
  count(options.add("--dim", &TextModelConfig::dim, "Width of the model"));
  count(options.add("--layers", &TextModelConfig::layers, "How many"), 1, 1000);
  count(options.add("--heads", &TextModelConfig::heads, "Of attention"), 1, 1000);
  count(options.add("--context", &TextModelConfig::context, "Tokens that the model sees at once"));
  count(options.add("--batch", &TextSettings::batch, "Windows of the text per step"));
  count(options.add("--accumulate", &TextSettings::accumulate,
                    "Batches whose gradients make one step"),
        1, 1 << 20);
  count(options.add("--steps", &TextSettings::steps, "Training steps", kChanges), 1,
        std::int64_t{1} << 31);
  options.add("--lr", &TextSettings::lr, "Learning rate at its peak")
      .check(positive())
      ->type_name("X");
  options.add("--weight-decay", &TextSettings::weight_decay, "Of matrices")
      .check(share(0, 10))
      ->type_name("X");
  options
      .add("--tokenizer", &TextSettings::tokenizer,
           "bpe learns pairs of bytes; bytes; chars; a folder with vocab.json and merges.txt; a "
           "run's tokenizer.json")
      .type_name("KIND");
  count(options.add("--vocab", &TextSettings::vocab, "Tokens of bpe"), 257, 1 << 20);
  options
      .add("--validation", &TextSettings::validation,
           "Share of the text, at its end, to check with")
      .check(share(0, 0.9))
      ->type_name("X");
  options.add("--seed", &TextSettings::seed, "Of weights and of the order of the text")
      .check(in_range(0, std::numeric_limits<std::uint32_t>::max()))
      ->type_name("S");
  command.add_option("--out", to->out, "Folder of the run (default: a new one below runs/)")
      ->type_name("RUN");
  command.add_flag("--resume", to->resume,
                   "Go on with the run in --out, as if it had never stopped");
  count(options.add("--save-every", &TextSettings::save_every,
                    "Steps between checkpoints; 0: a twentieth of all", kChanges),
        0);
  count(options.add("--validate-every", &TextSettings::validate_every,
                    "Steps between looks at the validation part; 0: a tenth of all", kChanges),
        0);
  count(options.add("--keep", &TextSettings::keep, "How many checkpoints to keep", kChanges));
  count(options.add("--sample", &TextSettings::sample, "Tokens of each sample; 0: no samples",
                    kChanges),
        0);
  CLI::Option& prompt =
      *command.add_option("--prompt", "What samples begin with (default: a new line)")
           ->type_name("TEXT");
  options.remember(
      prompt, [&prompt](TextSettings& s) { s.prompt = unescaped(prompt.as<std::string>()); },
      kChanges);
  add_device_options(command, to->where);
  options.remember(
      *command.get_option("--device"),
      [to = to.get()](TextSettings& s) { s.device = to->where.device; }, kChanges);
  add_json_flag(command, to->json);
  command.footer(
      "Examples:\n  tg train text book.txt\n  tg train text book.txt --model mamba --out "
      "runs/book\n"
      "  tg train text --resume --out runs/book");
  command.callback([to, &exit_code] {
    if (!to->asked.file.empty())
      to->asked.file = fs::absolute(to->asked.file).lexically_normal().string();
    exit_code = train_text(*to);
  });
}

}  // namespace tensorgrad::tool
