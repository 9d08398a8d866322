// A language model with layers of several kinds. A text gives their order: "mamba mamba attention".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/mamba.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/state.h"

namespace tensorgrad {

struct LanguageModelConfig {
  std::int64_t vocab = 256, dim = 128;
  // One word per layer: mamba, mamba2 or attention. Attention is a complete transformer block with
  // rotary positions.
  std::string layers = "mamba mamba attention";
  MambaConfig mamba =
      {};  // in both, vocab, layers, dim, eps and embedding_std are replaced by those of the model
  Mamba2Config mamba2 = {};
  int heads = 4, groups = 0;  // attention heads, and heads for keys and values; 0: `heads`
  Activation activation = Activation::gelu;
  float rope_base = 10000;
  float eps = 1e-5f;
  NormKind norm = NormKind::layer;  // of the attention blocks
  float embedding_std = 0.05f;      // initial standard deviation of the token embedding
};

// A layer. Exactly one of the fields has a value.
struct LanguageModelLayer {
  std::optional<MambaBlock> mamba;
  std::optional<Mamba2Block> mamba2;
  std::optional<TransformerBlock> attention;
};

// The model. Its output head is tied to the embedding.
struct LanguageModel {
  Param tok_emb;
  std::vector<LanguageModelLayer> layers;
  RMSNorm norm;

  explicit LanguageModel(const LanguageModelConfig& config, Site site = Site::here());
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // For generation, see tensorgrad/state.h. Attention stores up to `capacity` positions. A run
  // beyond them throws: an id is out of range. Without attention, `capacity` is ignored.
  StateSpec state(std::int64_t batch, std::int64_t capacity, Site site = Site::here()) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

}  // namespace tensorgrad
