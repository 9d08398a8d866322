// Properties of a training step apart from its values: reset, rates, replacement, threads.
#include <atomic>
#include <set>
#include <thread>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

// w moves by exactly rate * x in each step, so that the test can compute the rate.
struct Line {
  Param w{{1}, init::zeros()};
};

Training<Line> line(const Schedule& lr, int accumulate = 1) {
  return compile(
      Line{},
      {.inputs = {{"x", {1}}}, .optimizer = Sgd{.lr = lr}, .accumulate = accumulate, .threads = 1},
      [](const Line& m, const Inputs& in) { return sum(m.w * in["x"]); });
}

double rate_of_next(Training<Line>& train) {
  const double before = static_cast<double>(train.download().at("w").floats()[0]);
  train.step({{"x", 1.0f}});
  return before - static_cast<double>(train.download().at("w").floats()[0]);
}

TEST(Reset, EqualsAFreshCompile) {
  for (const int accumulate : {1, 3}) {
    const TrainingOptions options{.inputs = mlp_inputs(),
                                  .clip_grad_norm = 1,
                                  .accumulate = accumulate,
                                  .seed = 3,
                                  .threads = 1};
    auto used = compile(Mlp{}, options, dropout_loss),
         fresh = compile(Mlp{}, options, dropout_loss);
    const NamedArrays start = fresh.download();
    for (std::uint32_t i = 0; i < 7; ++i) used.step(Batch(i).feed(), {.captures = i == 2});
    used.reset();
    EXPECT_EQ(used.steps(), 0);
    EXPECT_EQ(bytes_of(used.download()), bytes_of(start));
    EXPECT_EQ(bytes_of(used.optimizer_state()), bytes_of(fresh.optimizer_state()));
    for (std::uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(used.step(Batch(i).feed()).loss(), fresh.step(Batch(i).feed()).loss()) << i;
    EXPECT_EQ(used.fingerprint(), fresh.fingerprint());
  }
}

TEST(Reset, WithAnotherSeedEqualsACompileWithThatSeed) {
  TrainingOptions options{.inputs = mlp_inputs(), .seed = 3, .threads = 1};
  auto used = compile(Mlp{}, options, dropout_loss);
  const std::string third = used.fingerprint();
  used.step(Batch(1).feed());
  used.reset(8);
  options.seed = 8;
  auto fresh = compile(Mlp{}, options, dropout_loss);
  EXPECT_NE(used.fingerprint(), third);
  EXPECT_EQ(used.fingerprint(), fresh.fingerprint());
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(used.step(Batch(i).feed()).loss(), fresh.step(Batch(i).feed()).loss());
  used.reset();  // keeps the seed it was given last
  EXPECT_EQ(used.fingerprint(), compile(Mlp{}, options, dropout_loss).fingerprint());
}

// Random numbers depend on seed and step: every step draws new ones, and every run the same.
TEST(Dropout, DrawsAnewInEachStep) {
  const auto losses = [](std::uint32_t seed) {
    auto train = compile(
        Mlp{}, {.inputs = mlp_inputs(), .optimizer = Sgd{.lr = 0}, .seed = seed, .threads = 1},
        dropout_loss);
    train.upload(compile_mlp().download());  // the same weights for every seed
    std::vector<float> out;
    for (int i = 0; i < 6; ++i) out.push_back(train.step(Batch(1).feed()).loss());
    return out;
  };
  const auto first = losses(1);
  EXPECT_EQ(std::set<float>(first.begin(), first.end()).size(), first.size());
  EXPECT_EQ(losses(1), first);
  const auto other = losses(2);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NE(other[i], first[i]) << i;
}

TEST(Rates, FollowTheSchedule) {
  auto train = line(linear(0.5, 0.25, 2));
  EXPECT_EQ(train.lr(), 0.5);
  EXPECT_EQ(rate_of_next(train), 0.5);
  EXPECT_EQ(train.lr(), 0.375);
  EXPECT_EQ(rate_of_next(train), 0.375);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rate_of_next(train), 0.25);
  train.reset();
  EXPECT_EQ(rate_of_next(train), 0.5);
}

TEST(Rates, AnyFunctionOfTheUpdate) {
  std::vector<std::int64_t> seen;
  auto train = line([&](std::int64_t update) {
    seen.push_back(update);
    return 1.0 / static_cast<double>(std::int64_t{1} << update);
  });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(rate_of_next(train), 1.0 / (1 << i));
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST(Rates, SetLiveAndKeptByStepsAlreadyEnqueued) {
  auto train = line(0.5);
  const Result first = train.step({{"x", 1.0f}});  // nobody has read it yet
  train.set_lr(0.25);
  const Result second = train.step({{"x", 1.0f}});
  EXPECT_EQ(train.lr(), 0.25);
  EXPECT_EQ(first.loss(), 0);
  EXPECT_EQ(second.loss(), -0.5);
  EXPECT_EQ(train.download().at("w").floats()[0], -0.75f);
}

TEST(Rates, AScheduleStartsWhereItIsSet) {
  for (const int accumulate : {1, 2}) {
    auto train = line(0.5, accumulate);
    for (int i = 0; i < 10 * accumulate; ++i) train.step({{"x", 1.0f}});
    train.set_lr(linear(1, 0, 4));
    for (const double expected : {1.0, 0.75, 0.5, 0.25, 0.0, 0.0}) {
      EXPECT_EQ(train.lr(), expected);
      for (int i = 1; i < accumulate; ++i) EXPECT_EQ(rate_of_next(train), 0);
      EXPECT_EQ(rate_of_next(train), expected);
    }
    train.reset();
    EXPECT_EQ(train.lr(), 1);
  }
}

TEST(Rates, AResumedRunGoesOnWithAScheduleSetLive) {
  auto train = line(0.5);
  for (int i = 0; i < 10; ++i) train.step({{"x", 1.0f}});
  EXPECT_EQ(train.optimizer_state().count("lr_start"), 0u);
  train.set_lr(linear(1, 0, 4));
  for (int i = 0; i < 2; ++i) train.step({{"x", 1.0f}});
  const NamedArrays state = train.optimizer_state();
  auto resumed = line(0.5);
  resumed.set_lr(linear(1, 0, 4));
  resumed.upload_optimizer_state(state);
  EXPECT_EQ(resumed.lr(), 0.5);
  EXPECT_EQ(bytes_of(resumed.optimizer_state()), bytes_of(state));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rate_of_next(resumed), rate_of_next(train));
  // A state from before: the schedule counts all updates.
  NamedArrays old = state;
  old.erase("lr_start");
  resumed.upload_optimizer_state(old);
  EXPECT_EQ(resumed.lr(), 0);
  // A constant rate has no start.
  train.set_lr(0.25);
  EXPECT_EQ(train.optimizer_state().count("lr_start"), 0u);
}

TEST(Rates, CountUpdatesNotStepsWhenAccumulating) {
  auto train = line(staircase(0.5, 0.5, 1), 2);
  for (const double expected : {0.0, 0.5, 0.0, 0.25, 0.0, 0.125}) {
    EXPECT_EQ(rate_of_next(train), expected);
  }
  EXPECT_EQ(train.steps(), 6);
}

TEST(Replace, AFailedCompileLeavesTheOldOneIntact) {
  auto train = compile_mlp(), twin = compile_mlp();
  for (auto* each : {&train, &twin}) each->step(Batch(1).feed());
  auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  EXPECT_THROW(train = compile_mlp({.inputs = {{"x", {4, 5}}, {"y", {4, 2}}}}), UserError);
  EXPECT_THROW(train = compile_mlp({.device = "none"}), UserError);
  EXPECT_EQ(train.step(Batch(2).feed()).loss(), twin.step(Batch(2).feed()).loss());
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
  EXPECT_EQ(infer.fingerprint(), twin.fingerprint());
  train = compile_mlp({.seed = 5});  // and one that works replaces it
  EXPECT_EQ(train.steps(), 0);
  EXPECT_NE(train.fingerprint(), twin.fingerprint());
  EXPECT_EQ(infer.fingerprint(), twin.fingerprint());
}

TEST(Threads, StepsFromSeveralThreadsSerialise) {
  constexpr int kThreads = 4, kSteps = 25;
  auto train = compile_mlp({.optimizer = Adam{.lr = 0.01}, .threads = 2}),
       serial = compile_mlp({.optimizer = Adam{.lr = 0.01}});
  auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  const Batch batch(1);
  std::vector<std::thread> threads;
  std::atomic<int> finite{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSteps; ++i) {
        finite += std::isfinite(train.step(batch.feed()).loss());
        if (t == 0)
          finite +=
              std::isfinite(infer.run({{"x", Floats{1, 2, 3}}}).output().floats()[0]) ? 0 : 1000;
        if (t == 1 && i % 5 == 0) train.download();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(finite, kThreads * kSteps);
  EXPECT_EQ(train.steps(), kThreads * kSteps);
  // All feeds are the same, so the order does not matter.
  for (int i = 0; i < kThreads * kSteps; ++i) serial.step(batch.feed());
  EXPECT_EQ(train.fingerprint(), serial.fingerprint());
}

// Copies of a result share its data. Meanwhile more steps run, and the program is destroyed before
// its results.
TEST(Threads, CopiesOfAResultAreReadAtOnce) {
  auto train = compile_mlp(), twin = compile_mlp();
  std::vector<Result> results;
  Floats expected;
  for (std::uint32_t i = 0; i < 50; ++i) {
    results.push_back(train.step(Batch(i).feed()));
    expected.push_back(twin.step(Batch(i).feed()).loss());
  }
  std::vector<Floats> got(4);
  std::vector<std::thread> threads;
  for (Floats& own : got)
    threads.emplace_back([&own, copies = results] {
      for (const Result& result : copies) own.push_back(result.finite() ? result.loss() : -1);
    });
  results.clear();
  for (std::uint32_t i = 50; i < 60; ++i) train.step(Batch(i).feed());
  train = compile_mlp();
  for (std::thread& thread : threads) thread.join();
  for (const Floats& own : got) EXPECT_EQ(own, expected);
}

TEST(Threads, SeveralThreadsCompileAtOnce) {
  const auto work = [] {
    auto train = compile(Mlp{}, {.inputs = mlp_inputs(), .threads = 2}, dropout_loss);
    for (std::uint32_t i = 0; i < 5; ++i) train.step(Batch(i).feed());
    auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
    infer.run({{"x", Floats{1, 2, 3}}});
    return train.fingerprint();
  };
  const std::string expected = work();
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& own : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) own = work();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& own : got) EXPECT_EQ(own, expected);
}

}  // namespace
}  // namespace tensorgrad::compile_tests
