#include "train_text.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "run_folder.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/text.h"
#include "tensorgrad/dataset.h"
#include "text/words.h"
#include "text_run.h"
#include "text_settings.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBinaryLook = std::size_t{1}
                                    << 16;  // bytes to examine to tell text from binary files

struct TextCommand {
  TextSettings asked;
  std::string out;
  bool resume = false, json = false;
  DeviceOptions where;

  // An option on the command line, as a change of settings.
  struct Change {
    const CLI::Option* option;
    std::function<void(TextSettings& to)> apply;
    bool allowed;                         // when a run is resumed
    std::vector<std::string> kinds = {};  // kinds of models that have it; none: all
  };
  std::vector<Change> changes;
};

// Text has no zero bytes. To train on other files, users choose the tokenizer "bytes".
void check_is_text(const TextSettings& settings) {
  training_bytes_of(settings.file, settings.validation);  // it exists, is regular and not empty
  if (settings.tokenizer == "bytes") return;
  std::string start(kBinaryLook, '\0');
  start.resize(InputFile(settings.file).read_some(0, start));
  if (const std::size_t zero = start.find('\0'); zero != start.npos)
    user_error("{}: not a text: byte {} is zero\n  hint: --tokenizer bytes accepts any file",
               settings.file, zero);
}

// runs/book-gpt, or the next free runs/book-gpt-2.
fs::path free_folder(const TextSettings& settings) {
  const fs::path base =
      fs::path("runs") /
      fmt::format("{}-{}", fs::path(settings.file).stem().string(), settings.model.kind);
  fs::path path = base;
  for (int i = 2; file_type_at(path) != fs::file_type::not_found; ++i)
    path = fmt::format("{}-{}", base.string(), i);
  return path;
}

// A folder for a new run; removed if the run does not begin. It may exist already if it is empty or
// holds only what a killed start leaves.
class NewFolder {
 public:
  explicit NewFolder(const RunFolder& run)
      : run_(run), made_(file_type_at(run.path()) == fs::file_type::not_found) {
    std::error_code error;
    fs::create_directories(run.path(), error);
    if (error || file_type_at(run.path()) != fs::file_type::directory)
      user_error("{}: cannot create the folder: {}", run.path().string(),
                 error ? error.message() : "Not a directory");
    remove_unfinished(run.path());
    fs::directory_iterator entry(run.path(), error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error))
      if (entry->path() != run.tokens() && entry->path() != run.tokenizer() &&
          entry->path() != run.lock())
        usage_error("{}: not an empty folder\n  hint: another --out", run.path().string());
    if (error) user_error("{}: cannot read: {}", run.path().string(), error.message());
  }
  ~NewFolder() {
    std::error_code error, ignored;
    // Removes nothing if the system cannot tell whether a run began.
    if (fs::exists(run_.config(), error) || error) return;
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

// The settings of a run, with the changes that the command line may make.
TextSettings settings_to_go_on(const TextCommand& command, const RunFolder& run,
                               TextSettings settings) {
  for (const TextCommand::Change& change : command.changes) {
    if (change.option->count() == 0) continue;
    TextSettings changed = settings;
    change.apply(changed);
    if (!change.allowed && changed.to_json() != settings.to_json())
      usage_error(
          "{}: the run in {} has another value\n  hint: leave it out, or start a new run with "
          "another --out",
          change.option->get_name(), run.path().string());
    settings = changed;
  }
  return settings;
}

// Refuses options that the model would ignore.
void check_fits_kind(const TextCommand& command, const std::string& kind) {
  for (const TextCommand::Change& change : command.changes)
    if (change.option->count() > 0 && !change.kinds.empty() &&
        std::find(change.kinds.begin(), change.kinds.end(), kind) == change.kinds.end())
      usage_error("{}: for --model {}, not for {}", change.option->get_name(),
                  join(change.kinds, " or "), kind);
}

int begin(const TextCommand& command, const fs::path& out) {
  TextSettings settings = command.asked;
  for (const TextCommand::Change& change : command.changes)
    if (change.option->count() > 0) change.apply(settings);
  check_fits_kind(command, settings.model.kind);
  TextModelConfig::from_json(settings.model.to_json());  // checks the model before the text is read
  check_is_text(settings);
  const RunFolder run(out.empty() ? free_folder(settings) : out);
  const NewFolder folder(run);
  const RunLock lock(run);
  return TextRun(settings, command.where, run, command.json, {}).train(settings.steps);
}

int go_on(const TextCommand& command, const RunFolder& run) {
  const TextSettings before =
      TextSettings::from_json(read_file(run.config()), run.config().string());
  const TextSettings settings = settings_to_go_on(command, run, before);
  const RunLock lock(run);
  remove_unfinished(run.path());
  auto last = CheckpointFolder(run.checkpoints(), settings.keep).newest();
  if (!last) check_is_text(settings);
  TextRun training(settings, command.where, run, command.json, last);
  last.reset();  // frees its arrays, which are on the device by now
  return training.train(before.steps);
}

int train_text(const TextCommand& command) {
  outlive_reader();
  const fs::path out = command.out;
  if (command.resume && out.empty())
    usage_error("train text: --resume needs the folder of the run\n  hint: --out RUN");
  const bool holds_run = !out.empty() && RunFolder(out).holds_run();
  if (command.resume && holds_run) return go_on(command, RunFolder(out));
  if (command.resume && command.asked.file.empty())
    user_error("{}: there is no run to resume", out.string());
  if (command.asked.file.empty())
    usage_error("train text: which file?\n  hint: tg train text book.txt");
  if (holds_run)
    usage_error(
        "{}: there is a run here already\n  hint: --resume continues it, another --out starts a "
        "new one",
        out.string());
  if (command.resume)
    print_to(people(command.json), "{}: no checkpoint to resume from: starting a new run\n",
             out.string());
  return begin(command, out);
}

// Declares the options and records how each changes the settings.
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
  // Adds an option with one word per value of an enum.
  template <class Owner, class E>
  requires std::is_enum_v<E> CLI::Option& add_word(const char* name, E Owner::*field,
                                                   const char* help) {
    const auto place = [field](TextSettings& s) -> E& {
      if constexpr (std::is_same_v<Owner, TextModelConfig>) {
        return s.model.*field;
      } else {
        return s.*field;
      }
    };
    CLI::Option& option = *command_.add_option(name)
                               ->description(help)
                               ->check(one_of(words<E>()))
                               ->default_str(word_of(place(to_->asked)))
                               ->type_name("KIND");
    remember(
        option,
        [&option, place](TextSettings& s) { place(s) = from_word<E>(option.as<std::string>()); },
        WhenGoingOn::fixed);
    return option;
  }
  void remember(CLI::Option& option, std::function<void(TextSettings&)> apply, WhenGoingOn when) {
    to_->changes.push_back({&option, std::move(apply), when == WhenGoingOn::changes, kinds_});
  }
  // Restricts the options declared after this call to models of these kinds; none: all.
  void for_kinds(std::vector<std::string> kinds) { kinds_ = std::move(kinds); }

 private:
  CLI::App& command_;
  std::shared_ptr<TextCommand> to_;
  std::vector<std::string> kinds_;
};

void count(CLI::Option& option, std::int64_t least = 1, std::int64_t most = std::int64_t{1} << 24) {
  option.check(in_range(least, most))->type_name("N");
}

// Options of a kind of model beside its width and its depth.
void add_model_options(Options& options) {
  using Config = TextModelConfig;
  options
      .add("--embedding-std", &Config::embedding_std, "Initial standard deviation of the embedding")
      .check(positive())
      ->type_name("X");
  options.for_kinds({"gpt"});
  options.add_word("--positions", &Config::positions, "Positions of gpt: learned or rotary");
  options.for_kinds({"gpt", "hybrid"});
  count(options.add("--heads", &Config::heads, "Attention heads"), 1, 1000);
  count(options.add("--groups", &Config::groups,
                    "Groups of heads that share keys and values; 0: no sharing"),
        0, 1000);
  options
      .add("--activation", &Config::activation, "Activation: gelu, gelu_tanh, relu, silu or tanh")
      .check(one_of({"gelu", "gelu_tanh", "relu", "silu", "tanh"}))
      ->type_name("KIND");
  options.add_word("--norm", &Config::norm, "Norm of blocks with attention: layer or rms");
  options.for_kinds({"mamba", "mamba2", "hybrid"});
  count(options.add("--state", &Config::state, "State size of Mamba; 0: 16 in mamba, 64 in mamba2"),
        0, 1 << 20);
  count(options.add("--expand", &Config::expand, "Inner width of Mamba as a multiple of --dim"), 1,
        1 << 12);
  count(options.add("--conv", &Config::conv, "Taps of Mamba's convolution"), 1, 1 << 20);
  options.for_kinds({"mamba", "hybrid"});
  count(options.add("--dt-rank", &Config::dt_rank, "Rank of dt in mamba; 0: a sixteenth of --dim"),
        0, 1 << 20);
  options.add_word("--discretisation", &Config::discretisation,
                   "Discretisation of mamba: euler or zoh (zero-order hold)");
  options.for_kinds({"mamba2", "hybrid"});
  count(options.add("--head-size", &Config::head_size,
                    "Head size of mamba2; 0: the largest up to 64 that divides the inner width"),
        0, 1 << 20);
  count(options.add("--state-groups", &Config::state_groups,
                    "Groups of heads of mamba2 that share B and C"),
        1, 1 << 20);
  count(options.add("--chunk", &Config::chunk, "Positions of mamba2 per matmul"), 1, 1 << 20);
  options.for_kinds({"hybrid"});
  options
      .add("--schedule", &Config::schedule,
           "Layers of hybrid, instead of --layers: mamba, mamba2 or attention for each layer")
      .type_name("WORDS");
  options.for_kinds({});
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
  options.add("--model", &TextModelConfig::kind, "Kind of model: gpt, mamba, mamba2 or hybrid")
      .check(one_of({"gpt", "mamba", "mamba2", "hybrid"}))
      ->type_name("KIND");
  count(options.add("--dim", &TextModelConfig::dim, "Width of the model"));
  count(options.add("--layers", &TextModelConfig::layers, "Number of layers"), 1, 1000);
  count(options.add("--context", &TextModelConfig::context, "Tokens that the model sees at once"));
  add_model_options(options);
  count(options.add("--batch", &TextSettings::batch, "Windows of the text per step"));
  count(options.add("--accumulate", &TextSettings::accumulate,
                    "Batches whose gradients are averaged for one update"),
        1, 1 << 20);
  count(options.add("--steps", &TextSettings::steps, "Training steps", kChanges), 1,
        std::int64_t{1} << 31);
  options.add("--lr", &TextSettings::lr, "Peak learning rate").check(positive())->type_name("X");
  count(options.add("--warmup", &TextSettings::warmup,
                    "Steps over which the learning rate rises; 0: a twentieth of all, at most 200"),
        0);
  options.add_word("--lr-schedule", &TextSettings::lr_schedule,
                   "How the learning rate then falls: cosine, linear or constant (not at all)");
  options
      .add("--last-lr", &TextSettings::last_lr_share,
           "Learning rate of the last step as a fraction of the peak")
      .check(share(0, 1))
      ->type_name("X");
  options.add("--weight-decay", &TextSettings::weight_decay, "Weight decay of matrices")
      .check(share(0, 10))
      ->type_name("X");
  options
      .add("--tokenizer", &TextSettings::tokenizer,
           "bpe (learns byte pairs), bytes, chars, a folder with vocab.json and merges.txt, or a "
           "run's tokenizer.json")
      .type_name("KIND");
  count(options.add("--vocab", &TextSettings::vocab, "Vocabulary size of bpe"), 257, 1 << 20);
  options
      .add("--validation", &TextSettings::validation,
           "Fraction of the text, at its end, for validation")
      .check(share(0, 0.9))
      ->type_name("X");
  options.add("--seed", &TextSettings::seed, "Seed of the weights and of the order of the text")
      .check(in_range(0, std::numeric_limits<std::uint32_t>::max()))
      ->type_name("S");
  command.add_option("--out", to->out, "Folder of the run (default: a new one below runs/)")
      ->type_name("RUN");
  command.add_flag("--resume", to->resume, "Continue the run in --out as if it had never stopped");
  count(options.add("--save-every", &TextSettings::save_every,
                    "Steps between checkpoints; 0: a twentieth of all", kChanges),
        0);
  count(options.add("--validate-every", &TextSettings::validate_every,
                    "Steps between validations; 0: a tenth of all", kChanges),
        0);
  count(options.add("--keep", &TextSettings::keep, "How many checkpoints to keep", kChanges));
  count(
      options.add("--sample", &TextSettings::sample, "Tokens per sample; 0: no samples", kChanges),
      0);
  CLI::Option& prompt =
      *command.add_option("--prompt", "Prompt of the samples (default: a newline)")
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
      "Examples:\n"
      "  tg train text book.txt                           the run is in runs/book-gpt\n"
      "  tg train text --resume --out runs/book-gpt       continues it\n"
      "  tg train text book.txt --model mamba --out runs/other");
  command.callback([to, &exit_code] {
    if (std::string& file = to->asked.file; !file.empty()) {
      std::error_code error;
      const fs::path whole = fs::absolute(file, error);
      if (error) user_error("{}: cannot read: {}", file, error.message());
      file = whole.lexically_normal().string();
    }
    exit_code = train_text(*to);
  });
}

}  // namespace tensorgrad::tool
