#include "text_run.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <system_error>

#include "plot.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/text.h"
#include "text/checkpoint_keys.h"

namespace tensorgrad::tool {

namespace {

constexpr std::int64_t kLogged = 500;  // steps that get a line in the log
constexpr std::int64_t kLooks = 10;    // at the validation part, and samples
constexpr std::int64_t kSaves = 20;
constexpr std::int64_t kLookTokens = 20'000;       // of the validation part that a look is at
constexpr std::int64_t kLastLookTokens = 200'000;  // and the last one

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// A few digits are enough to look at.
Json rough(double value) {
  return std::isfinite(value) ? number(std::stod(fmt::format("{:.6g}", value))) : Json(nullptr);
}

std::int64_t part_of(std::int64_t steps, std::int64_t parts) {
  return std::max<std::int64_t>(1, steps / parts);
}

std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

Tokenizer tokenizer_of(const TextSettings& settings,
                       const std::optional<CheckpointFolder::Found>& last) {
  return last ? Tokenizer::from_json(last->checkpoint.tokenizer) : make_tokenizer(settings);
}

TextData data_of(const TextSettings& settings, const Tokenizer& tokenizer, const RunFolder& folder,
                 std::FILE* out, const std::optional<CheckpointFolder::Found>& last) {
  TextDataOptions options{.validation = settings.validation, .cache = folder.tokens()};
  // What a checkpoint was trained on is what is gone on with.
  if (last && last->checkpoint.more.count(text::kData))
    options.fingerprint = last->checkpoint.more.at(text::kData);
  std::optional<Progress> line;
  if (is_terminal(out)) {
    line.emplace(out, 1);
    options.progress = [&](double share) {
      if (line->due(0))
        line->show_text(fmt::format("reading {}: {:.0f} %", settings.file, 100 * share));
    };
  }
  TextData data = TextData::read(settings.file, tokenizer, options);
  const std::int64_t tokens = data.training().size();
  if (tokens <= settings.model.context)
    user_error(
        "{}: {} to learn from are too few for a context of {}\n  hint: {}", settings.file,
        counted(tokens, "token"), settings.model.context,
        tokens > 1 ? fmt::format("--context {}, or a longer text", tokens - 1) : "a longer text");
  return data;
}

}  // namespace

TextRun::TextRun(const TextSettings& settings, const DeviceOptions& where, const RunFolder& folder,
                 bool json, const std::optional<CheckpointFolder::Found>& last)
    : settings_(settings),
      folder_(folder),
      json_(json),
      out_(people(json)),
      tokenizer_(tokenizer_of(settings, last)),
      trainer_(settings.model, tokenizer_, data_of(settings, tokenizer_, folder, out_, last),
               settings.trainer(where)),
      checkpoints_(folder.checkpoints(), settings.keep) {
  settings_.model = trainer_.config();
  settings_.device = trainer_.training().device();
  if (!last) return;
  trainer_.restore(last->checkpoint);
  saved_ = trainer_.steps();
  for (const std::string& bad : last->unreadable) fmt::print(stderr, "tg: passed over: {}\n", bad);
  fmt::print(out_, "going on from {}, step {}\n", last->path.string(), saved_);
}

std::int64_t TextRun::log_every() const { return part_of(settings_.steps, kLogged); }
std::int64_t TextRun::validate_every() const {
  return settings_.validate_every > 0 ? settings_.validate_every : part_of(settings_.steps, kLooks);
}
std::int64_t TextRun::save_every() const {
  return settings_.save_every > 0 ? settings_.save_every : part_of(settings_.steps, kSaves);
}

void TextRun::write_settings() {
  write_file(folder_.tokenizer(), tokenizer_.to_json());
  write_file(folder_.config(), settings_.to_json());
}

int TextRun::train() {
  describe();
  if (trainer_.steps() >= settings_.steps) return say_finished_before();
  write_settings();
  log_.emplace(folder_, trainer_.steps());
  if (trainer_.steps() > 0)
    record({{"event", "resume"}, {"step", trainer_.steps()}});
  else
    record({{"event", "start"},
            {"step", 0},
            {"parameters", parameter_count(trainer_.training())},
            {"device", settings_.device},
            {"vocab", tokenizer_.vocab_size()},
            {"training_tokens", trainer_.data().training().size()},
            {"validation_tokens", trainer_.data().validation().size()},
            {"unigram_loss", rough(unigram_)}});
  const Interrupt interrupt;
  Progress progress(out_, settings_.steps, trainer_.steps());
  try {
    make_steps(interrupt, progress);
    progress.end_line();
    return trainer_.steps() < settings_.steps ? stop(interrupt) : finish(progress.seconds());
  } catch (const NonFiniteError& error) {
    user_error("{}\n  hint: a lower --lr", error.what());
  } catch (const std::system_error&) {  // nobody reads what is printed
    save();
    return 128 + SIGPIPE;
  }
}

void TextRun::make_steps(const Interrupt& interrupt, Progress& progress) {
  for (bool stops = false; !stops;) {
    const std::int64_t step = trainer_.step();
    const bool last = step == settings_.steps;
    stops = last || interrupt.happened() || reader_left();
    const bool logs = step % log_every() == 0 || last, shows = stops || progress.due(step);
    if (logs || shows) report_ = trainer_.report();
    if (logs) report(progress, step);
    if (shows) show(progress, step);
    // The end has a look of its own.
    if (!last && step % validate_every() == 0) {
      validate(kLookTokens);
      if (settings_.sample > 0 && !stops) {
        progress.end_line();
        say_sample();
      }
    }
    if (stops || step % save_every() == 0) save();
  }
}

void TextRun::describe() {
  const TextData& data = trainer_.data();
  const TrainingHandle& training = trainer_.training();
  unigram_ = unigram_loss(data.training(), data.validation(), tokenizer_.vocab_size());
  fmt::print(out_, "{}: {}, {} of width {}, context {}, on {}\n", settings_.model.kind,
             counted(parameter_count(training), "parameter"),
             counted(settings_.model.layers, "layer"), settings_.model.dim, settings_.model.context,
             where_text(training.device(), training.threads()));
  fmt::print(out_, "{}: {} to learn from, {} to check with ({}, {} different ones)\n",
             settings_.file, counted(data.training().size(), "token"),
             grouped(data.validation().size()), tokenizer_.kind(),
             grouped(tokenizer_.vocab_size()));
  fmt::print(out_, "{} of {}; ctrl-C saves and stops; everything is in {}\n",
             counted(settings_.steps, "step"),
             counted(settings_.batch * settings_.accumulate, "window"), folder_.path().string());
  std::fflush(out_);
}

void TextRun::record(const Json& line) {
  log_->add(line);
  if (json_) print_json(line);
}

void TextRun::report(const Progress& progress, std::int64_t step) {
  record({{"event", "step"},
          {"step", step},
          {"loss", shortest(report_.loss)},
          {"lr", rough(report_.lr)},
          {"grad_norm", shortest(report_.grad_norm)},
          {"tokens_per_second",
           std::round(progress.rate(step) * static_cast<double>(tokens_per_step()))},
          {"seconds", rounded(progress.seconds(), 3)}});
}

void TextRun::show(Progress& progress, std::int64_t step) {
  std::string line =
      fmt::format("step {:>{}}/{}   loss {:.3f}", step, std::to_string(settings_.steps).size(),
                  settings_.steps, report_.loss);
  if (validation_) line += fmt::format("   validation {:.3f}", *validation_);
  line += fmt::format(
      "   {} tokens/s",
      grouped(std::llround(progress.rate(step) * static_cast<double>(tokens_per_step()))));
  if (const std::string left = progress.time_left(step); !left.empty()) line += "   " + left;
  progress.show_text(line);
}

Validation TextRun::validate(std::int64_t tokens) {
  const Validation now = trainer_.validate(tokens);
  if (!std::isfinite(now.loss)) return now;  // there is no such part
  validation_ = now.loss;
  record({{"event", "validation"},
          {"step", trainer_.steps()},
          {"loss", rough(now.loss)},
          {"perplexity", rough(now.perplexity)},
          {"bits_per_byte", rough(now.bits_per_byte)}});
  return now;
}

void TextRun::say_sample() {
  Generator& model = trainer_.generator();
  model.forget();
  const std::string& prompt = settings_.prompt;
  const std::string text =
      generate(model, prompt, {.tokens = settings_.sample, .seed = settings_.seed});
  record({{"event", "sample"}, {"step", trainer_.steps()}, {"prompt", prompt}, {"text", text}});
  fmt::print(out_, "  | {}\n", join(split((prompt == "\n" ? "" : prompt) + text, '\n'), "\n  | "));
  std::fflush(out_);
}

void TextRun::save() {
  if (saved_ == trainer_.steps()) return;
  checkpoints_.save(trainer_.checkpoint());
  saved_ = trainer_.steps();
}

Json TextRun::done(bool stopped) const {
  Json line{{"event", "done"},
            {"step", trainer_.steps()},
            {"stopped", stopped},
            {"run", folder_.path().string()}};
  if (validation_) line["validation"] = rough(*validation_);
  return line;
}

int TextRun::say_finished_before() {
  const std::string sha256 = trainer_.training().fingerprint();
  fmt::print(out_, "all {} steps are made already\n  hint: --steps for more\nparameters {}\n",
             trainer_.steps(), sha256);
  Json line = done(false);
  line["params_sha256"] = sha256;
  if (json_) print_json(line);
  return 0;
}

int TextRun::stop(const Interrupt& interrupt) {
  const std::string sha256 = trainer_.training().fingerprint();
  fmt::print(
      out_,
      "stopped after {} of {} steps; to go on: tg train text --resume --out {}\nparameters {}\n",
      trainer_.steps(), settings_.steps, folder_.path().string(), sha256);
  Json line = done(true);
  line["params_sha256"] = sha256;
  record(line);
  write_plot({folder_.path()}, folder_.plot());
  return 128 + (interrupt.happened() ? interrupt.signal() : SIGPIPE);
}

int TextRun::finish(double seconds) {
  const Validation last = validate(kLastLookTokens);
  if (settings_.sample > 0) say_sample();
  const std::string sha256 = trainer_.training().fingerprint();
  fmt::print(out_, "{} in {}: loss {:.3f}", counted(trainer_.steps(), "step"), duration(seconds),
             report_.loss);
  if (std::isfinite(last.loss))
    fmt::print(out_,
               ", validation {:.3f}, perplexity {:.1f}, {:.2f} bits per byte\n(a model that only "
               "counts tokens has a "
               "validation loss of {:.3f})",
               last.loss, last.perplexity, last.bits_per_byte, unigram_);
  fmt::print(out_,
             "\nto read what it writes: tg generate {}\nto see how it learned: {}\nparameters {}\n",
             folder_.path().string(), folder_.plot().string(), sha256);
  Json line = done(false);
  line["loss"] = shortest(report_.loss), line["seconds"] = rounded(seconds, 3),
  line["params_sha256"] = sha256;
  record(line);
  write_plot({folder_.path()}, folder_.plot());
  return 0;
}

}  // namespace tensorgrad::tool
