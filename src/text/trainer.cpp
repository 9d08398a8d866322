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
#include "text/listener.h"
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
    text += fmt::format(" lr_schedule {}", word_of(options.lr_schedule));
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
  std::vector<Result> last;    // one result per accumulated step of the last update
  std::int64_t last_step = 0;  // number of that update; those of a profile come behind it
  double last_lr = 0;

  TrainingHandle& training() const { return program->training(); }
  std::int64_t steps() const { return training().steps() / options.accumulate; }
  std::int64_t position() const { return training().steps() * options.batch; }  // windows seen

  WindowBatch next_batch() const {
    return windows(
        data.training(),
        {.batch = options.batch, .length = program->config().context, .seed = options.seed},
        position());
  }

  // Enqueues the steps of one update by `step`, which blocks or does not.
  template <class Step>
  void enqueue(Step step) {
    last_step = steps() + 1;
    last_lr = training().lr();
    last.clear();
    for (int i = 0; i < options.accumulate; ++i) {
      const WindowBatch batch = next_batch();
      last.push_back(step(Feed{{"tokens", batch.tokens}, {"targets", batch.targets}}));
    }
  }

  // Throws a UserError if the checkpoint is not one of this trainer.
  void check(const Checkpoint& checkpoint) const;
  Checkpoint checkpoint(NamedArrays parameters, NamedArrays optimizer) const {
    const std::int64_t made = optimizer.at("step").ints()[0];
    Checkpoint out{.parameters = std::move(parameters),
                   .optimizer = std::move(optimizer),
                   .step = made / options.accumulate,
                   .seed = options.seed,
                   .position = made * options.batch,
                   .tokenizer = tokenizer.to_json(),
                   .config = program->config().to_json()};
    out.more[kData] = data.fingerprint();
    out.more[kOptions] = text_of(options);
    return out;
  }
};

namespace {

StepReport report_of(std::int64_t step, double lr, const std::vector<Result>& results) {
  double loss = 0;
  for (const Result& result : results) loss += static_cast<double>(result.loss());
  return {.step = step,
          .loss = static_cast<float>(loss / static_cast<double>(results.size())),
          .grad_norm = results.back().grad_norm(),
          .lr = lr};
}

// Measures the loss on held-out text: batch after batch, two at a time, so that a GPU is busy.
class Measurement : public std::enable_shared_from_this<Measurement> {
 public:
  Measurement(const std::shared_ptr<detail::TextProgram>& program, ForwardHandle& evaluation,
              const TextData& data, std::int64_t batch, std::int64_t tokens)
      : program_(program), evaluation_(evaluation), data_(data), batch_(batch), tokens_(tokens) {}

  Completion<Validation> done;

  void start() {
    begin_batch();
    begin_batch();
  }

 private:
  void begin_batch() {
    if (at_ >= tokens_ || done.ready()) return;
    const auto program = program_.lock();
    const std::int64_t T = program->config().context;
    const auto size = usize(batch_ * T);
    const auto count = usize(std::min(batch_ * T, tokens_ - at_));
    std::vector<std::int32_t> ids(size + 1);
    data_.validation().read(at_, std::span(ids).first(count + 1));
    const std::span<const std::int32_t> all(ids);
    std::vector<float> mask(size);
    std::fill_n(mask.begin(), count, 1.0f);
    at_ += batch_ * T;
    evaluation_
        .run_async({{"tokens", all.first(size)}, {"targets", all.subspan(1)}, {"mask", mask}})
        .then([self = shared_from_this(), count](const Result& result) {
          try {
            self->add(result, static_cast<std::int64_t>(count));
          } catch (...) {
            self->done.set_error(std::current_exception());
          }
        });
  }

  void add(const Result& result, std::int64_t count) {
    sum_ += static_cast<double>(result.output().floats()[0]) * static_cast<double>(count);
    measured_ += count;
    if (program_.expired()) user_error("Trainer: it was destroyed before it had finished");
    if (measured_ < tokens_) return begin_batch();
    const double loss = sum_ / static_cast<double>(tokens_);
    const double bytes_per_token = static_cast<double>(data_.validation_bytes()) /
                                   static_cast<double>(data_.validation().size());
    done.set({loss, std::exp(loss), loss / std::log(2.0) / bytes_per_token});
  }

  std::weak_ptr<detail::TextProgram> program_;
  ForwardHandle& evaluation_;  // of the program
  TextData data_;
  std::int64_t batch_, tokens_;
  std::int64_t at_ = 0, measured_ = 0;
  double sum_ = 0;
};

}  // namespace

Trainer::Trainer(std::shared_ptr<Own> own) : own_(std::move(own)) {}

Trainer::Trainer(TextModelConfig config, Tokenizer tokenizer, TextData data,
                 const TrainerOptions& options)
    : Trainer(
          make_async(std::move(config), std::move(tokenizer), std::move(data), options).take()) {}

Future<Trainer> Trainer::make_async(TextModelConfig config, Tokenizer tokenizer, TextData data,
                                    const TrainerOptions& options) {
  check(options);
  windows_per_round(data.training(), config.context);  // throws before anything is compiled
  const auto own = std::make_shared<Own>(
      Own{.tokenizer = std::move(tokenizer), .data = std::move(data), .options = options});
  return detail::text_training(with_vocab(std::move(config), own->tokenizer), options.batch,
                               training_options(options))
      .and_then([own](const std::shared_ptr<detail::TextProgram>& program) {
        own->program = program;
        const auto made = [own](ForwardHandle*) { return Trainer(own); };
        // Compile it now, so that a model too large for validation fails before the first step.
        if (own->data.validation().size() > 1) return program->evaluation().map(made);
        return Future<Trainer>(Completion<Trainer>(made(nullptr)), nullptr, "compiling");
      });
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

Trainer::Own& Trainer::own() const {
  if (!own_) user_error("Trainer: it was moved from");
  return *own_;
}

TrainingHandle& Trainer::training() { return own().training(); }
const TextModelConfig& Trainer::config() const { return own().program->config(); }
const TextData& Trainer::data() const { return own().data; }
std::int64_t Trainer::steps() const { return own().steps(); }

void Trainer::set_lr(Schedule lr) { training().set_lr(std::move(lr)); }

std::int64_t Trainer::step() {
  own().enqueue([this](const Feed& feed) { return own().training().step(feed); });
  return own().steps();
}

std::vector<DispatchTime> Trainer::profile(int steps) { return profile_async(steps).take(); }

Future<std::vector<DispatchTime>> Trainer::profile_async(int steps) {
  const WindowBatch batch = own().next_batch();
  return own().training().profile_async(steps,
                                        {{"tokens", batch.tokens}, {"targets", batch.targets}});
}

StepReport Trainer::report() const {
  if (own().last.empty()) user_error("Trainer: there is no step to report yet");
  return report_of(own().last_step, own().last_lr, own().last);
}

Future<StepReport> Trainer::step_async() {
  own().enqueue([this](const Feed& feed) { return own().training().step_async(feed); });
  const Completion<StepReport> done;
  const auto ready = std::make_shared<std::vector<Result>>();
  for (const Result& each : own().last)
    each.then([done, ready, all = own().last.size(), step = own().last_step,
               lr = own().last_lr](const Result& result) {
      ready->push_back(result);
      if (ready->size() < all) return;
      try {
        done.set(report_of(step, lr, *ready));
      } catch (...) {
        done.set_error(std::current_exception());
      }
    });
  return {done, own().training().source(), "a step"};
}

Future<Validation> Trainer::validate_async(std::int64_t tokens) {
  // Every token but the first is predicted.
  std::int64_t wanted = own().data.validation().size() - 1;
  if (tokens > 0) wanted = std::min(wanted, tokens);
  if (wanted < 1) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {Completion<Validation>({none, none, none}), nullptr, "validating"};
  }
  return own().program->evaluation().and_then(
      [own = std::weak_ptr(own_), wanted](ForwardHandle* evaluation) {
        const auto trainer = own.lock();
        if (!trainer) user_error("Trainer: it was destroyed before it had finished");
        const auto measurement = std::make_shared<Measurement>(
            trainer->program, *evaluation, trainer->data, trainer->options.batch, wanted);
        measurement->start();
        return Future<Validation>(measurement->done, evaluation->source(), "validating");
      });
}

Validation Trainer::validate(std::int64_t tokens) { return validate_async(tokens).take(); }

Future<Generator*> Trainer::generator_async() {
  return own().program->next().and_then([own = std::weak_ptr(own_)](ForwardHandle* next) {
    const auto trainer = own.lock();
    if (!trainer) user_error("Trainer: it was destroyed before it had finished");
    if (!trainer->generator)
      trainer->generator.emplace(
          std::make_shared<detail::Listener>(trainer->program, *next, trainer->tokenizer));
    return Future<Generator*>(Completion<Generator*>(&*trainer->generator), nullptr, "compiling");
  });
}

Generator& Trainer::generator() { return *generator_async().take(); }

Checkpoint Trainer::checkpoint() const { return checkpoint_async().take(); }

Future<Checkpoint> Trainer::checkpoint_async() const {
  const auto parameters = own().training().download_async();
  return own().training().optimizer_state_async().map(
      [own = std::weak_ptr(own_), parameters](NamedArrays& optimizer) {
        const auto trainer = own.lock();
        if (!trainer) user_error("Trainer: it was destroyed before it had finished");
        return trainer->checkpoint(std::move(parameters.get()), std::move(optimizer));
      });
}

void Trainer::Own::check(const Checkpoint& checkpoint) const {
  // Compare after a round trip: a file from before a field existed lacks it.
  if (TextModelConfig::from_json(checkpoint.config).to_json() != program->config().to_json())
    user_error("Trainer: the checkpoint is of another model: {}, not {}", checkpoint.config,
               program->config().to_json());
  if (checkpoint.tokenizer != tokenizer.to_json())
    user_error("Trainer: the checkpoint has another tokenizer");
  if (checkpoint.seed != options.seed)
    user_error("Trainer: the checkpoint was trained with seed {}, not {}", checkpoint.seed,
               options.seed);
  const auto its_data = checkpoint.more.find(kData);
  if (its_data == checkpoint.more.end() || its_data->second != data.fingerprint())
    user_error("Trainer: the checkpoint was trained on another text, or on another part of it");
  if (checkpoint.optimizer.empty())
    user_error("Trainer: the checkpoint has no optimizer state, so training cannot continue");
  const auto its_options = checkpoint.more.find(kOptions);
  if (its_options == checkpoint.more.end() || its_options->second != text_of(options))
    user_error("Trainer: the checkpoint was trained with other options: {}, not {}",
               its_options == checkpoint.more.end() ? "none" : its_options->second,
               text_of(options));
}

void Trainer::restore(const Checkpoint& checkpoint) {
  own().check(checkpoint);
  own().training().restore(checkpoint.parameters, checkpoint.optimizer);
  own().last.clear();
}

Future<Done> Trainer::restore_async(const Checkpoint& checkpoint) {
  own().check(checkpoint);
  own().last.clear();
  return own().training().restore_async(checkpoint.parameters, checkpoint.optimizer);
}

}  // namespace tensorgrad
