// The config of a language model: its kind and its sizes. It is plain data that a checkpoint
// stores, so that a file says which model it holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensorgrad/array.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {

// Positions of a gpt model: a learned table as in GPT-2, or rotary positions, which rotate queries
// and keys.
enum class Positions : std::uint8_t { learned, rotary };

// The kind and the sizes of a language model.
struct TextModelConfig {
  std::string kind = "gpt";  // gpt, mamba, mamba2 or hybrid
  std::int64_t vocab = 256, dim = 128, context = 128;
  int layers = 4;
  int heads = 4, groups = 0;          // heads, and key and value heads (0: same): gpt and hybrid
  bool biases = false;                // in the attention projections, as in GPT-2: gpt
  std::string activation = "gelu";    // gelu, gelu_tanh, relu, silu or tanh: gpt and hybrid
  std::int64_t state = 0;             // state size of Mamba; 0: 16, and 64 in Mamba-2
  std::int64_t dt_rank = 0;           // Mamba; 0: dim/16, rounded up
  std::int64_t conv = 4, expand = 2;  // Mamba and Mamba-2
  std::int64_t head_size = 0;         // Mamba-2; 0: the largest up to 64 that divides expand * dim
  std::int64_t chunk = 64;            // Mamba-2: positions that are computed as one matmul
  int state_groups = 1;               // Mamba-2: the heads of a group share B and C
  Discretisation discretisation =
      Discretisation::euler;  // Mamba only: euler or zoh (zero-order hold)
  // hybrid: one word per layer, e.g. "mamba mamba attention"; `layers` is ignored then. Empty:
  // every third layer is attention, or the last one of fewer than three.
  std::string schedule = {};
  float eps = 1e-5f;
  Positions positions = Positions::learned;  // gpt; the attention of hybrid is always rotary
  float rope_base = 10000;                   // for rotary positions
  NormKind norm = NormKind::layer;           // gpt, and the attention blocks of hybrid
  float embedding_std = 0.05f;               // initial standard deviation of the token embedding

  // Converts to and from one line of JSON with all fields. from_json() uses defaults for missing
  // fields. It throws for unknown names, names that occur twice, and values that make no valid
  // model.
  std::string to_json() const;
  static TextModelConfig from_json(std::string_view text);
};

// ---- weights under the names of PyTorch programs, for models of kind gpt, mamba and mamba2

// Renames parameters for PyTorch. gpt: the names of Hugging Face's GPT-2
// ("transformer.h.0.attn.c_attn.weight", [in, out]); a model without biases gets zero biases. mamba
// and mamba2: the names of state-spaces ("backbone.layers.0.mixer.in_proj.weight", [out, in]). The
// tied head is included under its own name, as in a state_dict.
NamedArrays to_torch_names(const TextModelConfig& config, const NamedArrays& parameters);
// Renames PyTorch weights to parameters. For gpt it accepts both layouts of GPT-2 weights: that of
// GPT-2's own layer and that of nn.Linear, which nanoGPT uses. It accepts names with or without
// "transformer.", and with any number of "_orig_mod." and "module." in front. It accepts nanoGPT
// models without biases. Masks are ignored. The head, if present, must equal the embedding. Missing
// and unknown weights and wrong shapes throw an error that names them.
NamedArrays from_torch_names(const TextModelConfig& config, const NamedArrays& weights);
// Infers the kind and the sizes of a model from its weights. Weights do not determine everything.
// `heads` becomes dim/64 as in GPT-2, or 1 if 64 does not divide dim. The activation becomes
// gelu_tanh for GPT-2's layout and gelu for that of nn.Linear. The context of Mamba and several
// groups in Mamba-2 cannot be inferred.
TextModelConfig config_of_torch_weights(const NamedArrays& weights);
// The same with the config.json of the weights, which sets heads, activation and epsilon. It may
// come from Hugging Face's transformers (GPT-2, Mamba, Mamba-2) or from state-spaces' mamba_ssm.
// Throws a UserError if it disagrees with the weights, or if it names something that is not
// supported, e.g. several groups in Mamba-2.
TextModelConfig config_of_torch_weights(const NamedArrays& weights, std::string_view config_json);

}  // namespace tensorgrad
