// The programs of a language model: a training step, the loss on held-out text, and generation of
// one token. The kinds of models are different structs; this interface hides the difference.
#pragma once

#include <cstdint>
#include <memory>

#include "tensorgrad/compile.h"
#include "tensorgrad/state.h"
#include "tensorgrad/text_model.h"

namespace tensorgrad::detail {

class TextProgram {
 public:
  virtual ~TextProgram() = default;

  const TextModelConfig& config() const { return config_; }
  // Tokens and targets [B, context] -> loss. Only in programs made for training.
  virtual TrainingHandle& training() = 0;
  // The next two are compiled at their first use. The pointers are valid as long as the program.
  //
  // The same with a mask [B, context] and no update: the mean over unmasked positions.
  virtual Future<ForwardHandle*> evaluation() = 0;
  // Tokens [1, 1] and the state -> "logits" [1, 1, V], and the new state under the same names.
  virtual Future<ForwardHandle*> next() = 0;
  // Number of positions that fit into the state; 0: unlimited.
  virtual std::int64_t capacity() const = 0;
  virtual StateSpec state() const = 0;

 protected:
  explicit TextProgram(TextModelConfig config) : config_(std::move(config)) {}

 private:
  TextModelConfig config_;
};

// Fills in `options.inputs`.
Future<std::shared_ptr<TextProgram>> text_training(const TextModelConfig& config,
                                                   std::int64_t batch, TrainingOptions options);
// Provides only next(). `capacity` 0: the context.
Future<std::shared_ptr<TextProgram>> text_generation(const TextModelConfig& config,
                                                     std::int64_t capacity, ForwardOptions options);

}  // namespace tensorgrad::detail
