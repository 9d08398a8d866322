// Parameters without elements: training, upload and download work as for the others.
#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {

namespace {

struct Some {
  Param a{{3}, init::literal({1, 2, 3})}, b{{0, 2}, init::normal(1)};
};
struct FirstAndLast {
  Param a{{0}, init::zeros()}, b{{2, 2}, init::ones()}, c{{2, 0}, init::kaiming()},
      d{{3}, init::ones()}, e{{0, 4}, init::xavier()};
};
struct None {
  Param a{{0, 2}, init::normal(1)};
};

TrainingOptions options(const Optimizer& optimizer, float clip = 0) {
  return {.inputs = {{"x", {3}}},
          .optimizer = optimizer,
          .clip_grad_norm = clip,
          .device = "cpu",
          .threads = 1};
}

const std::vector<Optimizer> kOptimizers = {
    Sgd{.lr = 0.1},   Sgd{.lr = 0.1, .momentum = 0.9f}, Adam{.lr = 0.1},
    AdamW{.lr = 0.1}, Adam{.lr = 0.1, .eps = 0},        NoOptimizer{}};

}  // namespace

TEST(EmptyParameters, TrainBesideOthers) {
  for (const Optimizer& optimizer : kOptimizers) {
    auto train = compile(Some{}, options(optimizer), [](const Some& m, const Inputs& in) {
      return sum(m.a * in["x"]) + sum(square(m.b));
    });
    EXPECT_EQ(train.step({{"x", Floats{1, 1, 1}}}).loss(), 6);
    EXPECT_EQ(train.gradients().at("b").shape(), (Shape{0, 2}));
    EXPECT_EQ(train.gradients().at("a").floats(), (Floats{1, 1, 1}));
    const NamedArrays now = train.download(), state = train.optimizer_state();
    EXPECT_EQ(now.at("b").count(), 0);
    auto other = compile(Some{}, options(optimizer), [](const Some& m, const Inputs& in) {
      return sum(m.a * in["x"]) + sum(square(m.b));
    });
    other.upload(now);
    other.upload_optimizer_state(state);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(train.step({{"x", numbers(3)}}).loss(), other.step({{"x", numbers(3)}}).loss());
    EXPECT_EQ(train.fingerprint(), other.fingerprint());
    train.reset();
    EXPECT_EQ(train.download().at("a").floats(), (Floats{1, 2, 3}));
  }
}

TEST(EmptyParameters, AnywhereInTheModel) {
  for (const float clip : {0.0f, 0.5f}) {
    auto train = compile(FirstAndLast{}, options(Sgd{.lr = 0.5}, clip),
                         [](const FirstAndLast& m, const Inputs& in) {
                           return sum(m.a) + sum(m.b) + sum(m.c) + sum(m.d * in["x"]) + sum(m.e);
                         });
    // The gradient is 1 four times, and x: its norm is sqrt(4 + 5).
    EXPECT_EQ(train.step({{"x", Floats{2, 0, -1}}}).loss(), 5);
    const float factor = clip > 0 ? clip / 3 : 1;
    for (const float b : train.download().at("b").floats()) EXPECT_NEAR(b, 1 - 0.5f * factor, 1e-6);
    const auto d = train.download().at("d").floats();
    EXPECT_NEAR(d[0], 1 - factor, 1e-6);
    EXPECT_EQ(d[1], 1);
    EXPECT_NEAR(d[2], 1 + 0.5f * factor, 1e-6);
  }
}

TEST(EmptyParameters, Alone) {
  for (const Optimizer& optimizer : kOptimizers) {
    auto train = compile(None{}, options(optimizer),
                         [](const None& m, const Inputs& in) { return sum(in["x"]) + sum(m.a); });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(train.step({{"x", Floats{1, 2, 3}}}).loss(), 6);
    EXPECT_EQ(train.download().at("a").count(), 0);
  }
}

TEST(EmptyParameters, GoThroughAFile) {
  auto train = compile(Some{}, options(Adam{.lr = 0.1}), [](const Some& m, const Inputs& in) {
    return sum(m.a * in["x"]) + sum(m.b);
  });
  train.step({{"x", Floats{1, 2, 3}}});
  const std::string file = testing::TempDir() + "tensorgrad_empty_parameters.safetensors";
  save_checkpoint(file, {.parameters = train.download(), .optimizer = train.optimizer_state()});
  const Checkpoint read = load_checkpoint(file);
  EXPECT_EQ(bytes_of(read.parameters), bytes_of(train.download()));
  EXPECT_EQ(bytes_of(read.optimizer), bytes_of(train.optimizer_state()));
  train.upload(read.parameters);
  train.upload_optimizer_state(read.optimizer);
}

TEST(EmptyParameters, FrozenOnesToo) {
  TrainingOptions with = options(Adam{.lr = 0.1});
  with.freeze = {"a", "c", "d"};
  auto train = compile(FirstAndLast{}, with, [](const FirstAndLast& m, const Inputs& in) {
    return sum(m.a) + sum(m.b) + sum(m.c) + sum(m.d * in["x"]) + sum(m.e);
  });
  train.step({{"x", Floats{1, 1, 1}}});
  EXPECT_EQ(train.download().at("d").floats(), (Floats{1, 1, 1}));
  for (const float b : train.download().at("b").floats()) EXPECT_NEAR(b, 0.9f, 1e-6);
}

}  // namespace tensorgrad::compile_tests
