// Small models on a small text.
#pragma once

#include <string>

#include "tensorgrad/trainer.h"

namespace tensorgrad {

// Simple, so that a few steps are enough to learn some of it.
inline std::string small_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on mat " + std::to_string(i % 7) + "\n";
  return text;
}

inline TextModelConfig small_config(const std::string& kind) {
  TextModelConfig config{
      .kind = kind, .dim = 16, .context = 12, .layers = 2, .heads = 2, .state = 4, .head_size = 16};
  if (kind == "hybrid") config.schedule = "mamba attention";
  return config;
}

inline Trainer small_trainer(const std::string& kind, TrainerOptions options) {
  options.device = "cpu";
  if (options.batch == TrainerOptions{}.batch) options.batch = 2;
  return Trainer(small_config(kind), Tokenizer::bytes(),
                 TextData::of(small_text(), Tokenizer::bytes()), options);
}

}  // namespace tensorgrad
