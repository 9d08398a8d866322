// The calls that do not block, on a device where nothing happens before the test pumps it.
#include <cmath>
#include <stdexcept>

#include "tests/late/common.h"

namespace tensorgrad {
namespace {

using namespace late_tests;

// What callbacks have reported, in order: "a 0.5" or "b: the error".
struct Log {
  std::vector<std::string> lines;

  std::function<void(const Result&)> of(const std::string& name) {
    return [this, name](const Result& result) {
      EXPECT_TRUE(result.ready());
      try {
        lines.push_back(name + " " + std::to_string(result.loss()));
      } catch (const std::exception& error) {
        lines.push_back(name + ": " + error.what());
      }
    };
  }
  std::vector<std::string> take() { return std::exchange(lines, {}); }
};

using Lines = std::vector<std::string>;

TEST_F(Async, CompileTracesInTheCallAndIsReadyLater) {
  bool traced = false;
  const auto future = compile_async(Mlp{}, options(), [&](const Mlp& m, const Inputs& in) {
    traced = true;
    return mlp_loss(m, in);
  });
  EXPECT_TRUE(traced);
  EXPECT_FALSE(future.ready());
  bool called = false;
  future.then([&](const Future<Training<Mlp>>& done) {
    called = true;
    EXPECT_EQ(done.get().device(), "late");
  });
  std::size_t entries = 0;
  while (!future.ready()) {
    poll();
    const bool before = called;
    entries += device->pump();
    EXPECT_EQ(called, before) << "callbacks run in poll() only";
  }
  EXPECT_GT(entries, 5u);
  poll();
  EXPECT_TRUE(called);
}

TEST_F(Async, WrongOptionsAreErrorsOfTheCall) {
  EXPECT_EQ(error_of([&] { compile_async(Mlp{}, options({.accumulate = 0}), mlp_loss); }),
            "compile: accumulate must be at least 1: 0");
  EXPECT_EQ(error_of([&] {
              compile_async(Mlp{}, options(),
                            [](const Mlp& m, const Inputs& in) { return m.l1(in["z"]); });
            }).substr(0, 29),
            "input: there is no input 'z':");
}

TEST_F(Async, StepsAreReadyLaterAndHaveTheValuesOfTheTwin) {
  auto program = train();
  auto expected = twin();
  Log log;
  Lines wanted;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    program.step_async(Batch(i).feed()).then(log.of(name));
    wanted.push_back(name + " " + std::to_string(expected.step(Batch(i).feed()).loss()));
  }
  poll();
  EXPECT_EQ(log.lines, Lines{});
  EXPECT_EQ(program.steps(), 3);
  settle();
  EXPECT_EQ(log.lines, wanted);
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
}

TEST_F(Async, PollSaysWhetherSomethingIsUnderWay) {
  EXPECT_FALSE(poll());
  auto program = train();
  EXPECT_FALSE(poll());
  const Result result = program.step_async(Batch(0).feed());
  EXPECT_FALSE(poll()) << "nobody waits for it";
  result.then([](const Result&) {});
  EXPECT_TRUE(poll());
  settle();
  EXPECT_FALSE(poll());
}

TEST_F(Async, ReadyAsksForTheValues) {
  auto program = train();
  const Result result = program.step_async(Batch(0).feed());
  device->pump_all();
  EXPECT_FALSE(result.ready());  // nobody has asked yet
  device->pump_all();
  EXPECT_TRUE(result.ready());
  EXPECT_EQ(result.loss(), twin().step(Batch(0).feed()).loss());
}

TEST_F(Async, CallbacksMayUseTheLibrary) {
  auto program = train();
  auto expected = twin();
  std::vector<float> losses;
  std::function<void(const Result&)> next = [&](const Result& result) {
    losses.push_back(result.loss());
    if (losses.size() == 2) program.set_lr(0.1);
    if (losses.size() < 5)
      program.step_async(Batch(static_cast<std::uint32_t>(losses.size())).feed()).then(next);
  };
  program.step_async(Batch(0).feed()).then(next);
  settle();
  ASSERT_EQ(losses.size(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    if (i == 2) expected.set_lr(0.1);
    EXPECT_EQ(losses[i], expected.step(Batch(i).feed()).loss()) << i;
  }
}

TEST_F(Async, AnExceptionOfACallbackLeavesPollAndTheOthersRunLater) {
  auto program = train();
  Log log;
  program.step_async(Batch(0).feed()).then([](const Result&) { throw std::runtime_error("mine"); });
  program.step_async(Batch(1).feed()).then(log.of("b"));
  EXPECT_THROW(settle(), std::runtime_error);
  settle();
  EXPECT_EQ(log.lines.size(), 1u);
}

// The first step with captures compiles its own kernels. It keeps its place, and its feed.
TEST_F(Async, AStepThatIsNotCompiledYetKeepsItsPlace) {
  for (const int accumulate : {1, 2}) {
    auto program = train({.accumulate = accumulate});
    auto expected = twin({.accumulate = accumulate});
    std::vector<Result> results;
    for (std::uint32_t i = 0; i < 6; ++i) {
      Batch batch(i);
      results.push_back(program.step_async(batch.feed(), {.captures = i == 1 || i == 2}));
      std::fill(batch.x.begin(), batch.x.end(), 1e30f);  // the library has a copy
    }
    EXPECT_EQ(program.steps(), 6);
    settle();
    for (std::uint32_t i = 0; i < 6; ++i) {
      const bool captures = i == 1 || i == 2;
      const Result wanted = expected.step(Batch(i).feed(), {.captures = captures});
      results[i].ready();  // asks
      settle();
      ASSERT_TRUE(results[i].ready());
      EXPECT_EQ(results[i].loss(), wanted.loss()) << i;
      if (captures) {
        EXPECT_EQ(bytes_of(results[i].captures()), bytes_of(wanted.captures())) << i;
      }
    }
    EXPECT_EQ(weights(program), bytes_of(expected.download()));
  }
}

TEST_F(Async, AFullDeviceBlocksNobody) {
  auto program = train();
  auto expected = twin();
  for (std::uint32_t i = 0; i < 20; ++i) program.step_async(Batch(i).feed());
  EXPECT_TRUE(device->full());
  EXPECT_EQ(program.steps(), 20);
  settle();
  for (std::uint32_t i = 0; i < 20; ++i) expected.step(Batch(i).feed());
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
}

// Calls of the host take their place behind queued steps, with the values that they had.
TEST_F(Async, OtherCallsQueueBehindSteps) {
  auto program = train({.optimizer = Adam{.lr = 0.01}});
  auto expected = twin({.optimizer = Adam{.lr = 0.01}});
  const auto play = [](Training<Mlp>& on, const std::function<void(std::uint32_t)>& step) {
    for (std::uint32_t i = 0; i < 5; ++i) step(i);
    on.set_lr(0.25);
    on.set_lr(on.lr() * 2);
    step(5);
    NamedArrays some{{"l2.W", Array({8, 8}, compile_tests::numbers(64))}};
    on.upload(some, Upload::partial);
    some.at("l2.W").floats()[0] = 1e30f;
    for (std::uint32_t i = 6; i < 9; ++i) step(i);
    on.reset_optimizer();
    step(9);
  };
  play(program, [&](std::uint32_t i) { program.step_async(Batch(i).feed()); });
  play(expected, [&](std::uint32_t i) { expected.step(Batch(i).feed()); });
  settle();
  EXPECT_EQ(program.steps(), 1);
  EXPECT_EQ(program.lr(), 0.5);
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
  program.step_async(Batch(1).feed());
  program.step_async(Batch(1).feed());
  program.step_async(Batch(1).feed());
  program.step_async(Batch(1).feed());
  program.reset(7);
  EXPECT_EQ(weights(program), bytes_of(twin({.seed = 7}).download()));
}

TEST_F(Async, TheRateIsThatOfTheNextStepBehindTheQueue) {
  for (const int accumulate : {1, 2}) {
    auto program = train({.optimizer = Sgd{.lr = linear(8, 0, 8)}, .accumulate = accumulate});
    auto expected = twin({.optimizer = Sgd{.lr = linear(8, 0, 8)}, .accumulate = accumulate});
    for (int i = 0; i < 12; ++i) {
      if (i == 8) {
        program.set_lr(linear(4, 0, 4));
        expected.set_lr(linear(4, 0, 4));
      }
      EXPECT_EQ(program.lr(), expected.lr()) << i;
      program.step_async(Batch(1).feed());
      expected.step(Batch(1).feed());
    }
    settle();
    EXPECT_EQ(program.lr(), expected.lr());
    EXPECT_EQ(weights(program), bytes_of(expected.download()));
  }
}

TEST_F(Async, HeldInputsAreThoseOfTheCall) {
  auto program = train();
  auto expected = twin();
  for (std::uint32_t i = 0; i < 8; ++i) {
    const Batch batch(i);
    program.set_input("x", batch.x);
    expected.set_input("x", batch.x);
    program.step_async({{"y", batch.y}}, {.captures = i == 0});
    expected.step({{"y", batch.y}});
  }
  settle();
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
}

TEST_F(Async, WrongInputIsAnErrorOfTheCallAndChangesNothing) {
  auto program = train();
  const Floats two = {1, 2};
  EXPECT_EQ(error_of([&] {
              program.step_async({{"x", two}, {"y", two}});
            }),
            "input: 'x' is f32[4,3] and needs 12 values, 2 were fed");
  EXPECT_EQ(program.steps(), 0);
  auto plain = settled(program.attach_async({.inputs = {{"x", {4, 3}}}}, mlp_output));
  EXPECT_EQ(error_of([&] {
              plain.run_async({{"x", Batch(0).x}}, {.captures = true});
            }),
            "captures: this program has none\n"
            "  hint: capture(\"name\", tensor) in the traced function names one");
  EXPECT_EQ(device->queued(), 0u);
}

TEST_F(Async, StateTravelsBothWays) {
  auto program = train({.optimizer = Adam{.lr = 0.01}});
  for (std::uint32_t i = 0; i < 3; ++i) program.step_async(Batch(i).feed());
  const auto parameters = program.download_async();
  const auto state = program.optimizer_state_async();
  const auto gradients = program.gradients_async();
  for (std::uint32_t i = 3; i < 6; ++i) program.step_async(Batch(i).feed());
  settle();
  auto expected = twin({.optimizer = Adam{.lr = 0.01}});
  for (std::uint32_t i = 0; i < 3; ++i) expected.step(Batch(i).feed());
  EXPECT_EQ(bytes_of(parameters.get()), bytes_of(expected.download()));
  EXPECT_EQ(bytes_of(state.get()), bytes_of(expected.optimizer_state()));
  EXPECT_EQ(bytes_of(gradients.get()), bytes_of(expected.gradients()));
  const std::string after = weights(program);

  auto resumed = train({.optimizer = Adam{.lr = 0.01}, .seed = 9});
  resumed.step_async(Batch(8).feed());
  const auto restored = resumed.restore_async(parameters.get(), state.get());
  for (std::uint32_t i = 3; i < 6; ++i) resumed.step_async(Batch(i).feed());
  settle();
  EXPECT_TRUE(restored.ready());
  EXPECT_EQ(resumed.steps(), 6);
  EXPECT_EQ(weights(resumed), after);
  EXPECT_EQ(error_of([&] { resumed.restore_async({}, state.get()); }).substr(0, 16),
            "upload: missing:");
}

TEST_F(Async, ProgramsShareParameters) {
  auto program = train();
  auto infer = settled(program.attach_async({.inputs = {{"x", {4, 3}}}}, mlp_output));
  auto forward = settled(
      compile_forward_async(Mlp{}, {.inputs = {{"x", {4, 3}}}, .device = "hand"}, mlp_output));
  const Batch batch(3);
  const Result before = infer.run_async({{"x", batch.x}}),
               same = forward.run_async({{"x", batch.x}});
  program.step_async(batch.feed());
  const Result after = infer.run_async({{"x", batch.x}});
  for (const Result* each : {&before, &same, &after}) each->ready();
  settle();
  auto expected = twin();
  auto expected_infer = expected.attach({.inputs = {{"x", {4, 3}}}}, mlp_output);
  const auto output = [](const Result& result) { return bytes_of({{"y", result.output()}}); };
  EXPECT_EQ(output(before), output(expected_infer.run({{"x", batch.x}})));
  EXPECT_EQ(output(before), output(same));
  expected.step(batch.feed());
  EXPECT_EQ(output(after), output(expected_infer.run({{"x", batch.x}})));
}

// ---- profiles

TEST_F(Async, AProfileKeepsItsPlaceAmongSteps) {
  for (const int accumulate : {1, 3}) {
    const TrainingOptions given{.optimizer = Adam{.lr = 0.01}, .accumulate = accumulate};
    auto program = train(given), expected = twin(given);
    program.step_async(Batch(0).feed());
    Batch measured(1);
    const auto profile = program.profile_async(2, measured.feed());
    std::fill(measured.x.begin(), measured.x.end(), 1e30f);  // the library has a copy
    // The round that has begun is finished first.
    const int runs = 2 * accumulate - 1 % accumulate;
    EXPECT_EQ(program.steps(), 1 + runs);
    const Counts counts = program.counts();
    Log log;
    program.step_async(Batch(2).feed()).then(log.of("a"));
    EXPECT_EQ(program.steps(), 2 + runs);
    EXPECT_FALSE(profile.ready());
    settle();
    ASSERT_TRUE(profile.ready());
    ASSERT_EQ(static_cast<std::int64_t>(profile.get().size()), counts.kernels);
    for (std::size_t i = 0; i < profile.get().size(); ++i) {
      EXPECT_EQ(profile.get()[i].kernel, static_cast<std::int64_t>(i));
      EXPECT_GT(profile.get()[i].microseconds, 0) << i;
    }
    EXPECT_EQ(program.counts().dispatches, counts.dispatches);
    expected.step(Batch(0).feed());
    for (int i = 0; i < runs; ++i) expected.step(Batch(1).feed());
    EXPECT_EQ(log.take(), Lines{"a " + std::to_string(expected.step(Batch(2).feed()).loss())});
    EXPECT_EQ(weights(program), bytes_of(expected.download()));
    EXPECT_EQ(program.steps(), 2 + runs);
  }
}

TEST_F(Async, AProfileReadsHeldInputsAndRefusesWrongOnesInTheCall) {
  auto program = train();
  program.set_input("x", Batch(0).x);
  EXPECT_EQ(error_of([&] { program.profile_async(); }),
            "input: 'y' is missing: it is f32[4,2]\n  hint: feed it, or set_input() once");
  EXPECT_EQ(error_of([&] { program.profile_async(0); }), "profile: at least one step: 0");
  EXPECT_EQ(program.steps(), 0);
  EXPECT_EQ(device->queued(), 0u);
  const Batch batch(0);
  EXPECT_FALSE(settled(program.profile_async(1, {{"y", batch.y}})).empty());
  auto expected = twin();
  expected.step(batch.feed());
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
}

TEST_F(Async, AProfileHasTheErrorOfItsStep) {
  auto program = train();
  auto expected = twin();
  const auto profile = program.profile_async(3, bad_batch(0).feed());
  Log log;
  settle();
  const std::string error = "step 0: the loss is NaN: the input 'x' contains NaN values";
  EXPECT_EQ(error_of([&] { profile.get(); }), error);
  EXPECT_EQ(program.steps(), 1);
  program.step_async(Batch(1).feed()).then(log.of("good"));
  settle();
  EXPECT_EQ(log.take(), Lines{"good " + std::to_string(expected.step(Batch(1).feed()).loss())});

  const auto lost = program.profile_async(3, Batch(0).feed());
  device->pump(4);
  device->lose();
  settle();
  EXPECT_THROW(lost.get(), DeviceError);
}

// It leaves the random numbers of later runs as they are.
TEST_F(Async, AProfileOfAForwardProgramChangesNothing) {
  const auto noisy = [](const Mlp& m, const Inputs& in) { return dropout(m.l1(in["x"]), 0.5f); };
  const AttachOptions given{.inputs = {{"x", {4, 3}}}, .training = true};
  auto owner = train(), expected_owner = twin();
  auto program = settled(owner.attach_async(given, noisy));
  auto expected = expected_owner.attach(given, noisy);
  const Batch batch(0);
  const Feed feed{{"x", batch.x}};
  for (int i = 0; i < 2; ++i) {
    const Result result = program.run_async(feed);
    const auto profile = program.profile_async(3, feed);
    result.ready();
    settle();
    EXPECT_EQ(bytes_of({{"y", result.output()}}), bytes_of({{"y", expected.run(feed).output()}}));
    EXPECT_EQ(profile.get().size(), static_cast<std::size_t>(program.counts().kernels));
  }
}

// On the CPU a step takes one poll, so that a loop stays responsive.
TEST_F(Async, AStepOfAProfileTakesOnePoll) {
  auto program = twin();
  const auto profile = program.profile_async(5, Batch(0).feed());
  int polls = 0;
  for (; !profile.ready(); ++polls) poll();
  EXPECT_EQ(polls, 5);
  EXPECT_EQ(program.profile(2, Batch(0).feed()).size(), profile.get().size());
  EXPECT_EQ(program.steps(), 7);
}

// ---- failures

TEST_F(Async, TheReasonOfABadStepIsLookedForWhileOthersWait) {
  auto program = train();
  auto expected = twin();
  program.step_async(Batch(0).feed());
  expected.step(Batch(0).feed());
  const Result bad = program.step_async(bad_batch(1).feed());
  Log log;
  bad.then(log.of("bad"));
  // The status arrives, and the diagnosis begins.
  while (device->pump() > 0) {
  }
  poll();
  EXPECT_FALSE(bad.ready());
  EXPECT_GT(device->queued(), 0u);
  for (const char* name : {"b", "c"}) program.step_async(Batch(2).feed()).then(log.of(name));
  settle();
  const std::string error = "step 1: the loss is NaN: the input 'x' contains NaN values";
  EXPECT_EQ(log.take(), (Lines{"bad: " + error, "b: " + error, "c: " + error}));
  EXPECT_EQ(program.steps(), 2);  // the failed one; those behind it were not made
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
  program.step_async(Batch(3).feed()).then(log.of("d"));
  settle();
  EXPECT_EQ(log.lines[0], "d " + std::to_string(expected.step(Batch(3).feed()).loss()));
}

TEST_F(Async, StepsOnTheDeviceBehindABadOneChangeNothingAndSayTheSame) {
  auto program = train();
  auto expected = twin();
  Log log;
  program.step_async(Batch(0).feed()).then(log.of("a"));
  program.step_async(bad_batch(1).feed()).then(log.of("b"));
  program.step_async(Batch(2).feed()).then(log.of("c"));
  settle();
  const std::string error = "step 1: the loss, a gradient or the update is not finite";
  EXPECT_EQ(log.take(), (Lines{"a " + std::to_string(expected.step(Batch(0).feed()).loss()),
                               "b: " + error, "c: " + error}));
  EXPECT_EQ(weights(program), bytes_of(expected.download()));
}

TEST_F(Async, ABadStepThatNobodyReadsFailsTheNext) {
  auto program = train();
  program.step_async(bad_batch(0).feed());
  const auto noticed = program.optimizer_state_async();
  Log log;
  program.step_async(Batch(1).feed()).then(log.of("next"));
  settle();
  EXPECT_EQ(noticed.get().at("step").ints()[0], 1);
  EXPECT_EQ(log.take(), Lines{"next: step 0: the loss is NaN: the input 'x' contains NaN values"});
  program.step_async(bad_batch(1).feed());
  const auto waited = program.wait_async();
  settle();
  EXPECT_THROW(waited.get(), NonFiniteError);
  program.step_async(Batch(1).feed()).then(log.of("good"));
  settle();
  EXPECT_EQ(log.lines[0].substr(0, 5), "good ");
}

TEST_F(Async, SkippedStepsAreNoErrors) {
  auto program = train({.non_finite = NonFinite::skip});
  const Result bad = program.step_async(bad_batch(0).feed());
  settle();
  bad.ready();
  settle();
  EXPECT_FALSE(bad.finite());
  EXPECT_EQ(weights(program), bytes_of(twin().download()));
}

struct Table {
  Embedding table{5, 3};
};

TEST_F(Async, ABadIdIsTheErrorOfItsStepAndOfThoseBehindIt) {
  const auto loss = [](const Table& m, const Inputs& in) {
    return mean(square(m.table(in["ids"])));
  };
  const auto with = [](std::int32_t id) { return std::vector<std::int32_t>{0, id, 1, 2}; };
  auto program = settled(compile_async(Table{}, options({.inputs = {{"ids", {4}, i32}}}), loss));
  auto expected = compile(Table{}, options({.inputs = {{"ids", {4}, i32}}}, "cpu"), loss);
  Log log;
  program.step_async({{"ids", with(3)}}).then(log.of("a"));
  program.step_async({{"ids", with(7)}}).then(log.of("b"));
  program.step_async({{"ids", with(2)}}).then(log.of("c"));
  settle();
  ASSERT_EQ(log.lines.size(), 3u);
  EXPECT_EQ(log.lines[0], "a " + std::to_string(expected.step({{"ids", with(3)}}).loss()));
  const std::string error = ": step 1: Embedding: id 7 is out of range: ids are 0 to 4\n";
  EXPECT_EQ(log.lines[1].substr(0, error.size() + 1), "b" + error);
  EXPECT_EQ(log.lines[2].substr(0, error.size() + 1), "c" + error);
  EXPECT_EQ(program.steps(), 1);
  const auto weights_now = program.download_async();
  settle();
  EXPECT_EQ(bytes_of(weights_now.get()), bytes_of(expected.download()));
  const Result good = program.step_async({{"ids", with(2)}});
  good.ready();
  settle();
  EXPECT_EQ(good.loss(), expected.step({{"ids", with(2)}}).loss());

  auto infer = settled(
      program.attach_async({.inputs = {{"ids", {4}, i32}}},
                           [](const Table& m, const Inputs& in) { return m.table(in["ids"]); }));
  const Result wrong = infer.run_async({{"ids", with(9)}});
  wrong.ready();
  settle();
  EXPECT_EQ(error_of([&] { wrong.output(); }).substr(0, 56),
            "Embedding: id 9 is out of range: ids are 0 to 4\n  in tab");
  const Result right = infer.run_async({{"ids", with(1)}});
  right.ready();
  settle();
  EXPECT_EQ(right.output().count(), 12);
}

TEST_F(Async, LackOfMemoryIsAnErrorOfTheFutureOrTheResult) {
  device->run_out_of_memory();
  const auto failed = compile_async(Mlp{}, options(), mlp_loss);
  settle();
  ASSERT_TRUE(failed.ready());
  EXPECT_THROW(failed.get(), OutOfMemoryError);

  auto program = train();
  auto expected = twin();
  Log log;
  device->run_out_of_memory();
  const Result captured = program.step_async(Batch(0).feed(), {.captures = true});
  captured.then(log.of("captured"));
  const Result behind = program.step_async(Batch(1).feed());
  behind.then(log.of("behind"));
  settle();
  EXPECT_THROW(captured.loss(), OutOfMemoryError);
  const float loss = expected.step(Batch(1).feed()).loss();
  EXPECT_EQ(behind.loss(), loss);
  ASSERT_EQ(log.lines.size(), 2u);
  EXPECT_EQ(log.lines[0].substr(0, log.lines[0].find('\n')),
            "captured: late: out of memory: for outputs");
  EXPECT_EQ(log.lines[1], "behind " + std::to_string(loss));
  EXPECT_EQ(program.steps(), 1);
  const Result again = program.step_async(Batch(2).feed(), {.captures = true});
  again.ready();
  settle();
  EXPECT_EQ(again.loss(), expected.step(Batch(2).feed()).loss());
}

TEST_F(Async, ALostDeviceIsTheErrorOfEverythingUnderWay) {
  auto program = train();
  Log log;
  for (const char* name : {"a", "b", "c", "d", "e"})
    program.step_async(Batch(1).feed()).then(log.of(name));
  const auto download = program.download_async();
  const auto attached = program.attach_async({.inputs = {{"x", {4, 3}}}}, mlp_output);
  device->pump(3);
  device->lose();
  settle();
  const std::string error = ": late: the device was lost";
  EXPECT_EQ(log.take(), (Lines{"a" + error, "b" + error, "c" + error, "d" + error, "e" + error}));
  EXPECT_THROW(download.get(), DeviceError);
  EXPECT_THROW(attached.get(), DeviceError);
  program.step_async(Batch(1).feed()).then(log.of("f"));
  settle();
  EXPECT_EQ(log.lines, Lines{"f" + error});
  EXPECT_THROW(program.step(Batch(1).feed()), DeviceError);
  EXPECT_THROW(program.wait(), DeviceError);
}

// ---- dropping

// Everything is dropped after any number of entries. The sanitizers look on.
TEST_F(Async, DroppingEverythingAtAnyMomentIsSafe) {
  bool more = true;
  for (std::size_t moment = 0; more; ++moment) {
    int calls = 0;
    {
      auto compiling = std::make_optional(compile_async(Mlp{}, options(), mlp_loss));
      std::size_t left = moment;
      const auto pump = [&] {
        for (; left > 0; --left) {
          poll();
          if (device->pump() == 0) {
            poll();
            if (device->pump() == 0) return;
          }
        }
      };
      pump();
      if (compiling->ready()) {
        auto program = std::make_optional(compiling->take());
        compiling.reset();
        const auto attached = program->attach_async({.inputs = {{"x", {4, 3}}}}, mlp_output);
        program->step_async(Batch(0).feed(), {.captures = true});
        program->step_async(bad_batch(1).feed()).then([&](const Result&) { ++calls; });
        program->step_async(Batch(2).feed()).then([&](const Result&) { ++calls; });
        const auto profile = program->profile_async(2, Batch(1).feed());
        const auto download = program->download_async();
        const auto restored = program->optimizer_state_async();
        const Result last = program->step_async(Batch(3).feed());
        pump();
        more = left == 0;
        program.reset();
      } else {
        calls = 2;
      }
    }
    settle();
    EXPECT_EQ(calls, 2) << "after " << moment << " entries: callbacks are called once";
  }
}

TEST_F(Async, ACallbackHearsThatItsProgramIsGone) {
  Log log;
  {
    auto program = train();
    for (const char* name : {"a", "b", "c", "d", "e"})
      program.step_async(Batch(0).feed()).then(log.of(name));
  }
  poll();
  const std::string error = ": the program was destroyed before this call was finished";
  EXPECT_EQ(log.lines, (Lines{"a" + error, "b" + error, "c" + error, "d" + error, "e" + error}));
}

TEST_F(Async, AResultKeepsItsProgramUntilItIsReady) {
  std::optional<Result> result;
  {
    auto program = train();
    for (std::uint32_t i = 0; i < 6; ++i) result = program.step_async(Batch(0).feed());
  }
  result->ready();
  settle();
  auto expected = twin();
  for (int i = 0; i < 5; ++i) expected.step(Batch(0).feed());
  EXPECT_EQ(result->loss(), expected.step(Batch(0).feed()).loss());
}

TEST_F(Async, ACallbackMayDropTheProgram) {
  auto program = std::make_optional(train());
  bool called = false;
  program->step_async(Batch(0).feed()).then([&](const Result& result) {
    called = true;
    program.reset();
    EXPECT_GT(result.loss(), 0);
  });
  settle();
  EXPECT_TRUE(called);
  EXPECT_FALSE(program);
}

// ---- callbacks in the middle of a call

TEST_F(Async, AScheduleCannotUseItsProgram) {
  Training<Mlp>* self = nullptr;
  std::string error;
  std::int64_t seen = -1;
  auto program = compile(Mlp{},
                         options({.optimizer = Sgd{.lr =
                                                       [&](std::int64_t) {
                                                         if (!self) return 0.1;
                                                         seen = self->steps();
                                                         error =
                                                             error_of([&] { self->download(); });
                                                         poll();
                                                         return 0.1;
                                                       }}},
                                 "cpu"),
                         mlp_loss);
  bool called = false;
  program.step_async(Batch(0).feed()).then([&](const Result& result) {
    called = true;
    EXPECT_EQ(error_of([&] { result.loss(), program.download(); }), "no error");
  });
  self = &program;
  program.step(Batch(0).feed());
  EXPECT_FALSE(called) << "callbacks do not run in the middle of a call";
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(error,
            "a callback that reports progress, or a learning-rate schedule, used the program that "
            "called it\n  hint: remember the call and make it later");
  self = nullptr;
  poll();
  EXPECT_TRUE(called);
}

// ---- blocking calls among the others

TEST_F(Async, BlockingCallsKeepTheirPlace) {
  const auto polled = std::make_shared<LateDevice>(LateDevice::Pace::by_poll);
  add_late_device("polled", polled);
  auto program = compile(Mlp{}, options({}, "polled"), mlp_loss);
  auto expected = twin();
  for (std::uint32_t i = 0; i < 12; ++i) {
    const float wanted = expected.step(Batch(i).feed()).loss();
    if (i % 3 == 0) {
      program.step_async(Batch(i).feed(), {.captures = i == 6});
    } else {
      const Result result = program.step(Batch(i).feed());
      if (i % 3 == 2) {
        EXPECT_EQ(result.loss(), wanted);
      }
    }
  }
  EXPECT_EQ(program.fingerprint(), expected.fingerprint());
  program.set_input("x", Batch(1).x);
  program.set_input("y", Batch(1).y);
  EXPECT_EQ(program.profile(2).size(), static_cast<std::size_t>(program.counts().kernels));
  EXPECT_EQ(program.steps(), 14);
}

}  // namespace
}  // namespace tensorgrad
