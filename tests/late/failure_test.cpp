// Failures that meet: of several steps, of several executables, around reset() and restore(). The
// values come from the CPU, which has no queue.
#include <random>

#include "support/wait.h"
#include "tests/late/common.h"

namespace tensorgrad {
namespace {

using namespace late_tests;

std::string said(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "ok";
}

class Failures : public Async {
 protected:
  Training<Words> words(TrainingOptions given = {}, const char* name = "hand") const {
    given.inputs = words_inputs();
    if (std::string(name) == "cpu") return compile(Words{}, options(given, name), words_loss);
    return settled(compile_async(Words{}, options(given), words_loss));
  }
  std::string said_of(const Result& result) const {
    result.ready();
    settle();
    return said([&] { result.loss(); });
  }
};

// The capture needs an input that nothing else needs, so the buffer of the inputs is replaced while
// the result of the step before is not read.
TEST_F(Failures, AnOlderResultSurvivesThatCapturesNeedANewInput) {
  const auto noisy = [](const Mlp& m, const Inputs& in) {
    capture("noise", dropout(in["x"], 0.5f));
    return mlp_loss(m, in);
  };
  auto program = settled(compile_async(Mlp{}, options(), noisy));
  auto expected = compile(Mlp{}, options({}, "cpu"), noisy);
  const Result first = program.step_async(Batch(0).feed());
  const Result second = program.step_async(Batch(1).feed(), {.captures = true});
  settle();
  EXPECT_EQ(said_of(first), "ok");
  EXPECT_EQ(first.loss(), expected.step(Batch(0).feed()).loss());
  EXPECT_EQ(said_of(second), "ok");
  const Result wanted = expected.step(Batch(1).feed(), {.captures = true});
  EXPECT_EQ(bytes_of(second.captures()), bytes_of(wanted.captures()));
}

// Both say which step was first, whoever is read first.
TEST_F(Failures, ABadIdBehindANaNIsNotTheReason) {
  for (int first = 0; first < 4; ++first) {
    auto program = words();
    std::vector<Result> results = {program.step_async(words_feed(1, 1)),
                                   program.step_async(words_feed(1, std::nanf(""))),
                                   program.step_async(words_feed(9, 1))};
    device->pump_all();
    results.push_back(program.step_async(words_feed(2, 1)));
    said_of(results[static_cast<std::size_t>(first)]);
    EXPECT_EQ(said_of(results[0]), "ok") << first;
    for (std::size_t i = 1; i < 4; ++i)
      EXPECT_EQ(said_of(results[i]), "step 1: the loss, a gradient or the update is not finite")
          << first;
    EXPECT_EQ(program.steps(), 2) << first;
    EXPECT_EQ(said_of(program.step_async(words_feed(1, 1))), "ok") << first;
  }
}

// A notice that was on its way when the error was reported says nothing new.
TEST_F(Failures, AReportedErrorIsNotFoundAgain) {
  auto program = words();
  const Result bad = program.step_async(words_feed(9, 1));
  bad.ready();
  while (device->pump_all() > 0) poll();
  const auto state = program.optimizer_state_async();
  device->pump_all();  // it has read the bad id
  EXPECT_EQ(said_of(bad).substr(0, 40), "step 0: Embedding: id 9 is out of range:");
  settle();
  EXPECT_TRUE(state.ready());
  EXPECT_EQ(said_of(program.step_async(words_feed(1, 1))), "ok");
}

// Bad ids of all executables are in one place. A step that was good before stays good.
TEST_F(Failures, AGoodStepOfTheRoundStaysGood) {
  for (const bool good_first : {true, false}) {
    auto program = words({.accumulate = 2}), expected = words({.accumulate = 2}, "cpu");
    const Result good = program.step_async(words_feed(1, 1));
    const Result bad = program.step_async(words_feed(9, 1));
    settle();
    std::string good_says = good_first ? said_of(good) : "";
    EXPECT_EQ(said_of(bad).substr(0, 40), "step 1: Embedding: id 9 is out of range:");
    EXPECT_EQ(said_of(good), "ok") << good_says;
    EXPECT_EQ(program.steps(), 1);
    program.step_async(words_feed(2, 1));
    expected.step(words_feed(1, 1));
    expected.step(words_feed(2, 1));
    EXPECT_EQ(bytes_of(settled(program.download_async())), bytes_of(expected.download()));
  }
}

TEST_F(Failures, AnErrorFromBeforeAResetReportsNothing) {
  for (const char* name : {"hand", "cpu"}) {
    auto program = words({}, name);
    const Result old = program.step_async(words_feed(1, std::nanf("")));
    old.ready();
    settle();
    program.reset();
    program.step_async(words_feed(1, 1));
    program.step_async(words_feed(1, std::nanf("")));
    const auto noticed = program.wait_async();
    EXPECT_EQ(said_of(old).substr(0, 24), "step 0: the loss is NaN:");
    EXPECT_EQ(said([&] { noticed.get(); }).substr(0, 24), "step 1: the loss is NaN:") << name;
    EXPECT_EQ(program.steps(), 2);
  }
}

// The error of a call that had to queue is that of the next future.
TEST_F(Failures, AQueuedCallThatFailsIsNotForgotten) {
  auto program = train();
  for (int i = 0; i < 6; ++i) program.step_async(Batch(0).feed());
  program.upload(twin().download());
  device->refuse_uploads(true);
  const auto waited = program.wait_async();
  device->pump_all();
  poll();
  device->refuse_uploads(false);
  settle();
  const std::string now = said([&] { waited.get(); });
  const std::string next = said_of(program.step_async(Batch(0).feed()));
  EXPECT_TRUE(now != "ok" || next != "ok") << now << "; " << next;
}

TEST_F(Failures, StepsCountBehindAQueuedRestart) {
  auto program = train();
  for (int i = 0; i < 10; ++i) program.step_async(Batch(0).feed());
  program.reset();
  program.step_async(Batch(0).feed());
  EXPECT_EQ(program.steps(), 1);
  NamedArrays state = settled(program.optimizer_state_async());
  state.at("step") = Array({}, std::vector<std::int32_t>{40});
  const auto restored = program.restore_async(settled(program.download_async()), state);
  program.step_async(Batch(0).feed());
  EXPECT_EQ(program.steps(), 41);
  settle();
  EXPECT_TRUE(restored.ready());
  EXPECT_EQ(program.steps(), 41);
}

// ---- futures

TEST_F(Failures, ACallbackKeepsWhatItWaitsFor) {
  bool called = false;
  compile_async(Mlp{}, options(), mlp_loss).then([&](const Future<Training<Mlp>>& ready) {
    called = true;
    EXPECT_EQ(ready.get().steps(), 0);
  });
  settle();
  EXPECT_TRUE(called);
}

TEST_F(Failures, FuturesChain) {
  const auto mine = train().download_async();
  settle();
  const auto chained = compile_async(Mlp{}, options(), mlp_loss)
                           .and_then([&](Training<Mlp>& program) {
                             return program.attach_async({.inputs = {{"x", {4, 3}}}}, mlp_output);
                           })
                           .and_then([&](Forward<Mlp>&) { return mine; });
  settle();
  ASSERT_TRUE(chained.ready());
  EXPECT_EQ(chained.get().size(), 6u);
  EXPECT_EQ(mine.get().size(), 6u) << "copies of a future share the value";
  const auto failed =
      mine.and_then([](NamedArrays&) -> Future<NamedArrays> { throw UserError("mine"); });
  settle();
  EXPECT_EQ(said([&] { failed.get(); }), "mine");
}

// A future that a callback made can be waited for, too.
TEST_F(Failures, AFutureOfACallbackCanBlock) {
  add_late_device("polled", std::make_shared<LateDevice>(LateDevice::Pace::by_poll));
  auto program = compile(Mlp{}, options({}, "polled"), mlp_loss);
  std::size_t read = 0;
  program.download_async().then([&](const Future<NamedArrays>& first) {
    read = first.and_then([&](NamedArrays&) { return program.download_async(); }).get().size();
  });
  program.wait();
  while (poll()) {
  }
  EXPECT_EQ(read, 6u);
}

// ---- random

// Steps that are good, NaN or have a bad id, captures, reads, notices and resets, in any order and
// at any moment. A failed step and those behind it change nothing: the CPU makes only the others,
// and a NaN where it is the first to fail, because it counts.
TEST_F(Failures, InAnyOrderTheGoodStepsAreThoseOfTheTwin) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](unsigned n) { return random() % n; };
    const int accumulate = 1 + static_cast<int>(pick(3));
    auto program = words({.optimizer = Sgd{.lr = 0.001}, .accumulate = accumulate});
    auto expected = words({.optimizer = Sgd{.lr = 0.001}, .accumulate = accumulate}, "cpu");
    struct Step {
      std::int32_t id;
      float s;
      std::optional<Result> result;  // none: a reset
      int calls = 0;
    };
    std::deque<Step> steps;
    for (int i = 0; i < 40; ++i) switch (pick(10)) {
        case 0:
          device->pump(1 + pick(8));
          break;
        case 1:
          poll();
          break;
        case 2:
          settle();
          break;
        case 3:
          program.optimizer_state_async();
          break;
        case 4:
          if (pick(3) == 0) {
            steps.push_back({0, static_cast<float>(i), {}});
            program.reset(static_cast<std::uint32_t>(i));
          } else if (!steps.empty() && steps.back().result && steps.back().result->ready()) {
            said([&] { steps.back().result->loss(); });
          }
          break;
        default: {
          const auto bad = pick(8);
          Step& step =
              steps.emplace_back(Step{bad == 0 ? 9 : static_cast<std::int32_t>(pick(5)),
                                      bad == 1 ? std::nanf("") : 1.0f + static_cast<float>(pick(5)),
                                      {}});
          step.result = program.step_async(words_feed(step.id, step.s), {.captures = pick(4) == 0});
          if (pick(2) == 0)
            step.result->then([&step](const Result&) { ++step.calls; });
          else
            step.calls = 1;
        }
      }
    settle();
    std::string group;  // the error of the failed steps so far
    for (const Step& step : steps) {
      if (!step.result) {
        expected.reset(static_cast<std::uint32_t>(step.s));
        group = "";
        continue;
      }
      const std::string says = said_of(*step.result);
      EXPECT_EQ(step.calls, 1);
      const bool good = step.id != 9 && !std::isnan(step.s);
      if (says == "ok") {
        ASSERT_TRUE(good);
        ASSERT_EQ(step.result->loss(), expected.step(words_feed(step.id, step.s)).loss());
      } else if (says != group) {
        group = says;
        ASSERT_FALSE(good) << "the first of those that failed: " << says;
        if (step.id != 9) said([&] { expected.step(words_feed(step.id, step.s)).loss(); });
      }
    }
    ASSERT_EQ(program.steps(), expected.steps());
    ASSERT_EQ(bytes_of(settled(program.download_async())), bytes_of(expected.download()));
    ASSERT_EQ(said_of(program.step_async(words_feed(1, 1))), "ok");
  }
}

}  // namespace
}  // namespace tensorgrad
