// A language model by its kind and its sizes: plain data that a checkpoint keeps, so that a file says which model it
// is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad {

struct TextModelConfig {
  std::string kind = "gpt";  // gpt, mamba, mamba2 or hybrid
  std::int64_t vocab = 256, dim = 128, context = 128;
  int layers = 4;
  int heads = 4, groups = 0;        // of attention: gpt and hybrid
  bool biases = false;              // of attention's projections: gpt, as GPT-2 has them
  std::string activation = "gelu";  // gelu, gelu_tanh, relu, silu or tanh: of gpt and hybrid
  std::int64_t state = 0;           // of Mamba; 0: 16, and 64 in Mamba-2
  std::int64_t dt_rank = 0;         // of Mamba; 0: dim/16, rounded up
  std::int64_t conv = 4, expand = 2;  // of Mamba
  std::int64_t head_size = 0;         // of Mamba-2; 0: the largest up to 64 that divides expand * dim
  // Of hybrid, a word per layer: "mamba mamba attention", then `layers` is not looked at; empty: every third attends.
  std::string schedule = {};
  float eps = 1e-5f;

  // One line of JSON with all fields. Reading takes what is left out from here, and refuses unknown names, kinds and
  // sizes that make no model.
  std::string to_json() const;
  static TextModelConfig from_json(std::string_view text);
};

// ---- weights as PyTorch programs name them, for models of kind gpt, mamba and mamba2

// gpt: as Hugging Face's GPT-2 has them ("transformer.h.0.attn.c_attn.weight", [in, out]); a model without biases gets
// biases of 0. mamba and mamba2: as state-spaces has them ("backbone.layers.0.mixer.in_proj.weight", [out, in]). The
// tied head is there under its own name, as in a state_dict.
NamedArrays to_torch_names(const TextModelConfig& config, const NamedArrays& parameters);
// The other way. Takes both layouts of GPT-2 weights (of its own layer and of nn.Linear, which nanoGPT has), with or
// without "transformer.", "_orig_mod." or "module." in front, and models of nanoGPT without any biases; masks are
// passed over. The head, if there is one, must equal the embedding. What is missing, unknown or of another shape is an
// error that names it.
NamedArrays from_torch_names(const TextModelConfig& config, const NamedArrays& weights);
// The kind and the sizes of a model, as far as weights tell them. They do not tell `heads`: dim/64 as in GPT-2, or 1
// where that does not divide; nor the activation: gelu_tanh for GPT-2's layout, gelu for nn.Linear's; nor the context
// of Mamba, nor several groups in Mamba-2.
TextModelConfig config_of_torch_weights(const NamedArrays& weights);

}  // namespace tensorgrad
