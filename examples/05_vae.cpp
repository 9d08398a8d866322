// A variational autoencoder of 8x8 pictures of bars: random numbers inside the graph, several
// outputs, and an attached decoder that draws new pictures.
#include <tensorgrad/tensorgrad.h>

#include <cstdio>
#include <random>
#include <vector>

namespace tg = tensorgrad;

constexpr int kBatch = 64, kPixels = 64, kLatent = 4;

struct Encoder {
  tg::Linear hidden{kPixels, 64}, mean{64, kLatent}, log_var{64, kLatent};
};

struct Decoder {
  tg::Linear hidden{kLatent, 64}, out{64, kPixels};
};

struct Vae {
  Encoder encoder;
  Decoder decoder;
};

tg::Tensor decode(const Decoder& m, tg::Tensor z) { return m.out(silu(m.hidden(z))); }  // logits

tg::Outputs loss(const Vae& m, const tg::Inputs& in) {
  const tg::Tensor x = in["x"];
  const tg::Tensor h = silu(m.encoder.hidden(x));
  const tg::Tensor mu = m.encoder.mean(h), log_var = m.encoder.log_var(h);
  const tg::Tensor z = mu + exp(log_var * 0.5f) * tg::randn(mu.shape());
  const tg::Tensor pixels = sum(bce_with_logits(decode(m.decoder, z), x, tg::Reduction::none), 1);
  const tg::Tensor kl = sum(exp(log_var) + square(mu) - 1.0f - log_var, 1) * 0.5f;
  return {{"loss", mean(pixels + kl)}, {"pixels", mean(pixels)}, {"kl", mean(kl)}};
}

// One horizontal or vertical bar.
std::vector<float> draw(std::mt19937& random) {
  std::vector<float> out(kBatch * kPixels, 0.0f);
  for (int i = 0; i < kBatch; ++i) {
    const int line = static_cast<int>(random() % 8);
    const bool vertical = random() % 2;
    for (int j = 0; j < 8; ++j)
      out[static_cast<std::size_t>(i * kPixels + (vertical ? j * 8 + line : line * 8 + j))] = 1.0f;
  }
  return out;
}

int main() {
  auto train = tg::compile(Vae{},
                           {.inputs = {{"x", {kBatch, kPixels}}},
                            .optimizer = tg::AdamW{.lr = tg::cosine(5e-3, 5e-4, 1500)},
                            .clip_grad_norm = 10.0f,
                            .non_finite = tg::NonFinite::skip,
                            .seed = 1},
                           loss);
  auto generate = train.attach(
      {.inputs = {{"z", {3, kLatent}}}},
      [](const Vae& m, const tg::Inputs& in) { return sigmoid(decode(m.decoder, in["z"])); });

  std::mt19937 random(11);
  float first = 0, last = 0;
  for (int i = 0; i < 1500; ++i) {
    auto step = train.step({{"x", draw(random)}});
    if (i % 300 == 0 || i == 1499)
      std::printf("step %4d  loss %6.2f = pixels %6.2f + kl %5.2f\n", i, step.loss(),
                  step["pixels"].item(), step["kl"].item());
    if (i == 0) first = step.loss();
    if (i == 1499) last = step.loss();
  }

  std::vector<float> z(3 * kLatent);
  for (float& v : z) v = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  const auto drawn = generate.run({{"z", z}});
  std::printf("three new pictures:\n");
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t picture = 0; picture < 3; ++picture) {
      for (std::size_t column = 0; column < 8; ++column) {
        const float p = drawn.output().floats()[picture * kPixels + row * 8 + column];
        std::printf("%s", p > 0.66f ? "##" : p > 0.33f ? "::" : " .");
      }
      std::printf("    ");
    }
    std::printf("\n");
  }
  return last < 0.5f * first ? 0 : 1;
}
