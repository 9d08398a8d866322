#include "text_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compile_counter.h"
#include "plot.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/text.h"
#include "text/checkpoint_keys.h"

namespace tensorgrad::tool {

namespace {

constexpr std::int64_t kLogged = 500;  // steps with a line in the log
constexpr std::int64_t kLooks = 10;    // validations and samples
constexpr std::int64_t kSaves = 20;
constexpr std::int64_t kLookTokens = 20'000;    // of the validation part, per point of the curve
constexpr std::int64_t kFinalTokens = 200'000;  // for the final figure

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Rounds to six digits.
Json rough(double value) {
  return std::isfinite(value) ? number(std::stod(fmt::format("{:.6g}", value))) : Json(nullptr);
}

std::int64_t part_of(std::int64_t steps, std::int64_t parts) {
  return std::max<std::int64_t>(1, steps / parts);
}

Tokenizer tokenizer_of(const TextSettings& settings,
                       const std::optional<CheckpointFolder::Found>& last) {
  return last ? Tokenizer::from_json(last->checkpoint.tokenizer) : make_tokenizer(settings);
}

TextData data_of(const TextSettings& settings, const Tokenizer& tokenizer, const RunFolder& folder,
                 std::FILE* out, const std::optional<CheckpointFolder::Found>& last) {
  TextDataOptions options{.validation = settings.validation, .cache = folder.tokens()};
  // A resumed run must use the tokens that the checkpoint was trained on.
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
        "{}: {} for training are too few for a context of {}\n  hint: {}", settings.file,
        counted(tokens, "token"), settings.model.context,
        tokens > 1 ? fmt::format("--context {}, or a longer text", tokens - 1) : "a longer text");
  line.reset();
  // Print before the model is compiled, which may take minutes.
  print_to(out, "{}: {} for training, {} for validation (tokenizer {}, vocabulary {})\n",
           settings.file, counted(tokens, "token"), grouped(data.validation().size()),
           tokenizer.kind(), grouped(tokenizer.vocab_size()));
  return data;
}

TrainerOptions trainer_options(const TextSettings& settings, const DeviceOptions& where,
                               std::FILE* out) {
  TrainerOptions options = settings.trainer(where);
  options.progress = count_compiled(out);
  return options;
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
               trainer_options(settings, where, out_)),
      checkpoints_(folder.checkpoints(), settings.keep) {
  settings_.model = trainer_.config();
  settings_.device = trainer_.training().device();
  if (!last) return;
  trainer_.restore(last->checkpoint);
  from_ = last->path;
  first_ = saved_ = trainer_.steps();
  for (const std::string& bad : last->unreadable) print_to(stderr, "tg: skipped: {}\n", bad);
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

int TextRun::train(std::int64_t planned) {
  if (trainer_.steps() >= settings_.steps) return say_no_steps_left(planned);
  describe();
  write_settings();
  log_.emplace(folder_, trainer_.steps());
  if (first_ > 0)
    record({{"event", "resume"},
            {"step", first_},
            {"device", settings_.device},
            {"simd", simd_of(settings_.device)}});
  else
    record({{"event", "start"},
            {"step", 0},
            {"parameters", parameter_count(trainer_.training())},
            {"device", settings_.device},
            {"simd", simd_of(settings_.device)},
            {"vocab", tokenizer_.vocab_size()},
            {"training_tokens", trainer_.data().training().size()},
            {"validation_tokens", trainer_.data().validation().size()},
            {"unigram_loss", rough(unigram_)}});
  const Interrupt interrupt;
  Progress progress(out_, settings_.steps, first_);
  try {
    make_steps(interrupt, progress);
    progress.end_line();
    return trainer_.steps() < settings_.steps ? stop(interrupt) : finish(progress.seconds());
  } catch (const NonFiniteError& error) {
    user_error("{}\n  hint: a lower --lr", error.what());
  }
}

void TextRun::make_steps(const Interrupt& interrupt, Progress& progress) {
  for (bool stops = false; !stops;) {
    const std::int64_t step = trainer_.step();
    const bool last = step == settings_.steps;
    stops = last || interrupt.happened();
    const bool logs = step % log_every() == 0 || last, shows = stops || progress.due(step);
    const bool looks = last || step % validate_every() == 0;
    if (logs || shows || looks) report_ = trainer_.report();
    if (logs) report(progress, step);
    {
      const Progress::Pause pause(progress);
      if (looks) validate();
      if (shows) show(progress, step);
      // The last step prints its own sample.
      if (looks && settings_.sample > 0 && !stops) {
        progress.end_line();
        say_sample();
      }
      if (stops || step % save_every() == 0) save();
    }
  }
}

void TextRun::describe() {
  const TextData& data = trainer_.data();
  const TrainingHandle& training = trainer_.training();
  unigram_ = unigram_loss(data.training(), data.validation(), tokenizer_.vocab_size());
  if (first_ > 0) print_to(out_, "resuming from {}, step {}\n", from_.string(), grouped(first_));
  print_to(out_, "{}: {}, {} of width {}, context {}, on {}\n", settings_.model.kind,
           counted(parameter_count(training), "parameter"),
           counted(settings_.model.layers, "layer"), settings_.model.dim, settings_.model.context,
           where_text(training.device(), training.threads()));
  print_to(out_, "{} of {}; ctrl-C saves and stops; the run is in {}\n",
           counted(settings_.steps, "step"),
           counted(settings_.batch * settings_.accumulate, "window"), folder_.path().string());
}

void TextRun::record(const Json& line) {
  log_->add(line);
  if (json_) print_json(line);
}

void TextRun::report(Progress& progress, std::int64_t step) {
  speed_ = std::round(progress.recent_rate(step) * static_cast<double>(tokens_per_step()));
  record({{"event", "step"},
          {"step", step},
          {"loss", shortest(report_.loss)},
          {"lr", rough(report_.lr)},
          {"grad_norm", shortest(report_.grad_norm)},
          {"tokens_per_second", speed_},
          {"seconds", rounded(progress.seconds(), 3)}});
}

void TextRun::show(Progress& progress, std::int64_t step) {
  std::string line =
      fmt::format("step {:>{}}/{}   loss {:.3f}", step, std::to_string(settings_.steps).size(),
                  settings_.steps, report_.loss);
  if (validation_)
    line += fmt::format("   validation {:.3f} at step {}", validation_->loss, validation_step_);
  if (speed_ > 0) line += fmt::format("   {} tokens/s", grouped(std::llround(speed_)));
  if (const std::string left = progress.time_left(step); !left.empty()) line += "   " + left;
  progress.show_text(line);
}

void TextRun::validate() {
  const Validation now = trainer_.validate(kLookTokens);
  if (!std::isfinite(now.loss)) return;  // there is no validation part
  validation_ = now;
  validation_step_ = trainer_.steps();
  record(validation_line("validation", now));
}

Json TextRun::validation_line(const char* event, const Validation& of) const {
  return {{"event", event},
          {"step", trainer_.steps()},
          {"loss", rough(of.loss)},
          {"perplexity", rough(of.perplexity)},
          {"bits_per_byte", rough(of.bits_per_byte)}};
}

// Measures more tokens than the curve does, so the result is not a point of the curve.
void TextRun::measure_final() {
  const std::int64_t there = trainer_.data().validation().size() - 1;
  if (there > kLookTokens) validation_ = trainer_.validate(kFinalTokens);
  if (!validation_) return;
  Json line = validation_line("final", *validation_);
  line["tokens"] = std::min(there, kFinalTokens);
  record(line);
}

void TextRun::say_sample() {
  Generator& model = trainer_.generator();
  model.forget();
  const std::string& prompt = settings_.prompt;
  const std::string text =
      generate(model, prompt, {.tokens = settings_.sample, .seed = settings_.seed});
  record({{"event", "sample"}, {"step", trainer_.steps()}, {"prompt", prompt}, {"text", text}});
  const std::string shown = printable((prompt == "\n" ? "" : prompt) + text);
  print_to(out_, "  sample at step {}:\n  | {}\n", grouped(trainer_.steps()),
           join(split(shown, '\n'), "\n  | "));
}

void TextRun::save() {
  if (saved_ == trainer_.steps()) return;
  checkpoints_.save(trainer_.checkpoint());
  saved_ = trainer_.steps();
}

Json TextRun::done(bool stopped, const std::string& sha256) const {
  Json line{{"event", "done"},
            {"step", trainer_.steps()},
            {"stopped", stopped},
            {"run", folder_.path().string()}};
  if (validation_) line["validation"] = rough(validation_->loss);
  line["params_sha256"] = sha256;
  return line;
}

int TextRun::say_no_steps_left(std::int64_t planned) {
  const std::string sha256 = trainer_.training().fingerprint(), run = folder_.path().string();
  const std::int64_t made = trainer_.steps();
  if (made < planned)
    print_to(out_,
             "{}: the run is at step {} of {}, so --steps {} leaves nothing to do\n"
             "  hint: without --steps it continues to step {}\n",
             run, made, planned, settings_.steps, planned);
  else
    print_to(
        out_,
        "{0}: the run is finished at step {1}{2}\n"
        "  hint: --steps {3} trains {1} more; tg generate {0} writes text with it\n",
        run, made,
        settings_.steps < made ? fmt::format(", --steps {} asks for fewer", settings_.steps) : "",
        2 * made);
  print_to(out_, "parameters {}\n", sha256);
  if (json_) print_json(done(false, sha256));
  return 0;
}

int TextRun::stop(const Interrupt& interrupt) {
  const std::string sha256 = trainer_.training().fingerprint();
  print_to(
      out_, "stopped after {} of {}; to continue: tg train text --resume --out {}\nparameters {}\n",
      grouped(trainer_.steps()), counted(settings_.steps, "step"), folder_.path().string(), sha256);
  record(done(true, sha256));
  write_plot({folder_.path()}, folder_.plot());
  return 128 + interrupt.signal();
}

int TextRun::finish(double seconds) {
  measure_final();
  if (settings_.sample > 0) say_sample();
  const std::string sha256 = trainer_.training().fingerprint();
  print_to(out_, "{} in {}{}: loss {:.3f}", counted(trainer_.steps() - first_, "step"),
           duration(seconds),
           first_ > 0 ? fmt::format(" ({} in all)", grouped(trainer_.steps())) : "", report_.loss);
  const std::vector<CompressedText> others = compare_with_compressors();
  if (validation_) {
    print_to(out_,
             ", validation {:.3f}, perplexity {:.1f}, {:.2f} bits per byte\n(unigram model: {:.2f}",
             validation_->loss, validation_->perplexity, validation_->bits_per_byte,
             bits_per_byte(unigram_));
    for (const CompressedText& other : others)
      print_to(out_, ", {}: {:.2f}", other.program, other.bits_per_byte);
    print_to(out_, ")");
  }
  print_to(out_, "\nto generate text: tg generate {}\nto see the curves: {}\nparameters {}\n",
           folder_.path().string(), folder_.plot().string(), sha256);
  Json line = done(false, sha256);
  line["loss"] = shortest(report_.loss), line["seconds"] = rounded(seconds, 3);
  for (const CompressedText& other : others)
    line[other.program + "_bits_per_byte"] = rounded(other.bits_per_byte, 4);
  record(line);
  write_plot({folder_.path()}, folder_.plot());
  return 0;
}

double TextRun::bits_per_byte(double loss) const {
  const TextData& data = trainer_.data();
  return loss / std::log(2.0) * static_cast<double>(data.validation().size()) /
         static_cast<double>(data.validation_bytes());
}

// Compares only if the file still has the size that it had when the run began.
std::vector<CompressedText> TextRun::compare_with_compressors() const {
  const TextData& data = trainer_.data();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(settings_.file, error);
  if (error || size != static_cast<std::uintmax_t>(data.training_bytes() + data.validation_bytes()))
    return {};
  return compressed_text(settings_.file, data.validation_bytes());
}

}  // namespace tensorgrad::tool
