// A user's first program: fits the line y = 2x + 1 and exits with 0 only if that worked.
#include <tensorgrad/tensorgrad.h>
#include <tensorgrad/webgpu.h>

#include <cstdio>
#include <vector>

namespace tg = tensorgrad;

struct Line {
  tg::Linear l{1, 1};
};

int main() {
  auto train = tg::compile(
      Line{}, {.inputs = {{"x", {4, 1}}, {"y", {4, 1}}}, .optimizer = tg::Adam{.lr = 0.05f}},
      [](const Line& m, const tg::Inputs& in) { return mean(square(m.l(in["x"]) - in["y"])); });

  const std::vector<float> x{-1, 0, 1, 2}, y{-1, 1, 3, 5};
  for (int i = 0; i < 400; ++i) train.step({{"x", x}, {"y", y}});
  const float loss = train.step({{"x", x}, {"y", y}}).loss();
  std::printf("loss %g\n", static_cast<double>(loss));

  bool refused = false;  // the opt-in header has something behind it
  try {
    tg::WebGpuDevice{nullptr};
  } catch (const tg::UserError&) {
    refused = true;
  }
  return loss < 1e-3f && refused ? 0 : 1;
}
