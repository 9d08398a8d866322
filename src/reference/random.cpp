// The primitive random: a counter-based generator with the same values on every device.
#include "reference/evaluate.h"
#include "reference/threefry.h"

namespace tensorgrad::reference {

std::array<std::uint32_t, 2> threefry(std::array<std::uint32_t, 2> key,
                                      std::array<std::uint32_t, 2> counter) {
  constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const std::uint32_t keys[3] = {key[0], key[1], 0x1BD11BDAu ^ key[0] ^ key[1]};
  std::uint32_t x0 = counter[0] + keys[0];
  std::uint32_t x1 = counter[1] + keys[1];
  for (std::uint32_t round = 0; round < 20; ++round) {
    const int r = kRotations[round % 8];
    x0 += x1;
    x1 = (x1 << r) | (x1 >> (32 - r));
    x1 ^= x0;
    if (round % 4 == 3) {
      const std::uint32_t injection = round / 4 + 1;
      x0 += keys[injection % 3];
      x1 += keys[(injection + 1) % 3] + injection;
    }
  }
  return {x0, x1};
}

namespace {

std::uint32_t bits(double i32_value) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(i32_value));
}

// Uniform in [0, 1): the upper 24 bits of the first word, which a float represents exactly.
Value random(const ir::Node& node, Inputs in) {
  const Value &seed = *in[0], &step = *in[1], &index = *in[2];
  expect_dtype(node, seed, DType::i32);
  expect_same_types(node, seed, step);
  expect_same_types(node, seed, index);
  const auto site = static_cast<std::uint32_t>(node.as<ir::RandomAttrs>().site);
  Value out = make_value(DType::f32, seed.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    const auto words =
        threefry({bits(seed.data[i]), bits(step.data[i])}, {site, bits(index.data[i])});
    out.data[i] = (words[0] >> 8) / 16777216.0;
  }
  return out;
}

constexpr Evaluation kTable[] = {{"random", 3, random}};

}  // namespace

std::span<const Evaluation> random_table() { return kTable; }

}  // namespace tensorgrad::reference
