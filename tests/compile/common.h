// Small models and values for the tests of compile().
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::compile_tests {

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

// Pseudo-random values in [-1, 1), the same on every platform.
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

inline Floats floats_of(const Array& array) {
  return {array.floats().begin(), array.floats().end()};
}

// The bytes of named arrays, so that comparing them is exact.
inline std::string bytes_of(const NamedArrays& arrays) {
  std::string out;
  for (const auto& [name, array] : arrays) {
    const auto bytes =
        array.dtype() == f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints());
    out += name + array.shape().text();
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return out;
}

// The model of README.md, smaller.
struct Mlp {
  Linear l1{3, 8}, l2{8, 8}, l3{8, 2};
};

inline Tensor predict(const Mlp& m, const Tensor& x) { return m.l3(tanh(m.l2(tanh(m.l1(x))))); }
inline Tensor mlp_loss(const Mlp& m, const Inputs& in) {
  return mse_loss(capture("y", predict(m, in["x"])), in["y"]);
}
inline Tensor mlp_output(const Mlp& m, const Inputs& in) { return predict(m, in["x"]); }

// A model with everything that makes a step depend on more than parameters and inputs.
inline Tensor dropout_loss(const Mlp& m, const Inputs& in) {
  const Tensor h = capture("h", dropout(tanh(m.l1(in["x"])), 0.3f));
  return mse_loss(m.l3(dropout(tanh(m.l2(h)), 0.2f)), in["y"]);
}

inline std::vector<InputSpec> mlp_inputs(std::int64_t batch = 4) {
  return {{"x", {batch, 3}}, {"y", {batch, 2}}};
}

struct Batch {
  Floats x, y;
  explicit Batch(std::uint32_t seed, std::size_t batch = 4)
      : x(numbers(batch * 3, seed)), y(numbers(batch * 2, seed + 1000)) {}
  Feed feed() const { return {{"x", x}, {"y", y}}; }
};

inline Training<Mlp> compile_mlp(TrainingOptions options = {}) {
  if (options.inputs.empty()) options.inputs = mlp_inputs();
  options.threads = options.threads ? options.threads : 1;
  return compile(Mlp{}, options, mlp_loss);
}

}  // namespace tensorgrad::compile_tests
