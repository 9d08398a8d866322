// NaN and infinity: what the error names. The guard is sticky: a failed step changes nothing, and
// is reported once.
#include <cmath>
#include <limits>

#include "tests/errors/expect_error.h"
#include "tests/errors/snapshot.h"

namespace tensorgrad::errors {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Model {
  Param w{{2}, init::literal({1, 2})};
  Linear l1{2, 2};
  LayerNorm norm{2, 0.0f};
};

using Floats = std::vector<float>;
using Loss = std::function<Tensor(const Model& m, const Inputs& in)>;

const Floats kGood = {0.5f, 0.25f};

struct FailRow {
  const char* name;
  std::string text;  // after "step 1: "
  int line;
  Loss loss;
  Floats bad;
};

TrainingOptions options(NonFinite policy = NonFinite::fail, int accumulate = 1) {
  return {.inputs = {{"x", {2}}},
          .optimizer = Adam{.lr = 0.01},
          .accumulate = accumulate,
          .non_finite = policy,
          .threads = 1};
}

#define LOSS __LINE__, [](const Model& m, const Inputs& in)

const std::string kHint = "\n  hint: parameters and optimizer state are unchanged by this step   ";

Tensor first_as_id(const Inputs& in) { return cast(narrow(in["x"], 0, 0, 1), i32); }

// A row's call stands on the line of its __LINE__.
// clang-format off
const std::vector<FailRow>& rows() {
  static const std::vector<FailRow> all = {
      {"log of a negative",
       "the loss is NaN: log produced the first NaN value from finite operands" + kHint + "at @",
       LOSS { return sum(log(m.w * in["x"])); }, {1, -1}},
      {"log of zero",
       "the loss is infinite: log produced the first infinite value from finite "
       "operands" + kHint + "at @",
       LOSS { return sum(log(m.w * in["x"])); }, {1, 0}},
      {"division by zero",
       "the loss is infinite: div produced the first infinite value from finite "
       "operands" + kHint + "at @",
       LOSS { return sum(m.w / in["x"]); }, {1, 0}},
      {"zero by zero",
       "the loss is NaN: div produced the first NaN value from finite operands" + kHint + "at @",
       LOSS { return sum(m.w * (in["x"] / in["x"])); }, {1, 0}},
      {"exp",
       "the loss is infinite: exp produced the first infinite value from finite "
       "operands" + kHint + "at @",
       LOSS { return sum(m.w * exp(in["x"])); }, {0, 89}},
      {"infinity that became NaN",
       "the loss is NaN: exp produced the first infinite value from finite operands" + kHint + "at @",
       LOSS { const Tensor e = exp(in["x"] * m.w); return sum(e - e); }, {0, 89}},
      {"sum",
       "the loss is infinite: sum produced the first infinite value from finite "
       "operands" + kHint + "at @",
       LOSS { return sum(m.w * in["x"]); }, {3e38f, 1.5e38f}},
      {"pow", "the loss is NaN: pow produced the first NaN value from finite operands" + kHint + "at @",
       LOSS { return sum(pow(m.w * in["x"], 0.5f)); }, {1, -1}},
      {"gradient of sqrt",
       "the gradient of w is NaN: div (in gradient of sqrt) produced the first infinite value from "
       "finite operands" + kHint + "at @",
       LOSS { return sum(sqrt(m.w * in["x"])); }, {1, 0}},
      {"gradient of a composite",
       "the gradient of w is NaN: mul (in gradient of leaky_relu) produced the first NaN value from "
       "finite operands" + kHint + "at @",
       LOSS { return sum(leaky_relu(m.w * in["x"], kInf)); }, {1, 1}},
      {"composite",
       "the loss is NaN: div (in cross_entropy) produced the first NaN value from finite "
       "operands" + kHint + "at @",
       LOSS { return cross_entropy(unsqueeze(m.w, 0), first_as_id(in), {.ignore_index = 1}); },
       {1, 0}},
      {"composite that takes a parameter",
       "the loss is NaN: rsqrt (in layer_norm) produced the first infinite value from finite "
       "operands" + kHint + "at @",
       LOSS { return sum(m.norm(in["x"]) * m.w); }, {1, 1}},
      {"layer",
       "the loss is infinite: matmul (in Linear) produced the first infinite value from finite "
       "operands" + kHint + "in l1, at @",
       LOSS { return sum(m.l1(unsqueeze(in["x"], 0))); }, {3e38f, 0}},
      {"layer over a batch",
       "the loss is infinite: matmul (in Linear) produced the first infinite value from finite "
       "operands" + kHint + "in l1, at @",
       LOSS { return sum(m.l1(reshape(in["x"], {1, 1, 2}))); }, {3e38f, 0}},
      {"bias",
       "the loss is infinite: add (in Linear) produced the first infinite value from finite "
       "operands" + kHint + "in l1, at @",
       LOSS { return sum(m.l1(unsqueeze(in["x"], 0))); }, {1e38f, 0}},
      {"input", "the loss is NaN: the input 'x' contains NaN values",
       LOSS { return sum(m.w * in["x"]); }, {1, kNan}},
      {"infinite input", "the loss is infinite: the input 'x' contains infinite values",
       LOSS { return sum(m.w * in["x"]); }, {1, kInf}},
      {"beside an infinity that is meant",
       "the loss is NaN: log produced the first NaN value from finite operands" + kHint + "at @",
       LOSS { return sum(where(in["x"] > 0, m.w, -kInf) + log(in["x"])); }, {1, -1}},
      {"the far end of a chain",
       "the loss is NaN: log produced the first NaN value from finite operands" + kHint + "at @",
       LOSS { return mean(m.l1(softmax(tanh(unsqueeze(log(m.w * in["x"]), 0))))); }, {1, -1}},
  };
  return all;
}
// clang-format on

TEST(NonFinite, NamesTheOpAndTheLine) {
  for (const FailRow& row : rows()) {
    SCOPED_TRACE(row.name);
    auto train = compile(Model{}, options(), row.loss);
    NamedArrays large = {{"l1.W", Array({2, 2}, Floats{2, 2, 0, 0})},
                         {"l1.b", Array({2}, Floats{3e38f, 3e38f})}};
    if (std::string(row.name).rfind("layer", 0) == 0) large.at("l1.b") = Array({2}, Floats{0, 0});
    train.upload(large, Upload::partial);
    const std::string before = numbers_of(train).parameters;
    const Result bad = train.step({{"x", row.bad}});
    EXPECT_EQ(text_of<NonFiniteError>([&] { bad.loss(); }),
              at_line("step 0: " + row.text, __FILE__, row.line));
    EXPECT_EQ(train.fingerprint(), before);
  }
}

TEST(NonFinite, NamesTheParameter) {
  auto train = compile(Model{}, options(), [](const Model& m, const Inputs& in) {
    return sum(m.l1(unsqueeze(in["x"], 0)) * m.w);
  });
  train.upload({{"l1.W", Array({2, 2}, Floats{1, 2, kNan, 4})}}, Upload::partial);
  EXPECT_EQ(text_of<NonFiniteError>([&] {
              train.step({{"x", kGood}}).loss();
            }),
            "step 0: the loss is NaN: the parameter 'l1.W' contains NaN values");
  train.upload({{"l1.W", Array({2, 2}, Floats{1, 2, 3, -kInf})}}, Upload::partial);
  EXPECT_EQ(text_of<NonFiniteError>([&] {
              train.step({{"x", kGood}}).loss();
            }),
            "step 1: the loss is infinite: the parameter 'l1.W' contains infinite values");
}

// -inf in a mask is intended: the error does not blame it.
TEST(NonFinite, MasksAreNoCulprits) {
  int line = 0;
  auto train = compile(Model{}, options(), [&](const Model& m, const Inputs& in) {
    line = __LINE__ + 1;
    const Tensor x = log(in["x"]);
    const Tensor scores = softmax_causal(unsqueeze(m.w, 0) * unsqueeze(m.w, 1));
    return sum(matmul(scores, x));
  });
  EXPECT_NEAR(train.step({{"x", kGood}}).loss(), -1.6, 0.5);
  EXPECT_EQ(
      text_of<NonFiniteError>([&] {
        train.step({{"x", Floats{1, -1}}}).loss();
      }),
      at_line("step 1: the loss is NaN: log produced the first NaN value from finite operands" +
                  kHint + "at @",
              __FILE__, line));
}

Tensor log_loss(const Model& m, const Inputs& in) { return sum(log(m.w * in["x"])); }
const Floats kBad = {1, -1};

Training<Model> started(NonFinite policy = NonFinite::fail, int accumulate = 1) {
  auto train = compile(Model{}, options(policy, accumulate), log_loss);
  for (int i = 0; i < 2; ++i) train.step({{"x", kGood}});
  return train;
}

TEST(NonFinite, AFailedStepChangesNothing) {
  auto train = started();
  const Snapshot before = numbers_of(train);
  const Result bad = train.step({{"x", kBad}});
  EXPECT_EQ(numbers_of(train), before);
  EXPECT_EQ(train.steps(), 3);
  // Every way to read it throws, every time.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(bad.loss(), NonFiniteError);
    EXPECT_THROW(bad.output(), NonFiniteError);
    EXPECT_THROW(bad["loss"], NonFiniteError);
    EXPECT_THROW(bad.finite(), NonFiniteError);
    EXPECT_THROW(bad.wait(), NonFiniteError);
    EXPECT_THROW(bad.captures(), NonFiniteError);
    EXPECT_THROW(bad.grad_norm(), NonFiniteError);
  }
  EXPECT_EQ(numbers_of(train), before);
}

TEST(NonFinite, AfterReadingTrainingGoesOn) {
  auto train = started(), twin = started();
  const Result bad = train.step({{"x", kBad}});
  EXPECT_THROW(bad.loss(), NonFiniteError);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(train.step({{"x", kGood}}).loss(), twin.step({{"x", kGood}}).loss());
  EXPECT_EQ(numbers_of(train), numbers_of(twin));
}

TEST(NonFinite, UnreadItIsRaisedByTheNextCall) {
  auto train = started(), twin = started();
  if (train.device() != "cpu") GTEST_SKIP() << "other devices report late: tests/late";
  auto infer = train.attach({.inputs = {{"x", {2}}}}, log_loss);
  const auto failing = [&] { train.step({{"x", kBad}}); };
  std::int64_t steps = train.steps();
  const std::vector<std::pair<const char*, std::function<void()>>> next = {
      {"step",
       [&] {
         train.step({{"x", kGood}});
       }},
      {"a bad step", failing},
      {"wait", [&] { train.wait(); }},
      {"run",
       [&] {
         infer.run({{"x", kGood}});
       }},
  };
  for (const auto& [name, call] : next) {
    SCOPED_TRACE(name);
    failing();
    const std::string start =
        "step " + std::to_string(steps) + ": the loss is NaN: log produced the first NaN value";
    EXPECT_EQ(text_of<NonFiniteError>(call).substr(0, start.size()), start);
    EXPECT_EQ(train.steps(), ++steps);  // the failed one; the call that threw made none
    train.wait();                       // thrown once
  }
  EXPECT_EQ(numbers_of(train), numbers_of(twin));
  EXPECT_EQ(train.step({{"x", kGood}}).loss(), twin.step({{"x", kGood}}).loss());
  EXPECT_EQ(infer.run({{"x", kGood}}).output().item(), twin.step({{"x", kGood}}).loss());
}

TEST(NonFinite, ReadingAnOlderFailureDoesNotHideANewerOne) {
  auto train = started();
  const Result first = train.step({{"x", kBad}});
  EXPECT_THROW(first.loss(), NonFiniteError);
  train.step({{"x", kBad}});
  EXPECT_THROW(first.loss(), NonFiniteError);
  EXPECT_EQ(text_of<NonFiniteError>([&] { train.wait(); }).substr(0, 7), "step 3:");
}

TEST(NonFinite, ResetForgetsIt) {
  auto train = started(), fresh = compile(Model{}, options(), log_loss);
  train.step({{"x", kBad}});
  train.reset();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(train.step({{"x", kGood}}).loss(), fresh.step({{"x", kGood}}).loss());
  EXPECT_EQ(snapshot(train), snapshot(fresh));
}

TEST(NonFinite, TheResultOutlivesTheProgram) {
  const Result bad = started().step({{"x", kBad}});
  EXPECT_THROW(bad.loss(), NonFiniteError);
}

TEST(NonFinite, SkipLeavesEverythingAndSaysSo) {
  auto train = started(NonFinite::skip), twin = started(NonFinite::skip);
  const Snapshot before = numbers_of(train);
  const Result bad = train.step({{"x", kBad}});
  EXPECT_FALSE(bad.finite());
  EXPECT_TRUE(std::isnan(bad.loss()));
  EXPECT_EQ(numbers_of(train), before);
  EXPECT_EQ(train.optimizer_state().at("adam:updates").item(), 2);
  train.step({{"x", kBad}});
  const Result good = train.step({{"x", kGood}});
  EXPECT_TRUE(good.finite());
  twin.step({{"x", kGood}});
  EXPECT_EQ(numbers_of(train), numbers_of(twin));
  EXPECT_EQ(train.optimizer_state().at("adam:updates").item(), 3);
  EXPECT_EQ(train.steps(), 5);
}

TEST(NonFinite, IgnoreGoesOn) {
  auto train = started(NonFinite::ignore);
  const Result bad = train.step({{"x", Floats{1, kNan}}});
  EXPECT_TRUE(bad.finite());
  EXPECT_TRUE(std::isnan(bad.loss()));
  EXPECT_TRUE(std::isnan(train.step({{"x", kGood}}).loss()));
  EXPECT_TRUE(std::isnan(train.download().at("w").floats()[1]));
}

TEST(NonFinite, GoodStepsAreTheSameUnderEveryPolicy) {
  EXPECT_EQ(started(NonFinite::skip).fingerprint(), started(NonFinite::fail).fingerprint());
  EXPECT_EQ(started(NonFinite::ignore).fingerprint(), started(NonFinite::fail).fingerprint());
}

// The sums of a round: a bad step adds nothing to them. If it is the last one, they are dropped,
// under `fail` when the next round starts, so that the failed step changes nothing.
TEST(NonFinite, WhileAccumulating) {
  for (const NonFinite policy : {NonFinite::fail, NonFinite::skip}) {
    auto train = started(policy, 2);  // one update made
    const Snapshot before = numbers_of(train);
    const auto bad_step = [&] {
      const Result bad = train.step({{"x", kBad}});
      if (policy == NonFinite::fail)
        EXPECT_THROW(bad.wait(), NonFiniteError);
      else
        EXPECT_FALSE(bad.finite());
    };
    bad_step();
    EXPECT_EQ(numbers_of(train), before);
    bad_step();
    EXPECT_EQ(numbers_of(train), before);
    train.step({{"x", kGood}});
    EXPECT_NE(numbers_of(train), before);
    EXPECT_EQ(train.fingerprint(), before.parameters);
    const Snapshot with_sums = numbers_of(train);
    bad_step();  // the round's last: no update
    EXPECT_EQ(numbers_of(train), policy == NonFinite::fail ? with_sums : before);
    auto twin = started(policy, 2);
    for (auto* each : {&train, &twin})
      for (int i = 0; i < 2; ++i) each->step({{"x", kGood}});
    EXPECT_EQ(numbers_of(train), numbers_of(twin));
  }
}

TEST(NonFinite, AnOutputBesideTheLossMayBeAnything) {
  auto train = compile(Model{}, options(), [](const Model& m, const Inputs& in) -> Outputs {
    return {{"loss", sum(m.w * in["x"])}, {"y", log(in["x"])}};
  });
  const Result step = train.step({{"x", kBad}});
  EXPECT_TRUE(step.finite());
  EXPECT_TRUE(std::isnan(step["y"].floats()[1]));
}

}  // namespace
}  // namespace tensorgrad::errors
