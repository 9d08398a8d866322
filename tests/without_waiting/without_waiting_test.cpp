// A program that cannot wait, as in a browser: what is done at once works, and everything else says
// that it would have to wait.
#include <gtest/gtest.h>

#include "support/wait.h"
#include "tensorgrad/tensorgrad.h"
#include "tests/support/late_device.h"

namespace tensorgrad {
namespace {

struct Line {
  Param w{{1}}, b{{1}};
};

TEST(WithoutWaiting, TheCpuTrains) {
  Line model;
  auto train = compile(
      model, TrainingOptions{.inputs = {{"x", {4}}, {"y", {4}}}, .device = "cpu"},
      [](const Line& m, const Inputs& in) { return mean(square(in["x"] * m.w + m.b - in["y"])); });
  const std::vector<float> x = {0, 1, 2, 3}, y = {1, 3, 5, 7};
  float first = 0, last = 0;
  for (int i = 0; i < 50; ++i) {
    last = train.step({{"x", x}, {"y", y}}).loss();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first);
  EXPECT_EQ(train.download().size(), 2u);
}

Tensor line_loss(const Line& m, const Inputs& in) {
  return mean(square(in["x"] * m.w + m.b - in["y"]));
}

// Everything but waiting: compiling, training, reading, on a device that answers late.
TEST(WithoutWaiting, ADeviceThatAnswersLateTrains) {
  const auto device = std::make_shared<LateDevice>(LateDevice::Pace::by_hand);
  add_late_device("hand", device);
  const auto settle = [&] {
    for (bool busy = true; busy;) {
      busy = poll();
      busy = device->pump_all() > 0 || busy;
    }
  };
  const TrainingOptions options{.inputs = {{"x", {4}}, {"y", {4}}}, .device = "hand"};
  const auto compiling = compile_async(Line{}, options, line_loss);
  settle();
  ASSERT_TRUE(compiling.ready());
  auto train = compiling.take();
  const std::vector<float> x = {0, 1, 2, 3}, y = {1, 3, 5, 7};
  std::vector<float> losses;
  for (int i = 0; i < 50; ++i)
    train.step_async({{"x", x}, {"y", y}}).then([&](const Result& result) {
      losses.push_back(result.loss());
    });
  settle();
  ASSERT_EQ(losses.size(), 50u);
  EXPECT_LT(losses.back(), losses.front());
  const auto weights = train.download_async();
  settle();
  EXPECT_EQ(weights.get().size(), 2u);

  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of([&] { train.download(); }),
            "reading is not finished, and this program cannot wait\n  hint: ready() and then()");
  EXPECT_EQ(error_of([&] { compile(Line{}, options, line_loss); }),
            "compiling is not finished, and this program cannot wait\n  hint: ready() and then()");
  settle();
}

// On the CPU the blocking calls never have to wait.
TEST(WithoutWaiting, TheCpuLearnsText) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on mat " + std::to_string(i % 7) + "\n";
  Trainer trainer({.kind = "gpt", .dim = 16, .context = 12, .layers = 1, .heads = 2},
                  Tokenizer::bytes(), TextData::of(text, Tokenizer::bytes()),
                  {.batch = 2, .steps = 3, .device = "cpu", .threads = 1});
  while (trainer.step() < 3) {
  }
  EXPECT_GT(trainer.validate(60).loss, 0);
  EXPECT_EQ(generate(trainer.generator(), "the", {.tokens = 5}).size(), 5u);
  Generator generator(trainer.checkpoint(), {.device = "cpu", .threads = 1});
  EXPECT_EQ(generate(generator, "the", {.tokens = 5}).size(), 5u);
}

class Never : public Pollable {
 public:
  bool poll(std::chrono::nanoseconds) override { return false; }
  std::chrono::seconds patience() const override { return std::chrono::seconds(600); }
};

TEST(WithoutWaiting, WhatIsNotDoneIsAnError) {
  Never source;
  const Completion<Done> done;
  try {
    wait_for(source, done, "a run");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "a run is not finished, and this program cannot wait\n  hint: ready() and then()");
  }
}

}  // namespace
}  // namespace tensorgrad
