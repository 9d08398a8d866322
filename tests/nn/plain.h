// Layers as plain double-precision loops over row-major vectors: the reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::nn_tests {

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

inline Floats numbers(std::size_t count, std::uint32_t seed = 1) {
  Floats out;
  std::uint32_t x = seed * 2654435761u + 12345u;
  for (std::size_t i = 0; i < count; ++i) {
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    out.push_back(static_cast<float>(x >> 8) / 8388608.0f - 1.0f);
  }
  return out;
}

inline Ints tokens(std::size_t count, int vocab, std::uint32_t seed = 1) {
  Ints out;
  for (const float v : numbers(count, seed))
    out.push_back(static_cast<int>((v + 1) / 2 * static_cast<float>(vocab)));
  return out;
}

inline Doubles doubles(std::span<const float> v) { return {v.begin(), v.end()}; }

// Known parameter values by name: small and not zero.
struct Weights {
  NamedArrays arrays;
  Doubles at(const std::string& name) const { return doubles(arrays.at(name).floats()); }
  std::size_t size(const std::string& name, int axis) const {
    return static_cast<std::size_t>(arrays.at(name).shape()[axis]);
  }
  bool has(const std::string& name) const { return arrays.count(name) > 0; }
};

// Fills all parameters with known values; initial biases and gains would hide mistakes.
inline Weights shuffle(ProgramHandle& program) {
  Weights weights{program.download()};
  std::uint32_t seed = 100;
  for (auto& [name, array] : weights.arrays) {
    const Floats fresh = numbers(static_cast<std::size_t>(array.count()), seed++);
    for (std::size_t i = 0; i < fresh.size(); ++i)
      array.floats()[i] = 0.5f * fresh[i] + (array.shape().rank() == 1 ? 0.8f : 0.0f);
  }
  program.upload(weights.arrays);
  return weights;
}

inline void expect_near(std::span<const float> got, const Doubles& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1;
  for (const double v : want) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * largest) << "element " << i;
}

// rows [.., in] W [in, out] + b
inline Doubles linear(const Weights& w, const std::string& name, const Doubles& x) {
  const Doubles weight = w.at(name + ".W");
  const std::size_t in = w.size(name + ".W", 0), out = w.size(name + ".W", 1), rows = x.size() / in;
  Doubles y(rows * out);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = w.has(name + ".b") ? w.at(name + ".b")[o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += x[r * in + i] * weight[i * out + o];
      y[r * out + o] = sum;
    }
  return y;
}

inline Doubles layer_norm(const Weights& w, const std::string& name, const Doubles& x, double eps) {
  const Doubles g = w.at(name + ".g"), b = w.at(name + ".b");
  const std::size_t n = g.size();
  Doubles y(x.size());
  for (std::size_t r = 0; r < x.size() / n; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[r * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      variance += std::pow(x[r * n + i] - mean, 2) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      y[r * n + i] = (x[r * n + i] - mean) / std::sqrt(variance + eps) * g[i] + b[i];
  }
  return y;
}

// Rotates the pairs (i, i + size/2) of each head of x [B, T, heads * size] by t * base^(-2i/size).
inline void turn(Doubles& x, std::size_t T, std::size_t heads, std::size_t size, double base) {
  for (std::size_t row = 0; row < x.size() / (heads * size); ++row)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < size / 2; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(size);
        const double angle = static_cast<double>(row % T) * std::pow(base, exponent);
        double &a = x[(row * heads + h) * size + i],
               &b = x[(row * heads + h) * size + i + size / 2];
        const double first = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = first;
      }
}

// Causal self-attention over x [B, T, D]; head h of the queries reads group h / (H/G). With a base:
// rotary positions.
inline Doubles self_attention(const Weights& w, const std::string& name, const Doubles& x,
                              std::size_t B, std::size_t T, std::size_t heads, std::size_t groups,
                              double rope_base = 0) {
  Doubles q = linear(w, name + ".q", x), k = linear(w, name + ".k", x);
  const Doubles v = linear(w, name + ".v", x);
  const std::size_t D = w.size(name + ".q.W", 1), size = D / heads, kv = groups * size;
  if (rope_base > 0) turn(q, T, heads, size, rope_base), turn(k, T, groups, size, rope_base);
  Doubles mixed(B * T * D);
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t group = h / (heads / groups);
      for (std::size_t t = 0; t < T; ++t) {
        Doubles scores(t + 1);
        double top = -1e300, total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t d = 0; d < size; ++d)
            scores[s] += q[(b * T + t) * D + h * size + d] * k[(b * T + s) * kv + group * size + d];
          scores[s] /= std::sqrt(static_cast<double>(size));
          top = std::max(top, scores[s]);
        }
        for (double& s : scores) total += s = std::exp(s - top);
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t d = 0; d < size; ++d)
            mixed[(b * T + t) * D + h * size + d] +=
                scores[s] / total * v[(b * T + s) * kv + group * size + d];
      }
    }
  return linear(w, name + ".o", mixed);
}

inline double activate(double x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return 0;
}

inline Doubles feed_forward(const Weights& w, const std::string& name, const Doubles& x,
                            Activation activation) {
  Doubles h = linear(w, name + ".up", x);
  for (double& v : h) v = activate(v, activation);
  return linear(w, name + ".down", h);
}

inline Doubles block(const Weights& w, const std::string& name, const Doubles& x, std::size_t B,
                     std::size_t T, std::size_t heads, Activation activation, double eps) {
  Doubles h =
      self_attention(w, name + ".attn", layer_norm(w, name + ".ln1", x, eps), B, T, heads, heads);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] += x[i];
  Doubles y = feed_forward(w, name + ".mlp", layer_norm(w, name + ".ln2", h, eps), activation);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += h[i];
  return y;
}

// x [B, C, H, W], w [O, C/groups, kH, kW]
inline Doubles conv2d(const Doubles& x, const Shape& xs, const Doubles& w, const Shape& ws,
                      const Conv2dOptions& o, const Doubles& bias) {
  const std::int64_t B = xs[0], C = xs[1], H = xs[2], W = xs[3], O = ws[0], c = ws[1], kH = ws[2],
                     kW = ws[3];
  const std::int64_t oh = (H + 2 * o.padding.h - o.dilation.h * (kH - 1) - 1) / o.stride.h + 1;
  const std::int64_t ow = (W + 2 * o.padding.w - o.dilation.w * (kW - 1) - 1) / o.stride.w + 1;
  Doubles y;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t out = 0; out < O; ++out)
      for (std::int64_t i = 0; i < oh; ++i)
        for (std::int64_t j = 0; j < ow; ++j) {
          double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(out)];
          const std::int64_t first = out / (O / o.groups) * c;
          for (std::int64_t k = 0; k < c; ++k)
            for (std::int64_t p = 0; p < kH; ++p)
              for (std::int64_t q = 0; q < kW; ++q) {
                const std::int64_t row = i * o.stride.h - o.padding.h + p * o.dilation.h,
                                   column = j * o.stride.w - o.padding.w + q * o.dilation.w;
                if (row < 0 || row >= H || column < 0 || column >= W) continue;
                sum += x[static_cast<std::size_t>(((b * C + first + k) * H + row) * W + column)] *
                       w[static_cast<std::size_t>(((out * c + k) * kH + p) * kW + q)];
              }
          y.push_back(sum);
        }
  return y;
}

// Wraps a layer as a model with one input.
template <class L>
Forward<L> forward(const L& layer, const Shape& shape, DType dtype = f32) {
  return compile_forward(layer, {.inputs = {{"x", shape, dtype}}, .device = "cpu", .threads = 1},
                         [](const L& m, const Inputs& in) { return m(in["x"]); });
}

}  // namespace tensorgrad::nn_tests
