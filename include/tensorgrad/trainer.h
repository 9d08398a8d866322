// Training a language model on text: batches, steps, validation, checkpoints. A trainer that was restored from a
// checkpoint goes on exactly as the one that wrote it.
//   tg::Trainer trainer({.kind = "mamba", .dim = 64}, tokenizer, data, {.steps = 500, .device = "cpu"});
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

struct TrainerOptions {
  std::int64_t batch = 8, steps = 1000;  // the learning rate rises over the first steps and falls until the last
  double lr = 3e-3;                      // at its peak
  double last_lr_share = 0.1;            // of the peak, at the end
  float weight_decay = 0.1f, clip_grad_norm = 1;
  int accumulate = 1;
  std::uint32_t seed = 0;                // of weights and of the order of the data
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
};

// What a step was like; reading it waits for the step.
struct StepReport {
  std::int64_t step = 0;  // counted from 1
  float loss = 0, grad_norm = 0;
  double lr = 0;
};

struct Validation {
  double loss = 0;           // mean per token
  double perplexity = 0;     // exp(loss)
  double bits_per_byte = 0;
};

class Trainer {
 public:
  // `config.vocab` becomes that of the tokenizer.
  Trainer(TextModelConfig config, Tokenizer tokenizer, TextData data, const TrainerOptions& options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // One step, enqueued. Returns how many were made.
  std::int64_t step();
  // Of the last step; waits for it.
  StepReport report() const;
  std::int64_t steps() const;
  // Over the whole validation part, or over the first `tokens` of it. None of it is trained on.
  Validation validate(std::int64_t tokens = 0);
  // Shares the parameters: it always is as good as the model.
  Generator& generator();

  Checkpoint checkpoint() const;
  // The other way; a checkpoint of another model, another seed, other data or other options (but for the number of
  // steps) is an error, and nothing is changed.
  void restore(const Checkpoint& checkpoint);

  TrainingHandle& training();
  const TextModelConfig& config() const;
  const TextData& data() const;

 private:
  struct Own;
  std::unique_ptr<Own> own_;
};

}  // namespace tensorgrad
