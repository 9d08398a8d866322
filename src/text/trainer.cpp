// The parts of the training loop: a batch, a step, validation on held-out text, and saving and
// restoring a checkpoint.
#include "tensorgrad/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "support/fail.h"
#include "support/integers.h"
#include "text/checkpoint_keys.h"
#include "text/program.h"
#include "text/words.h"

namespace tensorgrad {

namespace {

using text::kData;
using text::kOptions;

// All options that a step depends on, except the number of steps, which may change. Checkpoints
// store this text, so newer options appear in it only if they differ from their default.
std::string text_of(const TrainerOptions& options) {
  std::string text =
      fmt::format("batch {} accumulate {} lr {} last_lr_share {} weight_decay {} clip_grad_norm {}",
                  options.batch, options.accumulate, options.lr, options.last_lr_share,
                  options.weight_decay, options.clip_grad_norm);
  const TrainerOptions usual;
  if (options.warmup != usual.warmup) text += fmt::format(" warmup {}", options.warmup);
  if (options.lr_schedule != usual.lr_schedule)
    text += fmt::format(" lr_schedule {}", text::word_of(options.lr_schedule));
  return text;
}

Schedule rise_and_fall(const TrainerOptions& options) {
  const std::int64_t rise =
      options.warmup > 0 ? options.warmup : std::clamp<std::int64_t>(options.steps / 20, 1, 200);
  const double last = options.lr * options.last_lr_share;
  const std::int64_t fall = std::max<std::int64_t>(options.steps - rise, 1);
  switch (options.lr_schedule) {
    case LrSchedule::cosine:
      return warmup(rise, cosine(options.lr, last, fall));
    case LrSchedule::linear:
      return warmup(rise, linear(options.lr, last, fall));
    case LrSchedule::constant:
      break;
  }
  return warmup(rise, options.lr);
}

TrainingOptions training_options(const TrainerOptions& options) {
  return {
      .optimizer =
          AdamW{.lr = rise_and_fall(options), .beta2 = 0.95f, .weight_decay = options.weight_decay},
      .clip_grad_norm = options.clip_grad_norm,
      .accumulate = options.accumulate,
      .seed = options.seed,
      .device = options.device,
      .threads = options.threads,
      .without = options.without,
      .progress = options.progress};
}

TextModelConfig with_vocab(TextModelConfig config, const Tokenizer& tokenizer) {
  config.vocab = tokenizer.vocab_size();
  return config;
}

void check(const TrainerOptions& options) {
  if (options.batch < 1) user_error("Trainer: the batch must be at least 1: {}", options.batch);
  if (options.steps < 1) user_error("Trainer: steps must be at least 1: {}", options.steps);
  if (options.accumulate < 1)
    user_error("Trainer: accumulate must be at least 1: {}", options.accumulate);
  if (options.warmup < 0) user_error("Trainer: warmup must not be negative: {}", options.warmup);
  if (!(options.last_lr_share >= 0) || options.last_lr_share > 1)
    user_error("Trainer: last_lr_share must be between 0 and 1: {}", options.last_lr_share);
  if (!(options.clip_grad_norm > 0))
    user_error("Trainer: clip_grad_norm must be above 0: {}", options.clip_grad_norm);
}

}  // namespace

struct Trainer::Own {
  Tokenizer tokenizer;
  TextData data;
  TrainerOptions options;
  std::shared_ptr<detail::TextProgram> program;
  std::optional<Generator> generator;
  std::vector<Result> last;  // one result per accumulated step of the last update
  double last_lr = 0;

  Own(TextModelConfig config, Tokenizer t, TextData d, const TrainerOptions& o)
      : tokenizer(std::move(t)), data(std::move(d)), options(o) {
    check(options);
    windows_per_round(data.training(), config.context);  // throws before anything is compiled
    program = detail::text_training(with_vocab(std::move(config), tokenizer), options.batch,
                                    training_options(options));
    // Compile it now, so that a model too large for validation fails before the first step.
    if (data.validation().size() > 1) program->evaluation();
  }

  std::int64_t steps() const { return program->training().steps() / options.accumulate; }
  std::int64_t position() const {
    return program->training().steps() * options.batch;
  }  // windows seen
};

Trainer::Trainer(TextModelConfig config, Tokenizer tokenizer, TextData data,
                 const TrainerOptions& options)
    : own_(std::make_unique<Own>(std::move(config), std::move(tokenizer), std::move(data),
                                 options)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

TrainingHandle& Trainer::training() { return own_->program->training(); }
const TextModelConfig& Trainer::config() const { return own_->program->config(); }
const TextData& Trainer::data() const { return own_->data; }
std::int64_t Trainer::steps() const { return own_->steps(); }

std::int64_t Trainer::step() {
  TrainingHandle& training = own_->program->training();
  own_->last_lr = training.lr();
  own_->last.clear();
  for (int i = 0; i < own_->options.accumulate; ++i) {
    const WindowBatch batch = windows(
        own_->data.training(),
        {.batch = own_->options.batch, .length = config().context, .seed = own_->options.seed},
        own_->position());
    own_->last.push_back(training.step({{"tokens", batch.tokens}, {"targets", batch.targets}}));
  }
  return own_->steps();
}

StepReport Trainer::report() const {
  if (own_->last.empty()) user_error("Trainer: there is no step to report yet");
  double loss = 0;
  for (const Result& result : own_->last) loss += static_cast<double>(result.loss());
  return {.step = own_->steps(),
          .loss = static_cast<float>(loss / static_cast<double>(own_->last.size())),
          .grad_norm = own_->last.back().grad_norm(),
          .lr = own_->last_lr};
}

Validation Trainer::validate(std::int64_t tokens) {
  const Tokens& held_out = own_->data.validation();
  const std::int64_t B = own_->options.batch, T = config().context;
  // Every token but the first is predicted.
  std::int64_t wanted = held_out.size() - 1;
  if (tokens > 0) wanted = std::min(wanted, tokens);
  if (wanted < 1) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {none, none, none};
  }
  double sum = 0;
  for (std::int64_t at = 0; at < wanted; at += B * T) {
    const auto size = usize(B * T);
    const auto count = usize(std::min(B * T, wanted - at));
    std::vector<std::int32_t> ids(size + 1);
    held_out.read(at, std::span(ids).first(count + 1));
    const std::span<const std::int32_t> all(ids);
    std::vector<float> mask(size);
    std::fill_n(mask.begin(), count, 1.0f);
    const Result result = own_->program->evaluation().run(
        {{"tokens", all.first(size)}, {"targets", all.subspan(1)}, {"mask", mask}});
    sum += static_cast<double>(result.output().floats()[0]) * static_cast<double>(count);
  }
  const double loss = sum / static_cast<double>(wanted);
  const double bytes_per_token =
      static_cast<double>(own_->data.validation_bytes()) / static_cast<double>(held_out.size());
  return {loss, std::exp(loss), loss / std::log(2.0) / bytes_per_token};
}

Generator& Trainer::generator() {
  if (!own_->generator) own_->generator = Generator(own_->program, own_->tokenizer);
  return *own_->generator;
}

Checkpoint Trainer::checkpoint() const {
  TrainingHandle& training = own_->program->training();
  Checkpoint made{.parameters = training.download(),
                  .optimizer = training.optimizer_state(),
                  .step = own_->steps(),
                  .seed = own_->options.seed,
                  .position = own_->position(),
                  .tokenizer = own_->tokenizer.to_json(),
                  .config = config().to_json()};
  made.more[kData] = own_->data.fingerprint();
  made.more[kOptions] = text_of(own_->options);
  return made;
}

void Trainer::restore(const Checkpoint& checkpoint) {
  // Compare after a round trip: a file from before a field existed lacks it.
  if (TextModelConfig::from_json(checkpoint.config).to_json() != config().to_json())
    user_error("Trainer: the checkpoint is of another model: {}, not {}", checkpoint.config,
               config().to_json());
  if (checkpoint.tokenizer != own_->tokenizer.to_json())
    user_error("Trainer: the checkpoint has another tokenizer");
  if (checkpoint.seed != own_->options.seed)
    user_error("Trainer: the checkpoint was trained with seed {}, not {}", checkpoint.seed,
               own_->options.seed);
  const auto data = checkpoint.more.find(kData);
  if (data == checkpoint.more.end() || data->second != own_->data.fingerprint())
    user_error("Trainer: the checkpoint was trained on another text, or on another part of it");
  if (checkpoint.optimizer.empty())
    user_error("Trainer: the checkpoint has no optimizer state, so training cannot continue");
  const auto options = checkpoint.more.find(kOptions);
  if (options == checkpoint.more.end() || options->second != text_of(own_->options))
    user_error("Trainer: the checkpoint was trained with other options: {}, not {}",
               options == checkpoint.more.end() ? "none" : options->second, text_of(own_->options));
  own_->program->training().restore(checkpoint.parameters, checkpoint.optimizer);
  own_->last.clear();
}

}  // namespace tensorgrad
