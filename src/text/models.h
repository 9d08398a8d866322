// Builds the model that a config describes, for code that is the same for all kinds.
#pragma once

#include <string>

#include "tensorgrad/language_model.h"
#include "tensorgrad/mamba.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/text_model.h"

namespace tensorgrad::text {

// Throws for configs that describe no model, or one that fits no machine. The models themselves
// check the rest.
void check(const TextModelConfig& config);

TransformerConfig gpt_config(const TextModelConfig& config);
MambaConfig mamba_config(const TextModelConfig& config);
Mamba2Config mamba2_config(const TextModelConfig& config);
LanguageModelConfig hybrid_config(const TextModelConfig& config);

[[noreturn]] void refuse_kind(const std::string& kind);

// Calls use(model) with a Transformer, Mamba, Mamba2 or LanguageModel, which it may move from. All
// of these calls return the same type. Errors have no source line, because the sizes come from the
// config.
template <class F>
decltype(auto) with_model(const TextModelConfig& config, F&& use) {
  check(config);
  if (config.kind == "gpt") {
    Transformer model(gpt_config(config), Site{});
    return use(model);
  }
  if (config.kind == "mamba") {
    Mamba model(mamba_config(config), Site{});
    return use(model);
  }
  if (config.kind == "mamba2") {
    Mamba2 model(mamba2_config(config), Site{});
    return use(model);
  }
  if (config.kind == "hybrid") {
    LanguageModel model(hybrid_config(config), Site{});
    return use(model);
  }
  refuse_kind(config.kind);
}

}  // namespace tensorgrad::text
