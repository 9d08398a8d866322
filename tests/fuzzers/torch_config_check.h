// Properties of any text that is read as the config.json of PyTorch weights, of GPT-2, Mamba and
// Mamba-2.
#pragma once

#include <string>
#include <string_view>

#include "tensorgrad/error.h"
#include "tensorgrad/text_model.h"
#include "text/torch_rules.h"

namespace tensorgrad::fuzzers {

// Zero weights of a small model.
inline NamedArrays small_torch_weights(const char* kind) {
  TextModelConfig config{.kind = kind, .vocab = 3, .dim = 8, .context = 4, .layers = 1, .heads = 2};
  config.state = 2, config.head_size = 4;
  NamedArrays parameters;
  for (const auto& [name, shape] : text::torch::parameters_of(config))
    parameters[name] = Array(shape, std::vector<float>(static_cast<std::size_t>(shape.count())));
  return to_torch_names(config, parameters);
}

// Either refused with a short text, or a config that fits the weights.
inline std::string check_torch_config(std::string_view text) {
  for (const char* kind : {"gpt", "mamba", "mamba2"}) {
    static std::map<std::string, NamedArrays> made;
    if (!made.count(kind)) made[kind] = small_torch_weights(kind);
    try {
      const TextModelConfig config = config_of_torch_weights(made[kind], text);
      if (config.kind != kind) return "another kind";
      if (from_torch_names(config, made[kind]).empty()) return "no parameters";
    } catch (const UserError& error) {
      const std::string_view what = error.what();
      if (what.size() > 500) return "an error that is too long";
      for (const unsigned char c : what)
        if (c < ' ' && c != '\n') return "an error with control characters";
    }
  }
  return "";
}

}  // namespace tensorgrad::fuzzers
