// A language model whose layers are of several kinds, in an order that is given in words: "mamba mamba attention".
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
  // One word per layer: mamba, mamba2 or attention. Attention means a whole transformer block, with rotary positions.
  std::string layers = "mamba mamba attention";
  MambaConfig mamba = {};    // of these two, vocab, layers, dim and eps are those of the model
  Mamba2Config mamba2 = {};
  int heads = 4, groups = 0;  // of attention; groups of heads share keys and values, 0: none do
  Activation activation = Activation::gelu;
  float rope_base = 10000;
  float eps = 1e-5f;
};

// One of them is there.
struct LanguageModelLayer {
  std::optional<MambaBlock> mamba;
  std::optional<Mamba2Block> mamba2;
  std::optional<TransformerBlock> attention;
};

struct LanguageModel {
  Param tok_emb;
  std::vector<LanguageModelLayer> layers;
  RMSNorm norm;

  explicit LanguageModel(const LanguageModelConfig& config);
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // Generation (tensorgrad/state.h). Attention remembers up to `capacity` positions; a run past its end is an error: an
  // id out of range. Without attention the number is not looked at.
  StateSpec state(std::int64_t batch, std::int64_t capacity) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

}  // namespace tensorgrad
