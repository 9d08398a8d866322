// Layers as plain structs: parameters as fields, the forward pass as operator(). A model is any
// struct of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"

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

// Causal self-attention with separate projections q, k, v, o without biases.
struct SelfAttention {
  Linear q, k, v, o;
  int heads, groups;

  // `groups` heads for keys and values; 0: as many as `heads`.
  SelfAttention(std::int64_t dim, int heads, int groups = 0);
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
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

  TransformerBlock(std::int64_t dim, int heads, Activation activation, float eps = 1e-5f);
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(ln1, attn, ln2, mlp)
};

struct TransformerConfig {
  std::int64_t vocab = 256, dim = 128, context = 128;
  int layers = 4, heads = 4;
  Activation activation = Activation::gelu;
  float eps = 1e-5f;
};

// A decoder-only language model with learned positions and an output head tied to the embedding.
struct Transformer {
  Param tok_emb, pos_emb;
  std::vector<TransformerBlock> layers;
  LayerNorm lnf;

  explicit Transformer(const TransformerConfig& config);
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  TENSORGRAD_FIELDS(tok_emb, pos_emb, layers, lnf)
};

// Mean of the cross-entropy where mask is 1: sum(ce * mask) / sum(mask).
Tensor masked_cross_entropy(Operand logits, Operand targets, Operand mask);

}  // namespace tensorgrad
