// A language model of any kind as programs: a training step, the loss on held-out text, and one
// token at a time. The kinds are different structs; behind this they are one.
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
  // Tokens and targets [B, context] -> loss. Only of programs made for training.
  virtual TrainingHandle& training() = 0;
  // The same with a mask [B, context] and no update: the mean over what is not masked.
  virtual ForwardHandle& evaluation() = 0;
  // Tokens [1, 1] and the state -> "logits" [1, 1, V], and the state under its names.
  virtual ForwardHandle& next() = 0;
  // How many positions the state has room for; 0: there is no end.
  virtual std::int64_t capacity() const = 0;
  virtual StateSpec state() const = 0;

 protected:
  explicit TextProgram(TextModelConfig config) : config_(std::move(config)) {}

 private:
  TextModelConfig config_;
};

// `options.inputs` are filled in.
std::shared_ptr<TextProgram> text_training(const TextModelConfig& config, std::int64_t batch,
                                           TrainingOptions options);
// Only next(). `capacity` 0: the context.
std::shared_ptr<TextProgram> text_generation(const TextModelConfig& config, std::int64_t capacity,
                                             ForwardOptions options);

}  // namespace tensorgrad::detail
