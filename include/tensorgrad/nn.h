// Layers as plain structs: parameters as fields, the forward pass as operator(). A model is any
// struct of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/state.h"

namespace tensorgrad {

// x W + b over the last axis; W is [in, out].
struct Linear {
  Param W;
  std::optional<Param> b;

  Linear(std::int64_t in, std::int64_t out, bool bias = true);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(W, b)
};

struct LayerNorm {
  Param g, b;
  float eps;

  explicit LayerNorm(std::int64_t size, float eps = 1e-5f);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(g, b)
};

struct RMSNorm {
  Param g;
  float eps;

  explicit RMSNorm(std::int64_t size, float eps = 1e-5f);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(g)
};

// Rows of a table [count, size] by id.
struct Embedding {
  Param W;

  Embedding(std::int64_t count, std::int64_t size);
  Tensor operator()(Operand ids) const;
  TENSORGRAD_FIELDS(W)
};

// Images [B, C, H, W]; W is [out, in/groups, kH, kW].
struct Conv2d {
  Param W;
  std::optional<Param> b;
  Conv2dOptions options;

  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, Conv2dOptions options = {}, bool bias = true);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(W, b)
};

// Sequences [B, T, C], each channel filtered by itself and by what came before; W is [C, K], its last tap the current
// sample.
struct Conv1d {
  Param W, b;

  Conv1d(std::int64_t channels, std::int64_t kernel);
  Tensor operator()(Operand x) const;
  // The same for samples that follow a window of the last K - 1 ones, [B, K-1, C], which becomes the one after them.
  Tensor step(Operand x, Tensor& window) const;
  std::int64_t kernel() const { return W.shape()[1]; }
  TENSORGRAD_FIELDS(W, b)
};

// Keys and values of the positions seen so far, [B, G, capacity, D/H] each.
struct KeyValues {
  Tensor keys, values;
};

// Causal self-attention with separate projections q, k, v, o.
struct SelfAttention {
  Linear q, k, v, o;
  int heads, groups;
  std::optional<float> rope_base;

  // `groups` heads for keys and values; 0: as many as `heads`. With a base (10000, say) queries and keys are turned by
  // their positions (rope). `biases`: of all four projections, as GPT-2 has them; they start at 0.
  SelfAttention(std::int64_t dim, int heads, int groups = 0, std::optional<float> rope_base = {}, bool biases = false);
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  // The same for positions that follow those in the cache, which becomes the one after them. `position` is an i32
  // scalar: how many positions came before. Past the capacity is an error while running.
  Tensor step(Operand x, KeyValues& cache, const Tensor& position) const;
  StateSpec state(std::int64_t batch, std::int64_t capacity) const;
  TENSORGRAD_FIELDS(q, k, v, o)
};

enum class Activation : std::uint8_t { relu, gelu, gelu_tanh, silu, tanh };
Tensor activate(Operand x, Activation activation);

struct FeedForward {
  Linear up, down;
  Activation activation;

  FeedForward(std::int64_t dim, std::int64_t hidden, Activation activation);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(up, down)
};

// x + attention(norm(x)), then x + mlp(norm(x)).
struct TransformerBlock {
  LayerNorm ln1;
  SelfAttention attn;
  LayerNorm ln2;
  FeedForward mlp;

  TransformerBlock(std::int64_t dim, int heads, Activation activation, float eps = 1e-5f, int groups = 0,
                   std::optional<float> rope_base = {}, bool biases = false);
  Tensor operator()(Operand x) const;
  Tensor step(Operand x, KeyValues& cache, const Tensor& position) const;
  TENSORGRAD_FIELDS(ln1, attn, ln2, mlp)
};

struct TransformerConfig {
  std::int64_t vocab = 256, dim = 128, context = 128;
  int layers = 4, heads = 4;
  Activation activation = Activation::gelu;
  float eps = 1e-5f;
  int groups = 0;                        // heads for keys and values; 0: as many as `heads`
  std::optional<float> rope_base = {};   // rotary positions instead of learned ones
  bool biases = false;                   // of attention's projections
};

// A decoder-only language model with learned or rotary positions and an output head tied to the embedding.
struct Transformer {
  Param tok_emb;
  std::optional<Param> pos_emb;  // learned positions
  std::vector<TransformerBlock> layers;
  LayerNorm lnf;
  std::int64_t context;

  explicit Transformer(const TransformerConfig& config);
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // Generation (tensorgrad/state.h): a cache of keys and values per layer, for up to `capacity` positions (0: the
  // context). A run past its end is an error: an id out of range.
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, pos_emb, layers, lnf)
};

// Mean of the cross-entropy where mask is 1: sum(ce * mask) / sum(mask).
Tensor masked_cross_entropy(Operand logits, Operand targets, Operand mask);

}  // namespace tensorgrad
