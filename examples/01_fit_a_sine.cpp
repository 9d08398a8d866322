// Fit a sine: the smallest whole program. A model is a plain struct, the forward pass a plain
// function, and compile() makes one step of forward, backward and Adam.
#include <tensorgrad/tensorgrad.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace tg = tensorgrad;

struct Mlp {
  tg::Linear l1{1, 64}, l2{64, 64}, l3{64, 1};
};

tg::Tensor predict(const Mlp& m, tg::Tensor x) { return m.l3(relu(m.l2(relu(m.l1(x))))); }

int main() {
  auto train = tg::compile(
      Mlp{},
      {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}},
       .optimizer = tg::Adam{.lr = tg::cosine(0.005, 0, 1000)}},  // decays to 0 over 1000 steps
      [](const Mlp& m, const tg::Inputs& in) {
        return mean(square(predict(m, in["x"]) - in["y"]));
      });
  // A second program over the same parameters: no copies, and it sees every update.
  auto infer = train.attach({.inputs = {{"x", {5, 1}}}},
                            [](const Mlp& m, const tg::Inputs& in) { return predict(m, in["x"]); });

  std::mt19937 random(1);
  std::vector<float> x(256), y(256);
  for (int i = 0; i < 1000; ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      x[j] = static_cast<float>(random()) / 4294967296.0f * 6.0f - 3.0f;
      y[j] = std::sin(x[j]);
    }
    auto step = train.step({{"x", x}, {"y", y}});
    if (i % 20 == 0 && i < 80) std::printf("step %2d  loss %.3f\n", i, step.loss());
  }

  const std::vector<float> points = {-2, -1, 0, 1, 2};
  const auto result = infer.run({{"x", points}});
  float worst = 0;
  for (std::size_t j = 0; j < points.size(); ++j) {
    const float got = result.output().floats()[j];
    std::printf("sin(%2.0f) = %5.2f, the model says %5.2f\n", points[j], std::sin(points[j]), got);
    worst = std::max(worst, std::fabs(got - std::sin(points[j])));
  }
  return worst < 0.05f ? 0 : 1;
}
