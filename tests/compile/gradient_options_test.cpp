// Options for gradients before the update: accumulation, freezing, norms of 1.
#include <algorithm>
#include <map>
#include <set>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

// The mean of a mean loss over parts is the mean loss over the whole.
TEST(Accumulate, EqualsOneBigBatch) {
  const std::vector<Optimizer> optimizers = {Sgd{.lr = 0.2, .momentum = 0.9f}, Adam{.lr = 0.01}};
  for (const Optimizer& optimizer : optimizers) {
    auto parts = compile(Mlp{},
                         {.inputs = mlp_inputs(4),
                          .optimizer = optimizer,
                          .clip_grad_norm = 0.3f,
                          .accumulate = 4,
                          .threads = 1},
                         mlp_loss);
    auto whole = compile(
        Mlp{},
        {.inputs = mlp_inputs(16), .optimizer = optimizer, .clip_grad_norm = 0.3f, .threads = 1},
        mlp_loss);
    for (std::uint32_t update = 0; update < 5; ++update) {
      const Batch batch(update, 16);
      const std::string before = parts.fingerprint();
      double mean = 0;
      float norm = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(parts.fingerprint(), before) << "an update in the middle of a window";
        const Result part = parts.step({{"x", std::span(batch.x).subspan(12 * i, 12)},
                                        {"y", std::span(batch.y).subspan(8 * i, 8)}});
        mean += static_cast<double>(part.loss()) / 4;
        if (i == 3) {
          norm = part.grad_norm();
        } else {
          EXPECT_THROW(part.grad_norm(), UserError);
        }
      }
      const Result big = whole.step(batch.feed());
      EXPECT_NEAR(static_cast<double>(big.loss()), mean, 1e-6);
      EXPECT_NEAR(big.grad_norm(), norm, 1e-6f * norm + 1e-7f);
    }
    const NamedArrays ours = parts.download(), theirs = whole.download();
    for (const auto& [name, array] : ours) {
      float largest = 0;
      for (const float v : theirs.at(name).floats()) largest = std::max(largest, std::abs(v));
      const float tolerance =
          (optimizer.index() == 0 ? 1e-6f : 2e-5f) * largest;  // Adam divides by small numbers
      for (std::size_t k = 0; k < array.floats().size(); ++k)
        EXPECT_NEAR(array.floats()[k], theirs.at(name).floats()[k], tolerance) << name << " " << k;
    }
    EXPECT_EQ(parts.steps(), 20);
  }
}

// Gradients are averaged first and then scaled to norm 1, as for one big batch.
TEST(Accumulate, EqualsOneBigBatchWithNormalisedGradients) {
  const TrainingOptions options{.optimizer = Sgd{.lr = 0.1},
                                .clip_grad_norm = 1,
                                .normalize_grads = {"l1.W", "l3.*"},
                                .threads = 1};
  TrainingOptions in_parts = options, at_once = options;
  in_parts.inputs = mlp_inputs(4), in_parts.accumulate = 2;
  at_once.inputs = mlp_inputs(8);
  auto parts = compile(Mlp{}, in_parts, mlp_loss), whole = compile(Mlp{}, at_once, mlp_loss);
  for (std::uint32_t update = 0; update < 3; ++update) {
    const Batch batch(update, 8);
    for (std::size_t i = 0; i < 2; ++i)
      parts.step({{"x", std::span(batch.x).subspan(12 * i, 12)},
                  {"y", std::span(batch.y).subspan(8 * i, 8)}});
    whole.step(batch.feed());
  }
  const NamedArrays ours = parts.download(), theirs = whole.download();
  for (const auto& [name, array] : ours)
    for (std::size_t k = 0; k < array.floats().size(); ++k)
      EXPECT_NEAR(array.floats()[k], theirs.at(name).floats()[k], 1e-6f) << name << " " << k;
}

TEST(Freeze, CostsNoBackwardAndChangesNothing) {
  auto all = compile_mlp(), frozen = compile_mlp({.freeze = {"l1.*", "l2.W"}});
  EXPECT_LT(frozen.counts().kernels, all.counts().kernels);
  EXPECT_EQ(frozen.counts().gradient_bytes, 4 * (8 + 16 + 2));
  EXPECT_EQ(frozen.counts().param_bytes, all.counts().param_bytes);
  const NamedArrays before = frozen.download();
  for (std::uint32_t i = 0; i < 5; ++i) frozen.step(Batch(i).feed());
  const NamedArrays after = frozen.download(), gradients = frozen.gradients(),
                    state = frozen.optimizer_state();
  for (const auto& [name, array] : after) {
    const bool still = name == "l1.W" || name == "l1.b" || name == "l2.W";
    EXPECT_EQ(floats_of(array) == floats_of(before.at(name)), still) << name;
    EXPECT_EQ(gradients.count(name), still ? 0u : 1u) << name;
    EXPECT_EQ(state.count("m:" + name), still ? 0u : 1u) << name;
  }
  for (const ParamInfo& info : frozen.parameters())
    EXPECT_EQ(info.frozen, gradients.count(info.name) == 0) << info.name;
  // The deeper a network is frozen, the less is left of its backward pass.
  const std::int64_t head = compile_mlp({.train_only = NameFilter{"l3.*"}}).counts().kernels;
  EXPECT_LT(head, frozen.counts().kernels);
  // Only the last bias is trained, so the backward pass is one sum: the three matmuls of the
  // forward pass are the only ones.
  const auto products = [](const NameFilter& trained) {
    const auto plan = compile_mlp({.train_only = trained}).plan();
    return std::count_if(plan.begin(), plan.end(),
                         [](const PlannedKernel& kernel) { return kernel.kind == "matmul"; });
  };
  EXPECT_EQ(products({"l3.*"}), 4);
  EXPECT_EQ(products({"l3.b"}), 3);
}

TEST(Freeze, TheRestTrainsAsItWould) {
  auto by_filter = compile_mlp({.freeze = {"l?.b"}}),
       by_rest = compile_mlp({.train_only = NameFilter{"*.W"}});
  struct Marked {
    Linear l1{3, 8}, l2{8, 8}, l3{8, 2};
    Marked() { l1.b->freeze(), l2.b->freeze(), l3.b->freeze(); }
    TENSORGRAD_FIELDS(l1, l2, l3)
  };
  auto by_mark = compile(Marked{}, {.inputs = mlp_inputs(), .threads = 1},
                         [](const Marked& m, const Inputs& in) {
                           return mse_loss(m.l3(tanh(m.l2(tanh(m.l1(in["x"]))))), in["y"]);
                         });
  auto all = compile_mlp({.optimizer = Sgd{.lr = 0.1}}),
       some = compile_mlp({.optimizer = Sgd{.lr = 0.1}, .freeze = {"l?.b"}});
  for (std::uint32_t i = 0; i < 3; ++i) {
    by_filter.step(Batch(i).feed()), by_rest.step(Batch(i).feed()), by_mark.step(Batch(i).feed());
    if (i > 0) continue;
    all.step(Batch(i).feed()), some.step(Batch(i).feed());  // gradients of the others are the same
    for (const auto& [name, array] : some.gradients())
      EXPECT_EQ(floats_of(array), floats_of(all.gradients().at(name))) << name;
  }
  EXPECT_EQ(by_filter.fingerprint(), by_rest.fingerprint());
  EXPECT_EQ(by_filter.fingerprint(), by_mark.fingerprint());
}

double norm_of(const Floats& v) {
  double squares = 0;
  for (const float x : v) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

TEST(NormalizeGrads, ScalesEachToOneBeforeClipping) {
  for (const float clip : {0.0f, 1.0f}) {
    auto train = compile_mlp(
        {.optimizer = Sgd{.lr = 1}, .clip_grad_norm = clip, .normalize_grads = {"l1.*", "l3.W"}});
    const NamedArrays before = train.download();
    const Result step = train.step(Batch(1).feed());
    const NamedArrays after = train.download(), gradients = train.gradients();
    const std::set<std::string> chosen = {"l1.W", "l1.b", "l3.W"};
    // The factor of each gradient; 1e-6 avoids a division by zero.
    std::map<std::string, double> scales;
    double squares = 0;
    for (const auto& [name, array] : gradients) {
      const double norm = norm_of(floats_of(array));
      scales[name] = chosen.count(name) ? 1 / (norm + 1e-6) : 1;
      squares += norm * norm * scales[name] * scales[name];
    }
    const double norm = std::sqrt(squares);
    ASSERT_GT(norm, 1.5);  // so that clipping has an effect
    if (clip > 0) {
      EXPECT_NEAR(static_cast<double>(step.grad_norm()), norm, 1e-5);
    }
    for (const auto& [name, array] : after)
      for (std::size_t i = 0; i < array.floats().size(); ++i) {
        const double moved = static_cast<double>(before.at(name).floats()[i]) -
                             static_cast<double>(array.floats()[i]);
        const double g = static_cast<double>(gradients.at(name).floats()[i]);
        EXPECT_NEAR(moved,
                    g * scales[name] * (clip > 0 ? static_cast<double>(clip) / (norm + 1e-6) : 1),
                    1e-6)
            << name << " " << i;
      }
  }
}

}  // namespace
}  // namespace tensorgrad::compile_tests
