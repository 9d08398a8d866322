// A language model whose layers may be of several kinds.
#include "tensorgrad/language_model.h"

#include <cmath>

#include "nn/memory.h"
#include "nn/sizes.h"
#include "ops/builder.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad {

using nn::Memory;
using ops::Call;

namespace {

MambaConfig own_mamba(const LanguageModelConfig& config) {
  MambaConfig own = config.mamba;
  own.dim = config.dim, own.eps = config.eps;
  return own;
}

Mamba2Config own_mamba2(const LanguageModelConfig& config) {
  Mamba2Config own = config.mamba2;
  own.dim = config.dim, own.eps = config.eps;
  return own;
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config, Site site)
    : tok_emb({nn::checked("LanguageModel", {{"vocab", config.vocab}, {"dim", config.dim}}, site),
               config.dim},
              init::normal(config.embedding_std)),
      norm(config.dim, config.eps, site) {
  const std::vector<std::string> words = split_words(config.layers);
  if (words.empty())
    nn::refuse("LanguageModel", "layers must name at least one layer: it is empty", site);
  int added = 0;  // number of results added to the residual stream
  for (const std::string& word : words) added += word == "attention" ? 2 : 1;
  const float scale = 1 / std::sqrt(static_cast<float>(added));
  for (const std::string& word : words) {
    LanguageModelLayer layer;
    if (word == "mamba") {
      layer.mamba.emplace(own_mamba(config), MambaBlockOptions{}, site).scale_residual_start(scale);
    } else if (word == "mamba2") {
      layer.mamba2.emplace(own_mamba2(config), Mamba2BlockOptions{}, site)
          .scale_residual_start(scale);
    } else if (word == "attention") {
      const TransformerBlockOptions options{
          .norm = {.kind = config.norm, .eps = config.eps},
          .attention = {.groups = config.groups, .rope_base = config.rope_base},
          .mlp = {.activation = config.activation}};
      layer.attention.emplace(config.dim, config.heads, options, site);
      layer.attention->scale_residual_start(scale);
    } else {
      throw UserError(user_message("LanguageModel",
                                   fmt::format("unknown layer '{}' in \"{}\"", word, config.layers),
                                   "mamba, mamba2 or attention", "", site.file, site.line));
    }
    layers.push_back(std::move(layer));
  }
}

Tensor LanguageModel::operator()(Operand tokens) const {
  Call call("LanguageModel", tokens.site());
  Tensor x = embedding(tok_emb, nn::token_ids(call, tokens));  // [B, T, D]
  for (const LanguageModelLayer& layer : layers)
    x = layer.mamba ? (*layer.mamba)(x) : layer.mamba2 ? (*layer.mamba2)(x) : (*layer.attention)(x);
  return matmul(norm(x), swap_axes(tok_emb, 0, 1));  // [B, T, V]
}

StateSpec LanguageModel::state(std::int64_t batch, std::int64_t capacity, Site site) const {
  StateSpec state;
  bool attends = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LanguageModelLayer& layer = layers[i];
    attends = attends || layer.attention;
    nn::add_layer(state, i,
                  layer.mamba    ? layer.mamba->state(batch, site)
                  : layer.mamba2 ? layer.mamba2->state(batch, site)
                                 : layer.attention->attn.state(batch, capacity, site));
  }
  if (attends) state.push_back({nn::kPosition, {}, i32});
  return state;
}

Step LanguageModel::step(Operand tokens, const Inputs& state) const {
  Call call("LanguageModel", tokens.site());
  Memory memory(state, tokens.site());
  const Tensor ids = nn::token_ids(call, tokens);
  Tensor x = embedding(tok_emb, ids), position;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LanguageModelLayer& layer = layers[i];
    if (layer.attention) {
      if (!position.valid()) position = memory.advance(ids.size(1), memory.cache_size(i));
      x = memory.with_cache(
          i, [&](KeyValues& cache) { return layer.attention->step(x, cache, position); });
    } else {
      x = memory.with_state(i, [&](MambaState& own) {
        return layer.mamba ? layer.mamba->step(x, own) : layer.mamba2->step(x, own);
      });
    }
  }
  return memory.finish(matmul(norm(x), swap_axes(tok_emb, 0, 1)));
}

}  // namespace tensorgrad
