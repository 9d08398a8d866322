// A small convolutional network tells squares, discs and crosses apart. It draws its own pictures.
#include <tensorgrad/tensorgrad.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace tg = tensorgrad;

constexpr int kSize = 12, kBatch = 32;

struct Cnn {
  tg::Conv2d c1{1, 8, 3, {.padding = 1}};
  tg::Conv2d c2{8, 16, 3, {.padding = 1}};
  tg::Linear fc{16 * 3 * 3, 3};

  // x [B, 1, 12, 12] -> logits [B, 3]
  tg::Tensor operator()(tg::Tensor x) const {
    x = max_pool2d(relu(c1(x)), 2);
    x = max_pool2d(relu(c2(x)), 2);
    return fc(reshape(dropout(x, 0.1f), {x.size(0), -1}));
  }
};

struct Pictures {
  std::vector<float> pixels = std::vector<float>(kBatch * kSize * kSize);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);
};

Pictures draw(std::mt19937& random) {
  Pictures out;
  const auto unit = [&] { return static_cast<float>(random()) / 4294967296.0f; };
  for (int i = 0; i < kBatch; ++i) {
    const int kind = static_cast<int>(random() % 3);
    const float r = 2.5f + 2 * unit(), cx = 4 + 3 * unit(), cy = 4 + 3 * unit();
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x) {
        const float dx = std::fabs(static_cast<float>(x) - cx),
                    dy = std::fabs(static_cast<float>(y) - cy);
        const bool inside = kind == 0   ? std::fmax(dx, dy) < r
                            : kind == 1 ? dx * dx + dy * dy < r * r
                                        : std::fmin(dx, dy) < 1 && std::fmax(dx, dy) < r;
        out.pixels[static_cast<std::size_t>((i * kSize + y) * kSize + x)] =
            (inside ? 1.0f : 0.0f) + 0.3f * (unit() - 0.5f);
      }
    out.labels[static_cast<std::size_t>(i)] = kind;
  }
  return out;
}

int main() {
  auto train = tg::compile(
      Cnn{},
      {.inputs = {{"x", {kBatch, 1, kSize, kSize}}, {"y", {kBatch}, tg::i32}},
       .optimizer = tg::Adam{.lr = 3e-3f}},
      [](const Cnn& m, const tg::Inputs& in) { return cross_entropy(m(in["x"]), in["y"]); });
  auto infer = train.attach({.inputs = {{"x", {kBatch, 1, kSize, kSize}}}},  // without dropout
                            [](const Cnn& m, const tg::Inputs& in) { return argmax(m(in["x"])); });
  std::mt19937 random(5);
  for (int i = 0; i < 150; ++i) {
    const Pictures batch = draw(random);
    auto step = train.step({{"x", batch.pixels}, {"y", batch.labels}});
    if (i % 30 == 0) std::printf("step %3d  loss %.4f\n", i, step.loss());
  }
  int right = 0;
  for (int i = 0; i < 10; ++i) {
    const Pictures batch = draw(random);
    const auto result = infer.run({{"x", batch.pixels}});
    for (std::size_t j = 0; j < kBatch; ++j) right += result.output().ints()[j] == batch.labels[j];
  }
  std::printf("%.1f %% of %d new pictures are named right\n", 100.0 * right / (10 * kBatch),
              10 * kBatch);
  return right > 9 * kBatch ? 0 : 1;
}
