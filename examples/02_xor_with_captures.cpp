// XOR, and a look inside: capture() names a value of the forward pass, and a step or run returns it
// only when asked to.
#include <tensorgrad/tensorgrad.h>

#include <cstdio>
#include <vector>

namespace tg = tensorgrad;

struct Xor {
  tg::Linear hidden{2, 4}, out{4, 1};
};

tg::Tensor logits(const Xor& m, tg::Tensor x) {
  const tg::Tensor h = tg::capture("hidden", tanh(m.hidden(x)));
  return m.out(h);
}

int main() {
  const std::vector<float> x = {0, 0, 0, 1, 1, 0, 1, 1}, y = {0, 1, 1, 0};
  auto train = tg::compile(
      Xor{},
      {.inputs = {{"x", {4, 2}}, {"y", {4, 1}}}, .optimizer = tg::Adam{.lr = 0.05f}, .seed = 1},
      [](const Xor& m, const tg::Inputs& in) {
        return bce_with_logits(logits(m, in["x"]), in["y"]);
      });

  // The batch never changes, so it stays on the device.
  train.set_input("x", x);
  train.set_input("y", y);
  for (int i = 0; i < 400; ++i) {
    auto step = train.step();
    if (i % 100 == 0) std::printf("step %3d  loss %.4f\n", i, step.loss());
  }

  auto infer = train.attach({.inputs = {{"x", {4, 2}}}}, [](const Xor& m, const tg::Inputs& in) {
    return tg::Outputs{{"p", sigmoid(logits(m, in["x"]))}};
  });
  const auto result = infer.run({{"x", x}}, {.captures = true});
  const auto p = result["p"].floats();
  const tg::Array& hidden = result.capture("hidden");
  std::printf("hidden is %s\n", hidden.shape().text().c_str());
  bool right = true;
  for (std::size_t i = 0; i < 4; ++i) {
    std::printf("%g xor %g = %.3f   hidden:", x[2 * i], x[2 * i + 1], p[i]);
    for (std::size_t j = 0; j < 4; ++j) std::printf(" %6.3f", hidden.floats()[4 * i + j]);
    std::printf("\n");
    right = right && (p[i] > 0.5f) == (y[i] > 0.5f);
  }
  return right ? 0 : 1;
}
