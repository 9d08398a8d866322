// Trains a language model on text: batches, steps, validation, checkpoints. A trainer that was
// restored from a checkpoint continues exactly like the one that wrote it.
//   tg::Trainer trainer({.kind = "mamba", .dim = 64}, tokenizer, data, {.steps = 500});
//   while (trainer.step() < 500) {}
//   tg::save_checkpoint("model.safetensors", trainer.checkpoint());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorgrad/checkpoint.h"
#include "tensorgrad/compile.h"
#include "tensorgrad/dataset.h"
#include "tensorgrad/generate.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"

namespace tensorgrad {

// How the learning rate goes from its peak to `last_lr_share` of the peak. `constant` stays at the
// peak.
enum class LrSchedule : std::uint8_t { cosine, linear, constant };

struct TrainerOptions {
  std::int64_t batch = 8, steps = 1000;
  double lr = 3e-3;         // peak learning rate
  std::int64_t warmup = 0;  // steps of linear warmup; 0: a twentieth of `steps`, at most 200
  LrSchedule lr_schedule = LrSchedule::cosine;  // after the warmup, until the last step
  double last_lr_share = 0.1;                   // final learning rate as a fraction of the peak
  float weight_decay = 0.1f, clip_grad_norm = 1;
  int accumulate = 1;
  std::uint32_t seed = 0;  // for initial weights and the order of the data
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
  CompileCallback progress = {};  // reports kernel compilation, see progress.h
};

// The results of a step.
struct StepReport {
  std::int64_t step = 0;  // counted from 1
  float loss = 0, grad_norm = 0;
  double lr = 0;
};

// The results of validation. All are NaN if there is no validation text.
struct Validation {
  double loss = 0;        // mean per token
  double perplexity = 0;  // exp(loss)
  double bits_per_byte = 0;
};

class Trainer {
 public:
  // `config.vocab` is replaced by the size of the tokenizer.
  Trainer(TextModelConfig config, Tokenizer tokenizer, TextData data,
          const TrainerOptions& options = {});
  // Like the constructor, and does not block.
  static Future<Trainer> make_async(TextModelConfig config, Tokenizer tokenizer, TextData data,
                                    const TrainerOptions& options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // Runs one step, asynchronously on a GPU, and returns the number of steps so far.
  std::int64_t step();
  // Like step() and report(), and does not block.
  Future<StepReport> step_async();
  // Returns the report of the last step. Blocks until the step has finished.
  StepReport report() const;
  std::int64_t steps() const;
  // Sets the learning rate of all later steps, in place of the schedule of the options. The next
  // step is update 1 of a schedule. Checkpoints do not contain it: to continue from a checkpoint of
  // such a run, call set_lr() and then restore(), which restores where the schedule started.
  void set_lr(Schedule lr);
  // Returns the loss over the whole validation part, or over its first `tokens`. Training never
  // uses this part.
  Validation validate(std::int64_t tokens = 0);
  // Like validate(), and does not block. Goes on in poll(). Fails if the trainer is destroyed
  // first.
  Future<Validation> validate_async(std::int64_t tokens = 0);
  // Returns a generator that shares the parameters: it always uses the current weights.
  Generator& generator();
  // Like generator(), and does not block while it is compiled. The pointer is valid as long as the
  // trainer; moving the trainer keeps it.
  Future<Generator*> generator_async();

  // Measures the kernels of a step on the next batch: see ProgramHandle::profile(). The steps
  // update the parameters. To go on as before, restore() a checkpoint() from before.
  std::vector<DispatchTime> profile(int steps = 10);
  Future<std::vector<DispatchTime>> profile_async(int steps = 10);

  // Returns everything that restore() needs.
  Checkpoint checkpoint() const;
  Future<Checkpoint> checkpoint_async() const;
  // Continues from a checkpoint. Throws if it has another model, tokenizer, seed, data or options
  // (except `steps`); nothing is changed then.
  void restore(const Checkpoint& checkpoint);
  Future<Done> restore_async(const Checkpoint& checkpoint);

  TrainingHandle& training();
  const TextModelConfig& config() const;
  const TextData& data() const;

 private:
  struct Own;
  explicit Trainer(std::shared_ptr<Own> own);
  Own& own() const;
  std::shared_ptr<Own> own_;
};

}  // namespace tensorgrad
