// Layers: initial values and forward passes.
#include <cmath>

#include "nn/sizes.h"
#include "ops/builder.h"
#include "tensorgrad/nn.h"

namespace tensorgrad {

using nn::checked;
using ops::Call;

namespace {

Init fan_uniform(std::int64_t fan_in) {
  const float bound = 1 / std::sqrt(static_cast<float>(fan_in < 1 ? 1 : fan_in));
  return init::uniform(-bound, bound);
}

std::optional<Param> bias_of(bool wanted, std::int64_t size, const Init& own,
                             const ParamOptions& options) {
  if (!wanted) return std::nullopt;
  return Param({size}, own, options);
}

std::int64_t inputs_per_group(std::int64_t in, std::int64_t out, Pair kernel,
                              const Conv2dOptions& conv, Site site) {
  nn::check_sizes("Conv2d",
                  {{"in", in}, {"out", out}, {"kernel.h", kernel.h}, {"kernel.w", kernel.w}}, site);
  nn::check_sizes("Conv2d", {{"groups", conv.groups}}, site);
  if (in % conv.groups != 0 || out % conv.groups != 0)
    nn::refuse("Conv2d",
               fmt::format("groups must divide in and out: in {}, out {}, groups {}", in, out,
                           conv.groups),
               site);
  return in / conv.groups;
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options, Site site)
    : W({checked("Linear", {{"in", in}, {"out", out}}, site), out}, fan_uniform(in), options.W),
      b(bias_of(options.bias, out, fan_uniform(in), options.b)) {}

Tensor Linear::operator()(Operand x) const {
  Call call("Linear", x.site());
  const Tensor y = matmul(x, W);
  return b ? y + *b : y;
}

LayerNorm::LayerNorm(std::int64_t size, const LayerNormOptions& options, Site site)
    : g({checked("LayerNorm", {{"size", size}}, site)}, init::ones(), options.g),
      b(bias_of(options.bias, size, init::zeros(), options.b)),
      eps(options.eps) {}

Tensor LayerNorm::operator()(Operand x) const {
  return b ? layer_norm(x, g, *b, eps) : layer_norm(x, g, eps);
}

RMSNorm::RMSNorm(std::int64_t size, const RMSNormOptions& options, Site site)
    : g({checked("RMSNorm", {{"size", size}}, site)}, init::ones(), options.g), eps(options.eps) {}

Tensor RMSNorm::operator()(Operand x) const { return rms_norm(x, g, eps); }

Norm::Norm(std::int64_t size, const NormOptions& options, Site site)
    : g({checked("Norm", {{"size", size}}, site)}, init::ones(), options.g),
      b(bias_of(options.bias && options.kind == NormKind::layer, size, init::zeros(), options.b)),
      kind(options.kind),
      eps(options.eps) {}

Tensor Norm::operator()(Operand x) const {
  if (kind == NormKind::rms) return rms_norm(x, g, eps);
  return b ? layer_norm(x, g, *b, eps) : layer_norm(x, g, eps);
}

Embedding::Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options,
                     Site site)
    : W({checked("Embedding", {{"count", count}, {"size", size}}, site), size}, init::normal(0.02f),
        options.W) {}

Tensor Embedding::operator()(Operand ids) const {
  Call call("Embedding", ids.site());
  return embedding(W, ids);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dLayerOptions& opts,
               Site site)
    : W({out, inputs_per_group(in, out, kernel, opts.conv, site), kernel.h, kernel.w},
        init::kaiming_uniform(), opts.W),
      b(bias_of(opts.bias, out, fan_uniform(W.shape()[1] * kernel.h * kernel.w), opts.b)),
      options(opts.conv) {}

Tensor Conv2d::operator()(Operand x) const {
  Call call("Conv2d", x.site());
  const Tensor y = conv2d(x, W, options);
  return b ? y + reshape(*b, {-1, 1, 1}) : y;
}

// Initialised as PyTorch initialises a depthwise convolution: the fan-in of a channel is K.
Conv1d::Conv1d(std::int64_t channels, std::int64_t kernel, const Conv1dOptions& options, Site site)
    : W({checked("Conv1d", {{"channels", channels}, {"kernel", kernel}}, site), kernel},
        fan_uniform(kernel), options.W),
      b({channels}, fan_uniform(kernel), options.b) {}

Tensor Conv1d::operator()(Operand x) const {
  Call call("Conv1d", x.site());
  return conv1d_causal_depthwise(x, W, b);
}

Tensor Conv1d::step(Operand x, Tensor& window) const {
  Call call("Conv1d", x.site());
  const std::int64_t K = kernel();
  const Tensor joined = concat({window, x}, 1);  // [B, K-1+T, C]
  const std::int64_t T = joined.size(1) - (K - 1);
  window = narrow(joined, 1, T, K - 1);
  Tensor y = narrow(joined, 1, 0, T) * squeeze(narrow(W, 1, 0, 1), 1) + b;
  for (std::int64_t k = 1; k < K; ++k)
    y = y + narrow(joined, 1, k, T) * squeeze(narrow(W, 1, k, 1), 1);
  return y;
}

Tensor activate(Operand x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::tanh:
      return tanh(x);
  }
  return relu(x);
}

}  // namespace tensorgrad
