// Layers as plain structs: parameters are fields, the forward pass is operator(). A model is any
// struct of layers.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/state.h"

namespace tensorgrad {

// A layer with invalid sizes throws a UserError that names the line of the call. Options name what
// they change. `W`, `b` and `g` set the initial values and the weight decay of that parameter:
//   tg::Linear head{64, 10, {.bias = false, .W = {.init = tg::init::zeros(), .decay = false}}};
// Empty braces are the default options. The short forms are templates, which braces do not match:
//   tg::Linear q{64, 64, false};   // no bias

struct LinearOptions {
  bool bias = true;
  ParamOptions W = {}, b = {};
};

// Computes x W + b over the last axis; W is [in, out]. W and b start uniform in +-1/sqrt(in), as in
// PyTorch.
struct Linear {
  Param W;
  std::optional<Param> b;

  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {},
         Site site = Site::here());
  template <std::same_as<bool> B>
  Linear(std::int64_t in, std::int64_t out, B bias, Site site = Site::here())
      : Linear(in, out, LinearOptions{.bias = bias}, site) {}
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(W, b)
};

struct LayerNormOptions {
  float eps = 1e-5f;
  bool bias = true;
  ParamOptions g = {}, b = {};
};

// Layer norm over the last axis. The gain starts at 1, the bias at 0.
struct LayerNorm {
  Param g;
  std::optional<Param> b;
  float eps;

  explicit LayerNorm(std::int64_t size, const LayerNormOptions& options = {},
                     Site site = Site::here());
  template <std::floating_point E>
  LayerNorm(std::int64_t size, E epsilon, Site site = Site::here())
      : LayerNorm(size, LayerNormOptions{.eps = static_cast<float>(epsilon)}, site) {}
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(g, b)
};

struct RMSNormOptions {
  float eps = 1e-5f;
  ParamOptions g = {};
};

// RMS norm over the last axis. The gain starts at 1.
struct RMSNorm {
  Param g;
  float eps;

  explicit RMSNorm(std::int64_t size, const RMSNormOptions& options = {}, Site site = Site::here());
  template <std::floating_point E>
  RMSNorm(std::int64_t size, E epsilon, Site site = Site::here())
      : RMSNorm(size, RMSNormOptions{.eps = static_cast<float>(epsilon)}, site) {}
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(g)
};

enum class NormKind : std::uint8_t { layer, rms };

struct NormOptions {
  NormKind kind = NormKind::layer;
  float eps = 1e-5f;
  bool bias = true;  // layer norm only; an RMS norm has no bias
  ParamOptions g = {}, b = {};
};

// A layer norm or an RMS norm, chosen at run time.
struct Norm {
  Param g;
  std::optional<Param> b;
  NormKind kind;
  float eps;

  explicit Norm(std::int64_t size, const NormOptions& options = {}, Site site = Site::here());
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(g, b)
};

struct EmbeddingOptions {
  ParamOptions W = {};
};

// Looks up rows of a table [count, size] by id. The rows start normal with standard deviation 0.02.
struct Embedding {
  Param W;

  Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options = {},
            Site site = Site::here());
  Tensor operator()(Operand ids) const;
  TENSORGRAD_FIELDS(W)
};

struct Conv2dLayerOptions {
  Conv2dOptions conv = {};  // stride, padding, dilation, groups
  bool bias = true;
  ParamOptions W = {}, b = {};
};

// A convolution over images [B, C, H, W]; W is [out, in/groups, kH, kW]. Starts as in PyTorch.
struct Conv2d {
  Param W;
  std::optional<Param> b;
  Conv2dOptions options;

  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dLayerOptions& options = {},
         Site site = Site::here());
  // `{.padding = 1}` matches only this constructor. `{}` matches both, and the compiler takes the
  // one that is not a template.
  template <class = void>
  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& conv,
         bool bias = true, Site site = Site::here())
      : Conv2d(in, out, kernel, Conv2dLayerOptions{.conv = conv, .bias = bias}, site) {}
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(W, b)
};

struct Conv1dOptions {
  ParamOptions W = {}, b = {};
};

// A causal depthwise convolution over sequences [B, T, C]; W is [C, K]. Its last tap is the current
// sample.
struct Conv1d {
  Param W, b;

  Conv1d(std::int64_t channels, std::int64_t kernel, const Conv1dOptions& options = {},
         Site site = Site::here());
  Tensor operator()(Operand x) const;
  // Computes the samples that follow a window of the last K - 1 samples, [B, K-1, C], and replaces
  // the window by the next one.
  Tensor step(Operand x, Tensor& window) const;
  std::int64_t kernel() const { return W.shape()[1]; }
  TENSORGRAD_FIELDS(W, b)
};

// The key-value cache: keys and values of the positions seen so far, [B, G, capacity, D/H] each.
struct KeyValues {
  Tensor keys, values;
};

struct SelfAttentionOptions {
  int groups = 0;  // key and value heads; 0: as many as `heads`
  std::optional<float> rope_base =
      {};                       // with a base (e.g. 10000), uses rotary positions, see rope()
  bool biases = false;          // biases in all four projections, as in GPT-2; start at 0
  ParamOptions W = {}, b = {};  // of all four projections
};

// Causal self-attention with separate projections q, k, v, o. The number of heads must divide the
// width. Rotary positions need an even head size.
struct SelfAttention {
  Linear q, k, v, o;
  int heads, groups;
  std::optional<float> rope_base;

  SelfAttention(std::int64_t dim, int heads, const SelfAttentionOptions& options = {},
                Site site = Site::here());
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  // Computes the positions that follow those in the cache, and updates the cache. `position` is an
  // i32 scalar: the number of positions before. A run beyond the capacity throws.
  Tensor step(Operand x, KeyValues& cache, const Tensor& position) const;
  StateSpec state(std::int64_t batch, std::int64_t capacity, Site site = Site::here()) const;
  TENSORGRAD_FIELDS(q, k, v, o)
};

enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, silu, tanh };
// Applies the activation to every element.
Tensor activate(Operand x, Activation activation);

struct FeedForwardOptions {
  Activation activation = Activation::gelu;
  LinearOptions up = {}, down = {};
};

// Two linear layers with an activation between them.
struct FeedForward {
  Linear up, down;
  Activation activation;

  FeedForward(std::int64_t dim, std::int64_t hidden, const FeedForwardOptions& options = {},
              Site site = Site::here());
  template <std::same_as<Activation> A>
  FeedForward(std::int64_t dim, std::int64_t hidden, A act, Site site = Site::here())
      : FeedForward(dim, hidden, FeedForwardOptions{.activation = act}, site) {}
  Tensor operator()(Operand x) const;
  TENSORGRAD_FIELDS(up, down)
};

struct TransformerBlockOptions {
  std::int64_t hidden = 0;  // hidden width of the feed-forward layer; 0: four times the width
  NormOptions norm = {};
  SelfAttentionOptions attention = {};
  FeedForwardOptions mlp = {};
};

// A transformer block: x + attention(norm(x)), then x + mlp(norm(x)).
struct TransformerBlock {
  Norm ln1;
  SelfAttention attn;
  Norm ln2;
  FeedForward mlp;

  TransformerBlock(std::int64_t dim, int heads, const TransformerBlockOptions& options = {},
                   Site site = Site::here());
  Tensor operator()(Operand x) const;
  Tensor step(Operand x, KeyValues& cache, const Tensor& position) const;
  // Multiplies the initial values of the two projections that add to the residual stream. Throws if
  // they are logarithms (init::log_of_uniform, init::step_size).
  void scale_residual_start(float factor);
  TENSORGRAD_FIELDS(ln1, attn, ln2, mlp)
};

struct TransformerConfig {
  std::int64_t vocab = 256, dim = 128, context = 128;
  int layers = 4, heads = 4;
  Activation activation = Activation::gelu;
  float eps = 1e-5f;
  int groups = 0;                       // key and value heads; 0: as many as `heads`
  std::optional<float> rope_base = {};  // rotary positions instead of learned ones
  bool biases = false;                  // biases in the attention projections
  NormKind norm = NormKind::layer;
  float embedding_std = 0.05f;  // initial standard deviation of the token embedding
};

// A decoder-only language model with learned or rotary positions. Its output head is tied to the
// embedding.
struct Transformer {
  Param tok_emb;
  std::optional<Param> pos_emb;  // learned positions; empty with rotary positions
  std::vector<TransformerBlock> layers;
  Norm lnf;
  std::int64_t context;

  explicit Transformer(const TransformerConfig& config, Site site = Site::here());
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // For generation, see tensorgrad/state.h. Each layer has a key-value cache of `capacity`
  // positions, at most the context (0: the context). A run beyond them throws: an id is out of
  // range.
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0, Site site = Site::here()) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, pos_emb, layers, lnf)
};

// Returns the mean cross-entropy where mask is 1: sum(ce * mask) / sum(mask).
Tensor masked_cross_entropy(Operand logits, Operand targets, Operand mask);

}  // namespace tensorgrad
