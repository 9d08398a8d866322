// A transformer learns to add two digits: "7+5=21" (the digits of the answer in reverse, so that
// the model can carry while it writes). `tg train addition` does the same for two-digit numbers.
#include <tensorgrad/tensorgrad.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace tg = tensorgrad;

constexpr int kBatch = 64, kTime = 5;  // "a+b=xy" without its last symbol
const std::string kSymbols = "0123456789+=";

std::array<int, 6> sum_of(int a, int b) { return {a, 10, b, 11, (a + b) % 10, (a + b) / 10}; }

int main() {
  const tg::Transformer model({.vocab = 12,
                               .dim = 32,
                               .context = kTime,
                               .layers = 2,
                               .heads = 4,
                               .activation = tg::Activation::relu});
  auto train =
      tg::compile(model,
                  {.inputs = {{"tokens", {kBatch, kTime}, tg::i32},
                              {"targets", {kBatch, kTime}, tg::i32},
                              {"mask", {kTime}}},
                   .optimizer = tg::AdamW{.lr = tg::warmup(20, tg::cosine(5e-3, 5e-4, 480))},
                   .clip_grad_norm = 1.0f},
                  [](const tg::Transformer& m, const tg::Inputs& in) {
                    // The mask [T] counts only the two answer positions of every row.
                    const tg::Tensor mask = broadcast_to(in["mask"], in["tokens"].shape());
                    return masked_cross_entropy(m(in["tokens"]), in["targets"], mask);
                  });
  train.set_input("mask", std::vector<float>{0, 0, 0, 1, 1});

  std::mt19937 random(7);
  std::vector<std::int32_t> tokens(kBatch * kTime), targets(kBatch * kTime);
  for (int i = 0; i < 500; ++i) {
    for (int row = 0; row < kBatch; ++row) {
      const auto text = sum_of(static_cast<int>(random() % 10), static_cast<int>(random() % 10));
      std::copy_n(text.begin(), kTime, tokens.begin() + row * kTime);
      std::copy_n(text.begin() + 1, kTime, targets.begin() + row * kTime);
    }
    auto step = train.step({{"tokens", tokens}, {"targets", targets}});
    if (i % 100 == 0)
      std::printf("step %3d  loss %.4f  gradient norm %.2f\n", i, step.loss(), step.grad_norm());
  }

  // All hundred sums at once, one symbol after the other.
  auto infer = train.attach(
      {.inputs = {{"tokens", {100, kTime}, tg::i32}}},
      [](const tg::Transformer& m, const tg::Inputs& in) { return argmax(m(in["tokens"])); });
  std::vector<std::int32_t> rows(100 * kTime, 0);
  for (int n = 0; n < 100; ++n)
    std::copy_n(sum_of(n / 10, n % 10).begin(), 4, rows.begin() + n * kTime);
  std::vector<int> ones(100), tens(100);
  for (int position = 3; position < kTime; ++position) {
    const auto result = infer.run({{"tokens", rows}});
    for (int n = 0; n < 100; ++n) {
      const int symbol = result.output().ints()[static_cast<std::size_t>(n * kTime + position)];
      (position == 3 ? ones : tens)[static_cast<std::size_t>(n)] = symbol;
      if (position + 1 < kTime) rows[static_cast<std::size_t>(n * kTime + position + 1)] = symbol;
    }
  }
  int right = 0;
  for (std::size_t n = 0; n < 100; ++n) {
    const int a = static_cast<int>(n / 10), b = static_cast<int>(n % 10);
    right += ones[n] == (a + b) % 10 && tens[n] == (a + b) / 10;
    if (n % 23 == 0)
      std::printf("%d + %d = %c%c\n", a, b, kSymbols[static_cast<std::size_t>(tens[n])],
                  kSymbols[static_cast<std::size_t>(ones[n])]);
  }
  std::printf("%d of 100 sums are right\n", right);
  return right >= 95 ? 0 : 1;
}
