// Several graphs over one set of parameters: attach, several outputs, captures, inputs that stay.
#include <memory>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

// The model in plain doubles.
std::vector<double> plain_predict(const NamedArrays& p, const Floats& x) {
  std::vector<double> now(x.begin(), x.end());
  std::size_t width = 3;
  for (const char* layer : {"l1", "l2", "l3"}) {
    const auto w = p.at(std::string(layer) + ".W").floats(),
               b = p.at(std::string(layer) + ".b").floats();
    const std::size_t out = b.size(), rows = now.size() / width;
    std::vector<double> next(rows * out);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t o = 0; o < out; ++o) {
        double sum = static_cast<double>(b[o]);
        for (std::size_t i = 0; i < width; ++i)
          sum += now[r * width + i] * static_cast<double>(w[i * out + o]);
        next[r * out + o] = std::string(layer) == "l3" ? sum : std::tanh(sum);
      }
    now = std::move(next), width = out;
  }
  return now;
}

void expect_near(std::span<const float> got, const std::vector<double>& want,
                 double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(static_cast<double>(got[i]), want[i], tolerance) << i;
}

TEST(Attach, SharesParametersAndSeesEveryUpdate) {
  auto train = compile_mlp({.optimizer = Sgd{.lr = 0.1}});
  auto one = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  auto many = train.attach({.inputs = {{"x", {7, 3}}}}, mlp_output);
  auto further = one.attach({.inputs = {{"x", {2, 3}}}}, mlp_output);
  const Floats x1 = numbers(3, 5), x2 = numbers(6, 7), x7 = numbers(21, 6);
  Floats last;
  for (int i = 0; i < 3; ++i) {
    const NamedArrays now = train.download();
    expect_near(one.run({{"x", x1}}).output().floats(), plain_predict(now, x1));
    expect_near(many.run({{"x", x7}}).output().floats(), plain_predict(now, x7));
    expect_near(further.run({{"x", x2}}).output().floats(), plain_predict(now, x2));
    EXPECT_NE(floats_of(one.run({{"x", x1}}).output()), last);
    last = floats_of(one.run({{"x", x1}}).output());
    train.step(Batch(1).feed());
  }
  EXPECT_EQ(one.fingerprint(), train.fingerprint());
  EXPECT_EQ(one.counts().gradient_bytes, 0);
  EXPECT_EQ(one.counts().state_bytes, 0);
}

TEST(Attach, UploadsThroughAnyOfThemAreSeenByAll) {
  auto train = compile_mlp();
  auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  NamedArrays zero = train.download();
  for (auto& [name, array] : zero)
    for (float& v : array.floats()) v = name == "l3.b" ? 7.0f : 0.0f;
  infer.upload(zero);
  EXPECT_EQ(bytes_of(train.download()), bytes_of(zero));
  EXPECT_EQ(floats_of(infer.run({{"x", numbers(3)}}).output()), (Floats{7, 7}));
}

TEST(Attach, OutlivesTheTraining) {
  auto train = std::make_unique<Training<Mlp>>(compile_mlp());
  auto infer = train->attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  const NamedArrays now = train->download();
  train.reset();
  expect_near(infer.run({{"x", numbers(3)}}).output().floats(), plain_predict(now, numbers(3)));
}

TEST(Attach, DoesNotDisturbTraining) {
  auto train = compile_mlp(), twin = compile_mlp();
  for (int i = 0; i < 4; ++i) {
    auto infer = train.attach({.inputs = {{"x", {2, 3}}}}, mlp_output);
    infer.run({{"x", numbers(6)}});
    EXPECT_EQ(train.step(Batch(9).feed()).loss(), twin.step(Batch(9).feed()).loss());
  }
  EXPECT_EQ(bytes_of(train.optimizer_state()), bytes_of(twin.optimizer_state()));
}

TEST(Attach, InferenceDropsNothingUnlessAsked) {
  struct Model {
    Param w{{1000}, init::ones()};
  };
  const auto dropped = [](const Model& m, const Inputs&) { return dropout(m.w, 0.25f); };
  auto train =
      compile(Model{}, {.threads = 1}, [](const Model& m, const Inputs&) { return sum(m.w); });
  auto infer = train.attach({}, dropped), noisy = train.attach({.training = true}, dropped);
  auto forward = compile_forward(Model{}, {.threads = 1}, dropped);
  EXPECT_EQ(floats_of(infer.run().output()), Floats(1000, 1.0f));
  EXPECT_EQ(floats_of(forward.run().output()), Floats(1000, 1.0f));
  const Floats first = floats_of(noisy.run().output()), second = floats_of(noisy.run().output());
  int zeros = 0;
  for (const float v : first) {
    EXPECT_TRUE(v == 0 || std::abs(v - 4.0f / 3) < 1e-6f) << v;
    zeros += v == 0;
  }
  EXPECT_GT(zeros, 180);  // 250 expected, deviation 14
  EXPECT_LT(zeros, 320);
  EXPECT_NE(first, second);
}

TEST(Outputs, SeveralByName) {
  auto train = compile(Mlp{}, {.inputs = mlp_inputs(), .threads = 1},
                       [](const Mlp& m, const Inputs& in) -> Outputs {
                         const Tensor y = predict(m, in["x"]);
                         return {{"y", y},
                                 {"loss", mse_loss(y, in["y"])},
                                 {"best", argmax(y)},
                                 {"positive", y > 0},
                                 {"same", in["x"]}};
                       });
  auto twin = compile_mlp();
  const Batch batch(3);
  const NamedArrays before = train.download();
  const Result result = train.step(batch.feed());
  EXPECT_EQ(result.loss(), twin.step(batch.feed()).loss());
  EXPECT_EQ(static_cast<float>(result["loss"].item()), result.loss());
  const std::vector<double> y = plain_predict(before, batch.x);
  expect_near(result["y"].floats(), y);
  EXPECT_EQ(result["y"].shape(), (Shape{4, 2}));
  EXPECT_EQ(result["best"].dtype(), i32);
  EXPECT_EQ(result["positive"].dtype(), boolean);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(result["best"].ints()[r], y[2 * r + 1] > y[2 * r] ? 1 : 0);
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_EQ(result["positive"].ints()[2 * r + c], y[2 * r + c] > 0 ? 1 : 0);
  }
  EXPECT_EQ(floats_of(result["same"]), batch.x);
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

TEST(Outputs, SeveralForwardsWithoutALoss) {
  auto encode = compile_forward(Mlp{}, {.inputs = {{"x", {2, 3}}}, .seed = 4, .threads = 1},
                                [](const Mlp& m, const Inputs& in) { return tanh(m.l1(in["x"])); });
  auto decode =
      encode.attach({.inputs = {{"h", {2, 8}}}}, [](const Mlp& m, const Inputs& in) -> Outputs {
        return {{"y", m.l3(tanh(m.l2(in["h"])))}, {"h", in["h"]}};
      });
  const Floats x = numbers(6);
  const Array h = encode.run({{"x", x}}).output();
  const Result result = decode.run({{"h", h}});
  expect_near(result["y"].floats(), plain_predict(encode.download(), x));
  EXPECT_EQ(floats_of(result["h"]), floats_of(h));
}

TEST(Outputs, StayAsTheyWereWhenLaterStepsRun) {
  auto train = compile_mlp();
  std::vector<Result> results;
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < 5; ++i) {
    results.push_back(train.step(Batch(i).feed()));
    losses.push_back(results.back().loss());
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(results[i].loss(), losses[i]);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_NE(losses[i], losses[0]);
}

Tensor captured(const Mlp& m, const Inputs& in, bool capturing) {
  const auto keep = [&](const char* name, const Tensor& t) {
    return capturing ? capture(name, t) : t;
  };
  const Tensor h = keep("h", tanh(m.l1(keep("x", in["x"]))));
  keep("unused", h * 3);  // nothing else needs it
  const Tensor y = m.l3(tanh(keep("pre", m.l2(h))));
  return mse_loss(keep("y", y), in["y"]);
}

TEST(Captures, OnRequestOnlyAndRight) {
  const TrainingOptions options{.inputs = mlp_inputs(), .threads = 1};
  auto with =
      compile(Mlp{}, options, [](const Mlp& m, const Inputs& in) { return captured(m, in, true); });
  auto without = compile(Mlp{}, options,
                         [](const Mlp& m, const Inputs& in) { return captured(m, in, false); });
  // A capture that is not requested costs nothing.
  EXPECT_EQ(with.counts().kernels, without.counts().kernels);
  EXPECT_EQ(with.counts().arena_bytes, without.counts().arena_bytes);
  const Batch batch(2);
  for (int i = 0; i < 4; ++i) {
    const NamedArrays before = with.download();
    const Result result = with.step(batch.feed(), {.captures = i % 2 == 1});
    EXPECT_EQ(result.loss(), without.step(batch.feed()).loss());
    if (i % 2 == 0) {
      EXPECT_THROW(result.captures(), UserError);
      continue;
    }
    EXPECT_EQ(result.captures().size(), 5u);
    expect_near(result.capture("y").floats(), plain_predict(before, batch.x));
    EXPECT_EQ(result.capture("y").shape(), (Shape{4, 2}));
    EXPECT_EQ(result.capture("pre").shape(), (Shape{4, 8}));
    EXPECT_EQ(floats_of(result.capture("x")), batch.x);
    const Floats h = floats_of(result.capture("h")), tripled = floats_of(result.capture("unused"));
    for (std::size_t k = 0; k < h.size(); ++k) EXPECT_EQ(tripled[k], h[k] * 3);
  }
  EXPECT_EQ(with.fingerprint(), without.fingerprint());
  EXPECT_EQ(with.counts().kernels, without.counts().kernels);
}

TEST(Captures, InForwardPassesAndWhileAccumulating) {
  auto train = compile(Mlp{}, {.inputs = mlp_inputs(), .accumulate = 2, .threads = 1},
                       [](const Mlp& m, const Inputs& in) { return captured(m, in, true); });
  auto infer = train.attach({.inputs = mlp_inputs(1)},
                            [](const Mlp& m, const Inputs& in) { return captured(m, in, true); });
  const Batch batch(2);
  for (int i = 0; i < 4; ++i) {
    const NamedArrays before = train.download();
    expect_near(train.step(batch.feed(), {.captures = true}).capture("y").floats(),
                plain_predict(before, batch.x));
  }
  const Batch one(2, 1);
  expect_near(infer.run(one.feed(), {.captures = true}).capture("y").floats(),
              plain_predict(train.download(), one.x));
}

TEST(SetInput, StaysUntilSetAgain) {
  auto train = compile_mlp(), twin = compile_mlp();
  const Batch a(1), b(2);
  Floats x = a.x;
  train.set_input("x", x);
  x.assign(x.size(), 99.0f);  // it was copied
  const auto expect_step = [&](const Feed& feed, const Batch& same_x, const Batch& same_y) {
    EXPECT_EQ(train.step(feed).loss(), twin.step({{"x", same_x.x}, {"y", same_y.y}}).loss());
  };
  expect_step({{"y", a.y}}, a, a);
  expect_step({{"y", b.y}}, a, b);
  expect_step({{"x", b.x}, {"y", b.y}}, b, b);  // fed: for this step only
  expect_step({{"y", b.y}}, a, b);
  train.set_input("x", b.x);
  expect_step({{"y", a.y}}, b, a);
  train.set_input("y", b.y);
  expect_step({}, b, b);
  EXPECT_EQ(train.step({}, {.captures = true}).loss(), twin.step(b.feed()).loss());
  train.reset(), twin.reset();
  expect_step({}, b, b);
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

TEST(SetInput, BelongsToItsProgram) {
  auto train = compile_mlp();
  auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  infer.set_input("x", numbers(3, 8));
  EXPECT_THROW(train.step({{"y", Batch(1).y}}), UserError);
  expect_near(infer.run().output().floats(), plain_predict(train.download(), numbers(3, 8)));
}

TEST(Feed, TakesVectorsSpansArraysAndNumbers) {
  struct Model {
    Param w{{1}, init::ones()};
  };
  auto run = compile_forward(
      Model{},
      {.inputs = {{"a", {2}}, {"b", {}}, {"n", {2}, i32}, {"flag", {2}, boolean}, {"c", {1}}},
       .threads = 1},
      [](const Model& m, const Inputs& in) {
        return m.w * in["a"] + in["b"] + in["n"] * in["flag"] + in["c"];
      });
  const Floats a = {1, 2};
  const Ints n = {10, 20}, flag = {0, 1};
  const Floats expected = {1 + 0.5f + 0 + 7, 2 + 0.5f + 20 + 7};
  EXPECT_EQ(
      floats_of(run.run({{"a", a}, {"b", 0.5}, {"n", n}, {"flag", flag}, {"c", 7.0f}}).output()),
      expected);
  EXPECT_EQ(floats_of(run.run({{"a", std::span<const float>(a)},
                               {"b", Array({}, Floats{0.5f})},
                               {"n", std::span<const std::int32_t>(n)},
                               {"flag", Array({2}, flag, boolean)},
                               {"c", Array({1}, Floats{7})}})
                          .output()),
            expected);
}

// All memory is freed with the last program.
TEST(Lifetime, EndsWithTheLastProgram) {
  struct Model {
    Param w{{1}, init::ones()};
    std::function<void()> probe;
  };
  auto alive = std::make_shared<int>(0);
  Model model;
  model.probe = [alive] {};
  {
    auto infer = [&] {
      auto train = compile(std::move(model), {.threads = 1},
                           [](const Model& m, const Inputs&) { return sum(m.w); });
      train.step();
      return train.attach({}, [](const Model& m, const Inputs&) { return neg(m.w); });
    }();
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_NEAR(infer.run().output().item(), -1, 0.01);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace tensorgrad::compile_tests
