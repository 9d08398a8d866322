// Updates that would make a parameter or the optimizer state NaN or infinite, though the loss and
// the gradients are finite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/subnormals.h"
#include "tests/errors/expect_error.h"
#include "tests/errors/snapshot.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::errors {
namespace {

using Floats = std::vector<float>;

// Two parameters with a gap between them in memory; the gradient of w is x, that of late is 1.
struct Model {
  Param w{{2}, init::literal({1, 2})};
  Param late{{3}, init::literal({1, 1, 1})};
};

Tensor loss_of(const Model& m, const Inputs& in) { return sum(m.w * in["x"]) + sum(m.late); }

TrainingOptions options(const Optimizer& optimizer, NonFinite policy = NonFinite::fail) {
  return {.inputs = {{"x", {2}}},
          .optimizer = optimizer,
          .non_finite = policy,
          .device = "cpu",
          .threads = 1};
}

const std::string kTail =
    "; the loss and the gradients are finite\n  hint: a smaller learning rate, or a larger eps of "
    "Adam? parameters and "
    "optimizer state are unchanged by this step";

bool all_finite(const NamedArrays& arrays) {
  for (const auto& [name, array] : arrays)
    for (std::size_t i = 0; array.dtype() == f32 && i < array.floats().size(); ++i)
      if (!std::isfinite(array.floats()[i])) return false;
  return true;
}

struct BadRow {
  const char* name;
  Optimizer optimizer;
  Floats good, bad;
  std::string text;  // between "step 1: the update: " and the tail
  TrainingOptions more = {};
};

// 3e38 * 2 overflows; 0 / 0 is NaN; (1e-30)^2 is 0, so 1e-30 / 0 is infinite; (1e20)^2 is infinite,
// and so is Adam's v, but the parameter does not change.
const std::vector<BadRow>& rows() {
  static const std::vector<BadRow> all = [] {
    std::vector<BadRow> made = {
        {"sgd, rate",
         Sgd{.lr = [](std::int64_t t) { return t == 1 ? 0.1 : 3e38; }},
         {1, 1},
         {1, 2},
         "makes parameter w infinite"},
        {"momentum",
         Sgd{.lr = 0.5, .momentum = 3e38f},
         {1, 1},
         {1e38f, 1},
         "makes parameter w infinite"},
        {"nesterov",
         Sgd{.lr = 0.5, .momentum = 1e20f, .nesterov = true},
         {1, 1},
         {1, 1},
         "makes parameter w infinite"},
        {"weight decay",
         Sgd{.lr = 1, .weight_decay = 1e38f},
         {0, 0},
         {0, 0},
         "makes parameter w infinite",
         {.decay = NameFilter{"w"}}},
        {"adam without eps",
         Adam{.beta1 = 0, .beta2 = 0, .eps = 0},
         {1, 1},
         {0, 1},
         "makes parameter w NaN"},
        {"adam, tiny gradient",
         Adam{.beta1 = 0, .beta2 = 0, .eps = 0},
         {1, 1},
         {1e-30f, 1},
         "makes parameter w infinite"},
        {"adamw without eps",
         AdamW{.beta1 = 0, .beta2 = 0, .eps = 0},
         {1, 1},
         {1, 0},
         "makes parameter w NaN"},
        {"adamw, decay",
         AdamW{.lr = [](std::int64_t t) { return t == 1 ? 0.1 : 1e37; }, .weight_decay = 1e30f},
         {1, 1},
         {1, 1},
         "makes parameter w infinite",
         {.decay = NameFilter{"w"}}},
        {"adam, state",
         Adam{},
         {1, 1},
         {1e20f, 1},
         "makes a parameter or the optimizer state infinite or NaN"},
        {"clipped",
         Sgd{.lr = [](std::int64_t t) { return t == 1 ? 0.1 : 3e38; }},
         {1, 1},
         {1, 2},
         "makes parameter w infinite",
         {.clip_grad_norm = 100}},
        {"normalized",
         Sgd{.lr = [](std::int64_t t) { return t == 1 ? 0.1 : 3e38; }},
         {1, 1},
         {1, 1},
         "makes parameter late infinite",
         {.normalize_grads = {"w"}}},
    };
    if (cpu::flushes_subnormals())
      made.push_back({"adam, eps that is none",
                      Adam{.beta1 = 0, .beta2 = 0, .eps = 1e-42f},
                      {1, 1},
                      {0, 1},
                      "makes parameter w NaN"});
    return made;
  }();
  return all;
}

Training<Model> compiled(const BadRow& row, NonFinite policy, const std::string& device = "cpu") {
  TrainingOptions with = options(row.optimizer, policy);
  with.device = device;
  with.clip_grad_norm = row.more.clip_grad_norm, with.normalize_grads = row.more.normalize_grads,
  with.decay = row.more.decay;
  return compile(Model{}, with, [&row](const Model& m, const Inputs& in) {
    return row.more.normalize_grads.empty() ? loss_of(m, in) : sum(m.w * in["x"]) + 2 * sum(m.late);
  });
}

TEST(BadUpdate, FailsAndChangesNothing) {
  for (const BadRow& row : rows()) {
    SCOPED_TRACE(row.name);
    auto train = compiled(row, NonFinite::fail);
    train.step({{"x", row.good}});
    ASSERT_TRUE(all_finite(train.download()));
    const Snapshot before = numbers_of(train);
    EXPECT_EQ(text_of<NonFiniteError>([&] {
                train.step({{"x", row.bad}}).loss();
              }),
              "step 1: the update: " + row.text + kTail);
    EXPECT_EQ(numbers_of(train), before);
  }
}

// On a GPU the error is asynchronous. The steps queued after the bad one change nothing either.
class GpuBadUpdate : public GpuTest {};

TEST_F(GpuBadUpdate, FailsAndChangesNothing) {
  for (const char* name : {"sgd, rate", "adam without eps", "clipped"}) {
    SCOPED_TRACE(name);
    const auto row = std::find_if(rows().begin(), rows().end(),
                                  [&](const BadRow& r) { return r.name == std::string(name); });
    ASSERT_NE(row, rows().end());
    auto train = compiled(*row, NonFinite::fail, "webgpu");
    train.step({{"x", row->good}}).wait();
    const Snapshot before = numbers_of(train);
    EXPECT_EQ(text_of<NonFiniteError>([&] {
                train.step({{"x", row->bad}}).loss();
              }),
              "step 1: the update: " + row->text + kTail);
    EXPECT_EQ(numbers_of(train), before);
    // If another step follows, the inputs of the bad step are gone, and the error does not name the
    // op.
    EXPECT_EQ(text_of<NonFiniteError>([&] {
                const Result bad = train.step({{"x", row->bad}});
                train.step({{"x", row->good}});
                bad.loss();
              }),
              "step 2: the loss, a gradient or the update is not finite");
    EXPECT_EQ(numbers_of(train), before);
  }
}

TEST(BadUpdate, IsSkipped) {
  for (const BadRow& row : rows()) {
    SCOPED_TRACE(row.name);
    auto train = compiled(row, NonFinite::skip);
    EXPECT_TRUE(train.step({{"x", row.good}}).finite());
    const Snapshot before = numbers_of(train);
    const Result step = train.step({{"x", row.bad}});
    EXPECT_FALSE(step.finite());
    EXPECT_TRUE(std::isfinite(step.loss()));
    EXPECT_EQ(numbers_of(train), before);
  }
}

TEST(BadUpdate, PassesWhereNobodyLooks) {
  for (const BadRow& row : rows()) {
    SCOPED_TRACE(row.name);
    auto train = compiled(row, NonFinite::ignore);
    train.step({{"x", row.good}});
    EXPECT_TRUE(train.step({{"x", row.bad}}).finite());
    NamedArrays all = train.download();
    all.merge(train.optimizer_state());
    EXPECT_FALSE(all_finite(all));
  }
}

// The gaps between parameters have zero gradients too, and no update.
TEST(BadUpdate, WithoutEpsAllIsWellWhereGradientsAreNot0) {
  for (const Optimizer& optimizer : std::vector<Optimizer>{Adam{.eps = 0}, AdamW{.eps = 0}}) {
    auto train = compile(Model{}, options(optimizer), loss_of);
    for (int i = 0; i < 5; ++i) train.step({{"x", Floats{1, -1}}}).wait();
    // Adam's steps have the size of the rate while gradients do not change.
    const auto w = train.download().at("w").floats();
    if (std::holds_alternative<Adam>(optimizer)) {
      EXPECT_NEAR(w[0], 1 - 5 * 0.001, 1e-5);
      EXPECT_NEAR(w[1], 2 + 5 * 0.001, 1e-5);
    }
  }
}

Training<Model> accumulating(NonFinite policy, const std::string& device = "cpu") {
  TrainingOptions with = options(Sgd{.lr = 0.1}, policy);
  with.accumulate = 2;
  with.device = device;
  return compile(Model{}, with, loss_of);
}

// Rounds of two steps: the gradient of w is the mean of their x, which the rate multiplies by 0.1.
void expect_good_round(Training<Model>& train) {
  train.set_lr(0.1);
  train.step({{"x", Floats{1, 1}}});
  train.step({{"x", Floats{3, 5}}}).wait();
  const Array w = train.download().at("w");
  EXPECT_FLOAT_EQ(w.floats()[0], 1 - 0.1f * 2);
  EXPECT_FLOAT_EQ(w.floats()[1], 2 - 0.1f * 3);
}

// The average of the last two steps is finite, but the rate makes the update infinite. Nothing
// changes, not even the sums of the round, which do not count for the next round.
void expect_failing_round(Training<Model>& train) {
  train.step({{"x", Floats{1, 1}}}).wait();
  const Snapshot before = numbers_of(train);
  train.set_lr(3e38);
  EXPECT_EQ(text_of<NonFiniteError>([&] {
              train.step({{"x", Floats{9, 9}}}).loss();
            }),
            "step 1: the update: makes parameter w infinite" + kTail);
  EXPECT_EQ(numbers_of(train), before);
  EXPECT_EQ(train.steps(), 2);
}

TEST(BadUpdate, WhileAccumulating) {
  auto train = accumulating(NonFinite::fail), resumed = accumulating(NonFinite::fail);
  expect_failing_round(train);
  resumed.upload_optimizer_state(train.optimizer_state());
  expect_good_round(train);
  expect_good_round(resumed);

  auto skipping = accumulating(NonFinite::skip);
  skipping.step({{"x", Floats{1, 1}}});
  skipping.set_lr(3e38);
  EXPECT_FALSE(skipping.step({{"x", Floats{9, 9}}}).finite());
  expect_good_round(skipping);
}

TEST_F(GpuBadUpdate, WhileAccumulating) {
  auto train = accumulating(NonFinite::fail, "webgpu");
  expect_failing_round(train);
  expect_good_round(train);
}

// The steps after the bad one belong to the next round and add nothing to its sums.
TEST_F(GpuBadUpdate, WhileAccumulatingWithStepsBehind) {
  auto train = accumulating(NonFinite::fail, "webgpu");
  train.step({{"x", Floats{1, 1}}}).wait();
  const Snapshot before = numbers_of(train);
  train.set_lr(3e38);
  const Result bad = train.step({{"x", Floats{9, 9}}});
  train.step({{"x", Floats{7, 7}}});
  EXPECT_EQ(text_of<NonFiniteError>([&] { bad.loss(); }),
            "step 1: the loss, a gradient or the update is not finite");
  EXPECT_EQ(numbers_of(train), before);
  EXPECT_EQ(train.steps(), 2);
  expect_good_round(train);
}

// More parameters than fit one row of a kernel: the guard is a kernel of its own there.
TEST(BadUpdate, OfALargeModel) {
  struct Large {
    Param first{{100, 50}, init::constant(1)}, last{{70, 100}, init::constant(1)};
  };
  for (const float clip : {0.0f, 1e6f}) {
    TrainingOptions with = options(Adam{.lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 0});
    with.clip_grad_norm = clip;
    with.inputs = {{"x", {70, 100}}};
    auto train = compile(Large{}, with, [](const Large& m, const Inputs& in) {
      return sum(m.first) + sum(m.last * in["x"]);
    });
    Floats x(7000, 1);
    train.step({{"x", x}}).wait();
    const Snapshot before = numbers_of(train);
    EXPECT_EQ(static_cast<float>(train.download().at("last").floats()[6999]), 0.9f);
    x[6999] = 0;
    EXPECT_EQ(text_of<NonFiniteError>([&] {
                train.step({{"x", x}}).loss();
              }),
              "step 1: the update: makes parameter last NaN" + kTail);
    EXPECT_EQ(numbers_of(train), before);
    x[6999] = 1;
    train.step({{"x", x}}).wait();  // training continues
    EXPECT_NE(numbers_of(train), before);
  }
}

}  // namespace
}  // namespace tensorgrad::errors
