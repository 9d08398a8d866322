// Attention that a user writes out becomes the attention kernel, in training and in forward
// programs.
#include <algorithm>

#include "tests/compile/common.h"

namespace tensorgrad {
namespace {

using namespace compile_tests;

constexpr std::int64_t kBatch = 2, kTime = 48, kWidth = 32, kHeads = 4;

// Two layers with attention written in two ways. Keys have no bias: its gradient is zero except for
// rounding, which Adam would amplify.
struct Model {
  Linear q1{kWidth, kWidth}, k1{kWidth, kWidth, false}, v1{kWidth, kWidth};
  Linear q2{kWidth, kWidth}, k2{kWidth, kWidth, false}, v2{kWidth, kWidth};
  Linear out{kWidth, 3};
};

Tensor heads(const Tensor& x) {
  return permute(reshape(x, {kBatch, kTime, kHeads, kWidth / kHeads}), {0, 2, 1, 3});
}
Tensor joined(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {kBatch, kTime, kWidth});
}

Tensor predicted(const Model& m, const Tensor& x) {
  const float scale = 1 / std::sqrt(static_cast<float>(kWidth / kHeads));
  const Tensor q1 = heads(m.q1(x)), k1 = heads(m.k1(x)), v1 = heads(m.v1(x));
  Tensor h = x + joined(matmul(softmax_causal(matmul(q1, swap_axes(k1, -1, -2)) * scale), v1));
  const Tensor q2 = heads(m.q2(h)), k2 = heads(m.k2(h)), v2 = heads(m.v2(h));
  const Tensor future = unsqueeze(arange(kTime), 0) > unsqueeze(arange(kTime), 1);
  h = h +
      joined(matmul(
          softmax(matmul(q2 * scale, swap_axes(k2, -1, -2)) - cast(future, f32) * 1e10f, -1), v2));
  return m.out(h);
}
Tensor loss(const Model& m, const Inputs& in) { return mse_loss(predicted(m, in["x"]), in["y"]); }

const std::vector<InputSpec> kInputs{{"x", {kBatch, kTime, kWidth}}, {"y", {kBatch, kTime, 3}}};

Training<Model> trainer(std::vector<std::string> without) {
  const Adam adam{.lr = 0.01};
  return compile(Model{},
                 {.inputs = kInputs,
                  .optimizer = adam,
                  .seed = 3,
                  .device = "cpu",
                  .without = std::move(without)},
                 loss);
}

int kernels_with(const std::vector<PlannedKernel>& plan, const std::string& op) {
  int count = 0;
  for (const PlannedKernel& kernel : plan)
    count += std::find(kernel.ops.begin(), kernel.ops.end(), op) != kernel.ops.end();
  return count;
}
// The [T, T] tensors per head that a kernel writes.
int scores_stored(const std::vector<PlannedKernel>& plan) {
  int count = 0;
  for (const PlannedKernel& kernel : plan)
    for (const auto& write : kernel.writes)
      count += write.bytes >= 4 * kBatch * kHeads * kTime * kTime;
  return count;
}

TEST(WrittenOutAttention, TrainsLikeWhatWasWritten) {
  auto with = trainer({}), without = trainer({"attention"});
  const Floats x = numbers(kBatch * kTime * kWidth), y = numbers(kBatch * kTime * 3, 2);
  for (int step = 0; step < 20; ++step) {
    const float want = without.step({{"x", x}, {"y", y}}).loss(),
                got = with.step({{"x", x}, {"y", y}}).loss();
    EXPECT_NEAR(got, want, 1e-5) << step;
  }
  const NamedArrays want = without.download(), got = with.download();
  for (const auto& [name, array] : want) {
    const Floats a = floats_of(array), b = floats_of(got.at(name));
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(b[i], a[i], 1e-5) << name << " " << i;
  }
}

TEST(WrittenOutAttention, IsOneKernelEachWayAndNoScoresAreStored) {
  const auto with = trainer({}).plan(), without = trainer({"attention"}).plan();
  EXPECT_EQ(kernels_with(with, "attention"), 2);
  EXPECT_EQ(kernels_with(with, "attention_gradient"), 2);
  EXPECT_EQ(scores_stored(with), 0);
  EXPECT_EQ(kernels_with(without, "attention"), 0);
  EXPECT_GT(scores_stored(without), 0);
}

TEST(WrittenOutAttention, IsOneKernelInForwardPrograms) {
  const auto forward = [](std::vector<std::string> without) {
    return compile_forward(
        Model{},
        {.inputs = {kInputs[0]}, .seed = 3, .device = "cpu", .without = std::move(without)},
        [](const Model& m, const Inputs& in) { return predicted(m, in["x"]); });
  };
  auto with = forward({}), without = forward({"attention"});
  EXPECT_EQ(kernels_with(with.plan(), "attention"), 2);
  EXPECT_EQ(scores_stored(with.plan()), 0);
  EXPECT_EQ(kernels_with(without.plan(), "attention"), 0);
  // The trace is what the user wrote.
  EXPECT_EQ(with.show("trace"), without.show("trace"));
  const Floats x = numbers(kBatch * kTime * kWidth);
  const Floats got = floats_of(with.run({{"x", x}}).output()),
               want = floats_of(without.run({{"x", x}}).output());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5);
}

TEST(WrittenOutAttention, IsOneKernelInProgramsAttachedToATraining) {
  auto train = trainer({});
  auto predict = train.attach({.inputs = {kInputs[0]}}, [](const Model& m, const Inputs& in) {
    return predicted(m, in["x"]);
  });
  EXPECT_EQ(kernels_with(predict.plan(), "attention"), 2);
}

TEST(WrittenOutAttention, KeepsWeightsThatAreCaptured) {
  const auto attend = [](const Model&, const Inputs& in) {
    const Tensor x = in["x"];
    return matmul(capture("weights", softmax(matmul(x, swap_axes(x, 0, 1)), -1)), x);
  };
  auto run =
      compile_forward(Model{}, {.inputs = {{"x", {kTime, kWidth}}}, .device = "cpu"}, attend);
  EXPECT_EQ(kernels_with(run.plan(), "attention"), 0);
  const auto out = run.run({{"x", numbers(kTime * kWidth)}}, {.captures = true});
  EXPECT_EQ(out.capture("weights").shape(), (Shape{kTime, kTime}));
}

// Dropout prevents the fusion in training, and is removed in a forward program.
TEST(WrittenOutAttention, WithDropoutIsOneKernelWhereNothingIsDropped) {
  const auto attend = [](const Model& m, const Inputs& in) {
    const Tensor x = in["x"], q = heads(m.q1(x)), k = heads(m.k1(x)), v = heads(m.v1(x));
    return mean(joined(matmul(dropout(softmax_causal(matmul(q, swap_axes(k, -1, -2))), 0.1f), v)));
  };
  auto train = compile(Model{}, {.inputs = {kInputs[0]}, .device = "cpu"}, attend);
  EXPECT_EQ(kernels_with(train.plan(), "attention"), 0);
  EXPECT_EQ(kernels_with(train.attach({.inputs = {kInputs[0]}}, attend).plan(), "attention"), 1);
}

}  // namespace
}  // namespace tensorgrad
