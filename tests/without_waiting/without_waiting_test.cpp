// A program that cannot wait, as in a browser: what is done at once works, and everything else says
// that it would have to wait.
#include <gtest/gtest.h>

#include "support/wait.h"
#include "tensorgrad/tensorgrad.h"

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
