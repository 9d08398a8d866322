// Layers: initial values and forward passes.
#include <cmath>

#include "ops/builder.h"
#include "tensorgrad/nn.h"

namespace tensorgrad {

using ops::Call;

namespace {

Init fan_uniform(std::int64_t fan_in) {
  const float bound = 1 / std::sqrt(static_cast<float>(fan_in < 1 ? 1 : fan_in));
  return init::uniform(-bound, bound);
}

std::optional<Param> bias_of(bool wanted, std::int64_t size, std::int64_t fan_in) {
  if (!wanted) return std::nullopt;
  return Param({size}, fan_uniform(fan_in));
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool bias)
    : W({in, out}, fan_uniform(in)), b(bias_of(bias, out, in)) {}

Tensor Linear::operator()(Operand x) const {
  Call call("Linear", x.site());
  const Tensor y = matmul(x, W);
  return b ? y + *b : y;
}

LayerNorm::LayerNorm(std::int64_t size, float epsilon)
    : g({size}, init::ones()), b({size}, init::zeros()), eps(epsilon) {}

Tensor LayerNorm::operator()(Operand x) const { return layer_norm(x, g, b, eps); }

RMSNorm::RMSNorm(std::int64_t size, float epsilon) : g({size}, init::ones()), eps(epsilon) {}

Tensor RMSNorm::operator()(Operand x) const { return rms_norm(x, g, eps); }

Embedding::Embedding(std::int64_t count, std::int64_t size) : W({count, size}, init::normal(0.02f)) {}

Tensor Embedding::operator()(Operand ids) const {
  Call call("Embedding", ids.site());
  return embedding(W, ids);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair kernel, Conv2dOptions opts, bool bias)
    : W({out, in / (opts.groups < 1 ? 1 : opts.groups), kernel.h, kernel.w}, init::kaiming_uniform()),
      b(bias_of(bias, out, W.shape()[1] * kernel.h * kernel.w)),
      options(opts) {}

Tensor Conv2d::operator()(Operand x) const {
  Call call("Conv2d", x.site());
  const Tensor y = conv2d(x, W, options);
  return b ? y + reshape(*b, {-1, 1, 1}) : y;
}

// As PyTorch starts a convolution whose groups are single channels: K inputs each.
Conv1d::Conv1d(std::int64_t channels, std::int64_t kernel)
    : W({channels, kernel}, fan_uniform(kernel)), b({channels}, fan_uniform(kernel)) {}

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
  for (std::int64_t k = 1; k < K; ++k) y = y + narrow(joined, 1, k, T) * squeeze(narrow(W, 1, k, 1), 1);
  return y;
}

Tensor activate(Operand x, Activation activation) {
  switch (activation) {
    case Activation::relu: return relu(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
  }
  return relu(x);
}

}  // namespace tensorgrad
