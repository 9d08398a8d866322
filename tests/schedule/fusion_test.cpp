// Training steps of tiny models with shapes that are hard for fusion. The expected parameters are
// computed by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "support/integers.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad {
namespace {

struct Vector {
  Param w;
};

// One step of gradient descent on sum((w - 3)^2) from w = 1: 1 - 0.1 * 2 * (1 - 3) = 1.4.
void expect_one_step(const Shape& shape) {
  SCOPED_TRACE(shape.text());
  auto train =
      compile(Vector{Param(shape, init::ones())}, {.inputs = {}, .optimizer = Sgd{.lr = 0.1}},
              [](const Vector& m, const Inputs&) { return sum(square(m.w - 3.0f)); });
  for (const float want : {1.4f, 1.72f, 1.976f}) {
    train.step().wait();
    const NamedArrays now = train.download();
    for (const float w : now.at("w").floats()) EXPECT_NEAR(w, want, 1e-6f);
  }
}

// The flat gradient is read only after all of it was written, even if loss, gradient and parameters
// have the same shape.
TEST(Fusion, TheUpdateSeesThisStepsGradient) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{63}, Shape{64}, Shape{8, 8}, Shape{32, 32},
                             Shape{4096}, Shape{4160}})
    expect_one_step(shape);
}

TEST(Fusion, TheUpdateSeesThisStepsGradientOfAScalarOverABatch) {
  for (const std::int64_t batch : {1, 64, 128}) {
    auto train = compile(
        Vector{Param({}, init::ones())}, {.inputs = {{"x", {batch}}}, .optimizer = Sgd{.lr = 0.5}},
        [](const Vector& m, const Inputs& in) { return mean(square(m.w * in["x"] - 3.0f)); });
    train.step({{"x", std::vector<float>(static_cast<std::size_t>(batch), 1.0f)}}).wait();
    EXPECT_NEAR(train.download().at("w").item(), 3.0, 1e-6) << batch;  // 1 - 0.5 * 2 * (1 - 3)
  }
}

// Work on positions alone is recomputed in each reader, through that reader's views.
TEST(Fusion, PositionsAreSeenThroughTheViewsOfEachUse) {
  auto run = compile_forward(
      Vector{Param({}, init::zeros())}, {.inputs = {{"x", {4, 4}}}},
      [](const Vector&, const Inputs& in) {
        const Tensor position = cast(arange(4), f32) * 2.0f;
        const Tensor shifted = arange(4) + 1;
        const Tensor distance = unsqueeze(position, 1) - unsqueeze(position, 0);
        const Tensor below = unsqueeze(shifted, 0) <= unsqueeze(shifted, 1);
        return Outputs{{"distance", in["x"] + distance}, {"below", cast(below, f32) + in["x"]}};
      });
  const auto out = run.run({{"x", std::vector<float>(16, 0.0f)}});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(out["distance"].floats()[4 * i + j],
                2.0f * (static_cast<float>(i) - static_cast<float>(j)));
      EXPECT_EQ(out["below"].floats()[4 * i + j], j <= i ? 1.0f : 0.0f);
    }
}

struct Table {
  Param w{{3}, init::ones()};
};

// A bad id is detected before anything is written, even if only an extra output reads it.
TEST(Fusion, BadIdsAreFoundBeforeTheUpdate) {
  auto train = compile(
      Table{}, {.inputs = {{"x", {5, 3}}, {"ids", {2}, i32}}, .non_finite = NonFinite::ignore},
      [](const Table& m, const Inputs& in) {
        const Tensor rows = embedding(in["x"], in["ids"]);
        return Outputs{{"loss", sum(square(m.w))}, {"rows", rows}, {"again", rows}};
      });
  const std::vector<float> x(15, 1.0f);
  const std::string before = train.fingerprint();
  EXPECT_THROW(train.step({{"x", x}, {"ids", std::vector<std::int32_t>{0, 7}}}), UserError);
  EXPECT_EQ(train.fingerprint(), before);
  train.step({{"x", x}, {"ids", std::vector<std::int32_t>{0, 4}}}).wait();
  EXPECT_NE(train.fingerprint(), before);
}

struct Line {
  Param m{{}, init::zeros()}, b{{}, init::zeros()}, v{{}, init::zeros()};
};

// Parameters may have the names of optimizer state.
TEST(Fusion, ParametersNamedLikeState) {
  auto train = compile(Line{}, {.inputs = {}, .optimizer = Adam{.lr = 0.1}},
                       [](const Line& l, const Inputs&) {
                         return square(l.m - 1.0f) + square(l.b - 2.0f) + square(l.v - 3.0f);
                       });
  for (int i = 0; i < 200; ++i) train.step();
  EXPECT_NEAR(train.download().at("m").item(), 1, 0.05);
  EXPECT_NEAR(train.download().at("b").item(), 2, 0.05);
  EXPECT_NEAR(train.download().at("v").item(), 3, 0.05);
}

TEST(Fusion, OutputsAndCapturesMayShareNames) {
  auto run = compile_forward(Table{}, {.inputs = {{"x", {2}}}}, [](const Table&, const Inputs& in) {
    capture("a", in["x"] * 2.0f);
    return Outputs{{"capture a", sum(in["x"])}, {"a", in["x"] + 1.0f}};
  });
  const auto out = run.run({{"x", std::vector<float>{1, 2}}}, {.captures = true});
  EXPECT_EQ(out["capture a"].item(), 3);
  EXPECT_EQ(out["a"].floats()[1], 3);
  EXPECT_EQ(out.capture("a").floats()[1], 4);
}

// Kernels in an order where one writes memory that another has read (Overlap.KernelsThatDecide...):
// with constant inputs the results are known.
TEST(Fusion, KernelsThatTakeTurnsComputeTheSame) {
  const auto product = [](const Table&, const Inputs& in) {
    const Tensor wide = matmul(in["x"], in["w"]);     // [512, 1024], 64 * 1 * 0.5
    const Tensor between = matmul(in["v"], in["w"]);  // [64, 1024], 64 * 2 * 0.5
    const Tensor again = matmul(in["t"], between);    // [512, 1024], 64 * -1 * 64
    const Tensor thin = matmul(wide, in["u"]);        // [512, 16], 1024 * 32 * 0.25
    return matmul(swap_axes(thin, 0, 1), again);      // [16, 1024], 512 * 8192 * -4096
  };
  const std::vector<InputSpec> inputs{
      {"x", {512, 64}}, {"w", {64, 1024}}, {"v", {64, 64}}, {"t", {512, 64}}, {"u", {1024, 16}}};
  auto run = compile_forward(Table{}, {.inputs = inputs}, product);
  EXPECT_EQ(run.counts().arena_bytes, 4 * (512 * 1024 + 64 * 1024 + 512 * 16));
  const auto all = [](std::size_t count, float value) { return std::vector<float>(count, value); };
  const auto out = run.run({{"x", all(512 * 64, 1)},
                            {"w", all(64 * 1024, 0.5f)},
                            {"v", all(64 * 64, 2)},
                            {"t", all(512 * 64, -1)},
                            {"u", all(1024 * 16, 0.25f)}});
  for (const float y : out.output().floats()) ASSERT_EQ(y, 512.0f * 8192.0f * -4096.0f);
}

// The elements of pooling windows are computed where they are compared, if no window shares one.
TEST(Fusion, PoolsWhatItComputes) {
  const auto kernels = [](std::int64_t stride) {
    auto run = compile_forward(Vector{Param({}, init::ones())}, {.inputs = {{"x", {2, 3, 9, 9}}}},
                               [&](const Vector& m, const Inputs& in) {
                                 return max_pool2d(relu(in["x"] + m.w), 3, {.stride = stride});
                               });
    std::vector<float> x(2 * 3 * 9 * 9);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) - 50.0f;
    const Result result = run.run({{"x", x}});
    const std::span<const float> out = result.output().floats();
    const std::size_t size = usize((9 - 3) / stride + 1), by = usize(stride);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t image = i / (size * size), row = i / size % size * by, at = i % size * by;
      float largest = 0;
      for (std::size_t j = 0; j < 9; ++j)
        largest = std::max(largest, x[81 * image + 9 * (row + j / 3) + at + j % 3] + 1);
      EXPECT_EQ(out[i], largest) << i;
    }
    return run.counts().kernels;
  };
  EXPECT_EQ(kernels(3), 1);
  EXPECT_EQ(kernels(2), 2);  // windows that overlap would compute elements twice
}

// Each sum reads both halves of the one before it. Twelve of them in one program would be 4,095
// additions; at most six fit.
TEST(Fusion, SumsOfHalvesDoNotDoubleTheProgram) {
  constexpr std::int64_t kCount = 4096;
  auto run =
      compile_forward(Table{}, {.inputs = {{"x", {kCount}}}}, [](const Table&, const Inputs& in) {
        Tensor sums = in["x"];
        for (std::int64_t half = kCount / 2; half > 0; half /= 2)
          sums = narrow(sums, 0, 0, half) + narrow(sums, 0, half, half);
        return sums;
      });
  std::vector<float> x(usize(kCount));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  const Result result = run.run({{"x", x}});
  EXPECT_EQ(result.output().floats()[0], std::accumulate(x.begin(), x.end(), 0.0f));
  EXPECT_EQ(run.counts().kernels, 2);
}

// Two factors in sequence may stay in the range of f32 where their product does not.
TEST(Fusion, FactorsAreNotJoinedOutOfRange) {
  auto run = compile_forward(Table{}, {.inputs = {{"x", {2}}}}, [](const Table&, const Inputs& in) {
    return Outputs{{"large", in["x"] * 1e30f * 1e30f}, {"small", in["x"] * 1e-30f * 1e-30f}};
  });
  EXPECT_EQ(run.run({{"x", std::vector<float>{1e-30f, 0}}})["large"].floats()[0],
            1e-30f * 1e30f * 1e30f);
  EXPECT_EQ(run.run({{"x", std::vector<float>{1e-30f, 0}}})["large"].floats()[1], 0);
  EXPECT_EQ(run.run({{"x", std::vector<float>{1e30f, 0}}})["small"].floats()[0],
            1e30f * 1e-30f * 1e-30f);
}

}  // namespace
}  // namespace tensorgrad
