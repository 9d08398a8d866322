// Queries before the first run, steps without an optimizer, and lazy initialisation of weights.
#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {

namespace {

std::string text_of(const std::vector<TensorInfo>& infos) {
  std::string out;
  for (const TensorInfo& info : infos)
    out += std::string(out.empty() ? "" : " ") + info.name + ":" + name(info.dtype) +
           info.shape.text();
  return out;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

Outputs two_outputs(const Mlp& m, const Inputs& in) {
  const Tensor y = capture("y", predict(m, in["x"]));
  capture("sign", y > 0.0f);
  return {{"best", argmax(y, -1)}, {"loss", mse_loss(y, in["y"])}};
}

}  // namespace

TEST(Handle, SaysWhatGoesInAndComesOut) {
  auto train = compile(Mlp{}, {.inputs = mlp_inputs(), .threads = 1}, two_outputs);
  EXPECT_EQ(text_of(train.inputs()), "x:f32[4,3] y:f32[4,2]");
  EXPECT_EQ(text_of(train.outputs()), "best:i32[4] loss:f32[]");
  EXPECT_EQ(text_of(train.captures()), "y:f32[4,2] sign:bool[4,2]");
  const Result step = train.step(Batch(1).feed(), {.captures = true});
  for (const TensorInfo& info : train.captures()) {
    EXPECT_EQ(step.capture(info.name).shape(), info.shape);
    EXPECT_EQ(step.capture(info.name).dtype(), info.dtype);
  }
  EXPECT_EQ(step["best"].shape(), train.outputs()[0].shape);
  auto infer = train.attach({.inputs = {{"x", {1, 3}}, {"ids", {2}, i32}}}, mlp_output);
  EXPECT_EQ(text_of(infer.inputs()), "x:f32[1,3] ids:i32[2]");
  EXPECT_EQ(text_of(infer.outputs()), "out:f32[1,2]");
  EXPECT_TRUE(infer.captures().empty());
}

TEST(Handle, ResetOptimizerKeepsTheWeights) {
  auto train = compile_mlp({.optimizer = Adam{.lr = 0.01}});
  const NamedArrays empty = train.optimizer_state();
  for (std::uint32_t i = 0; i < 3; ++i) train.step(Batch(i).feed());
  const NamedArrays weights = train.download();
  EXPECT_NE(bytes_of(train.optimizer_state()), bytes_of(empty));
  train.reset_optimizer();
  EXPECT_EQ(train.steps(), 0);
  EXPECT_EQ(bytes_of(train.download()), bytes_of(weights));
  EXPECT_EQ(bytes_of(train.optimizer_state()), bytes_of(empty));
  auto fresh = compile_mlp({.optimizer = Adam{.lr = 0.01}});
  fresh.upload(weights);
  for (std::uint32_t i = 0; i < 3; ++i) {
    train.step(Batch(i).feed()), fresh.step(Batch(i).feed());
  }
  EXPECT_EQ(train.fingerprint(), fresh.fingerprint());
}

TEST(NoOptimizer, ComputesGradientsAndUpdatesNothing) {
  auto train = compile_mlp({.optimizer = NoOptimizer{}, .clip_grad_norm = 1e-3f});
  auto moving = compile_mlp({.optimizer = Sgd{.lr = 0.1}});
  const std::string before = train.fingerprint();
  for (std::uint32_t i = 0; i < 3; ++i) {
    moving.upload(train.download());
    const Result step = train.step(Batch(i).feed());
    EXPECT_EQ(step.loss(), moving.step(Batch(i).feed()).loss());
    EXPECT_EQ(bytes_of(train.gradients()), bytes_of(moving.gradients()));
    double squares = 0;
    for (const auto& [name, gradient] : train.gradients())
      for (const float g : gradient.floats())
        squares += static_cast<double>(g) * static_cast<double>(g);
    EXPECT_NEAR(static_cast<double>(step.grad_norm()), std::sqrt(squares), 1e-5);
  }
  EXPECT_EQ(train.fingerprint(), before);
  EXPECT_EQ(train.steps(), 3);
  const NamedArrays state = train.optimizer_state();
  EXPECT_EQ(state.size(), 1u);
  EXPECT_EQ(state.at("step").ints()[0], 3);
  EXPECT_EQ(train.lr(), 0);
}

TEST(NoOptimizer, StillNoticesWhatIsNotFinite) {
  auto train = compile_mlp({.optimizer = NoOptimizer{}});
  Batch bad(1);
  bad.x[0] = std::nanf("");
  EXPECT_THROW(train.step(bad.feed()).loss(), NonFiniteError);
  auto skipping = compile_mlp({.optimizer = NoOptimizer{}, .non_finite = NonFinite::skip});
  EXPECT_FALSE(skipping.step(bad.feed()).finite());
}

TEST(NoOptimizer, HasNoRateAndNoRounds) {
  auto train = compile_mlp({.optimizer = NoOptimizer{}});
  EXPECT_EQ(error_of([&] { train.set_lr(0.1); }),
            "set_lr: this program has no optimizer: NoOptimizer updates nothing");
  EXPECT_EQ(error_of([&] { compile_mlp({.optimizer = NoOptimizer{}, .accumulate = 2}); }),
            "compile: accumulate needs an optimizer, NoOptimizer updates nothing");
}

// Weights that were uploaded before the first step are not initialised
// (tests/errors/host_memory_test.cpp checks that). A partial upload leaves the others as they would
// have been, and reset() initialises all.
TEST(InitialWeights, AreThoseOfTheSeedWhoeverAsksFirst) {
  const NamedArrays drawn = compile_mlp({.seed = 4}).download();
  auto uploaded = compile_mlp({.seed = 4});
  NamedArrays some{{"l2.W", Array({8, 8}, numbers(64))}};
  uploaded.upload(some, Upload::partial);
  NamedArrays expected = drawn;
  expected.at("l2.W") = some.at("l2.W");
  EXPECT_EQ(bytes_of(uploaded.download()), bytes_of(expected));

  auto stepped = compile_mlp({.seed = 4}), twin = compile_mlp({.seed = 4});
  twin.upload(drawn);
  EXPECT_EQ(stepped.step(Batch(1).feed()).loss(), twin.step(Batch(1).feed()).loss());
  EXPECT_EQ(stepped.fingerprint(), twin.fingerprint());
  twin.reset();
  EXPECT_EQ(bytes_of(twin.download()), bytes_of(drawn));
  twin.reset();
  twin.upload(some, Upload::partial);
  EXPECT_EQ(bytes_of(twin.download()), bytes_of(expected));
}

TEST(InitialWeights, AnImpossibleLiteralIsAnErrorAtCompile) {
  struct Wrong {
    Param w{{3}, init::literal({1, 2})};
  };
  EXPECT_EQ(error_of([] {
              compile_forward(Wrong{}, {.inputs = {{"x", {3}}}},
                              [](const Wrong& m, const Inputs& in) { return m.w * in["x"]; });
            }),
            "init: w is [3] and needs 3 numbers, the literal has 2");
}

}  // namespace tensorgrad::compile_tests
