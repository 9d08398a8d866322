// Losses, norms and attention on values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/ops/literal.h"

namespace tensorgrad::checks {
namespace {

const double kLn3 = std::log(3.0);

TEST(LossSemantics, CrossEntropyOfLogitsOf1000) {
  // softmax is (1, 0, 0); the loss is logsumexp - logit
  const auto loss = [](In x) { return cross_entropy(x[0], x[1]); };
  const Arg logits = given({1, 3}, {1000, -1000, 0});
  expect({logits, vec({0}, i32)}, loss, {{0}, {{0, 0, 0}}});
  expect({logits, vec({1}, i32)}, loss, {{2000}, {{1, -1, 0}}});
  expect({logits, vec({2}, i32)}, loss, {{1000}, {{1, 0, -1}}});
}

TEST(LossSemantics, CrossEntropyGradientIsSoftmaxMinusOneHot) {
  // softmax (1/4, 3/4)
  expect({given({2, 2}, {0, kLn3, 0, kLn3}), vec({0, 1}, i32)},
         [](In x) { return cross_entropy(x[0], x[1]); },
         {{(2 * std::numbers::ln2 + (2 * std::numbers::ln2 - kLn3)) / 2},
          {{-0.375, 0.375, 0.125, -0.125}}});
}

TEST(LossSemantics, Reductions) {
  const std::vector<Arg> args{given({2, 2}, {0, kLn3, 0, kLn3}), vec({0, 1}, i32)};
  const double first = 2 * std::numbers::ln2, second = 2 * std::numbers::ln2 - kLn3;
  expect(args, [](In x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
         {{first, second}});
  expect(args, [](In x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); },
         {{first + second}});
}

TEST(LossSemantics, IgnoredTargetsCountForNothing) {
  const std::vector<Arg> args{given({3, 2}, {0, kLn3, 5, -7, 0, kLn3}), vec({0, -100, 1}, i32)};
  const double first = 2 * std::numbers::ln2, second = 2 * std::numbers::ln2 - kLn3;
  expect(args, [](In x) { return cross_entropy(x[0], x[1], {.ignore_index = -100}); },
         {{(first + second) / 2}, {{-0.375, 0.375, 0, 0, 0.125, -0.125}}});
  expect(args,
         [](In x) {
           return cross_entropy(x[0], x[1], {.reduction = Reduction::none, .ignore_index = -100});
         },
         {{first, 0, second}});
}

TEST(LossSemantics, AllTargetsIgnoredIsNanForTheMean) {  // as in PyTorch: 0/0
  const std::vector<Arg> args{given({2, 2}, {0, 1, 2, 3}), vec({-1, -1}, i32)};
  expect(args, [](In x) { return cross_entropy(x[0], x[1], {.ignore_index = -1}); },
         {{kNan}, {{0, 0, 0, 0}}});
  expect(args,
         [](In x) {
           return cross_entropy(x[0], x[1], {.reduction = Reduction::sum, .ignore_index = -1});
         },
         {{0}, {{0, 0, 0, 0}}});
}

TEST(LossSemantics, LabelSmoothing) {
  // log softmax (-ln 4, ln 3 - ln 4); 0.9 of the target, 0.1 of the mean over both classes
  const double low = 2 * std::numbers::ln2, high = 2 * std::numbers::ln2 - kLn3;
  expect({given({1, 2}, {0, kLn3}), vec({1}, i32)},
         [](In x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.1f}); },
         {{0.9 * high + 0.1 * (low + high) / 2}, {{0.25 - 0.05, 0.75 - 0.95}}});
  expect({given({2, 2}, {0, kLn3, 9, 9}), vec({1, -100}, i32)},
         [](In x) {
           return cross_entropy(x[0], x[1], {.ignore_index = -100, .label_smoothing = 0.1f});
         },
         {{0.9 * high + 0.1 * (low + high) / 2}, {{0.2, -0.2, 0, 0}}});
}

TEST(LossSemantics, NllTakesLogarithms) {
  expect({given({2, 2}, {-1, -2, -3, -4}), vec({1, 0}, i32)},
         [](In x) { return nll_loss(x[0], x[1]); }, {{2.5}, {{0, -0.5, -0.5, 0}}});
}

TEST(LossSemantics, BinaryCrossEntropy) {  // gradient sigmoid(x) - y
  expect({vec({0, 1000, -1000, 1000}), vec({1, 1, 1, 0})},
         [](In x) { return bce_with_logits(x[0], x[1], Reduction::none); },
         {{std::numbers::ln2, 0, 1000, 1000}, {{-0.5, 0, -1, 1}, {0, -1000, 1000, -1000}}});
}

TEST(LossSemantics, Huber) {
  expect({vec({0.5, -2, 1, 0}), vec({0, 0, 0, 0})},
         [](In x) { return huber_loss(x[0], x[1], 1, Reduction::none); },
         {{0.125, 1.5, 0.5, 0}, {{0.5, -1, 1, 0}, {-0.5, 1, -1, 0}}});
  // delta (|e| - delta/2): 2 (5 - 1)
  expect({vec({5}), vec({0})}, [](In x) { return huber_loss(x[0], x[1], 2); }, {{8}, {{2}, {-2}}});
}

TEST(LossSemantics, KlDivergence) {  // y (log y - x), 0 where y is 0; the mean is over all elements
  const std::vector<Arg> args{vec({-1, -2}), vec({1, 0})};
  expect(args, [](In x) { return kl_div(x[0], x[1], Reduction::none); }, {{1, 0}});
  expect(args, [](In x) { return kl_div(x[0], x[1]); }, {{0.5}});
  expect({vec({-1, -2})},
         [](In x) { return kl_div(x[0], stop_gradient(exp(x[0])), Reduction::sum); },
         {{0}, {{-std::exp(-1), -std::exp(-2)}}});
}

TEST(LossSemantics, MeanSquares) {
  expect({vec({1, 5}), vec({3, 2})}, [](In x) { return mse_loss(x[0], x[1]); },
         {{6.5}, {{-2, 3}, {2, -3}}});
}

TEST(NormSemantics, EpsilonIsAddedToTheVariance) {
  const double inverse = 1 / std::sqrt(1 + 1e-5);
  expect({vec({1, 3}), vec({2, 2}), vec({10, 20})},
         [](In x) { return layer_norm(x[0], x[1], x[2]); }, {{10 - 2 * inverse, 20 + 2 * inverse}});
  const double rms = std::sqrt(12.5 + 0.5);
  expect({vec({3, 4}), vec({1, 2})}, [](In x) { return rms_norm(x[0], x[1], 0.5f); },
         {{3 / rms, 8 / rms}});
  // All equal: epsilon is the deviation.
  expect({vec({7, 7}), vec({1, 1}), vec({0, 0})}, [](In x) { return layer_norm(x[0], x[1], x[2]); },
         {{0, 0}});
}

TEST(AttentionSemantics, CausalRowsSeeThePast) {
  // Equal scores: row t is the mean of values 0 .. t.
  const Arg zeros = given({1, 1, 3, 1}, {0}), v = given({1, 1, 3, 1}, {3, 6, 12});
  expect({zeros, zeros, v}, [](In x) { return attention(x[0], x[1], x[2]); }, {{3, 4.5, 7}});
  expect({zeros, zeros, v}, [](In x) { return attention(x[0], x[1], x[2], {.causal = false}); },
         {{7, 7, 7}});
  // One query after three keys is at the last of the three positions.
  expect({given({1, 1, 1, 1}, {0}), zeros, v}, [](In x) { return attention(x[0], x[1], x[2]); },
         {{7}});
  expect({given({1, 1, 2, 1}, {0}), zeros, v}, [](In x) { return attention(x[0], x[1], x[2]); },
         {{4.5, 7}});
}

TEST(AttentionSemantics, GroupsOfHeadsShareKeysInOrder) {
  // Heads 0 and 1 read group 0, heads 2 and 3 group 1.
  const Arg q = given({1, 4, 1, 1}, {0}), k = given({1, 2, 1, 1}, {0}),
            v = given({1, 2, 1, 1}, {5, 9});
  expect({q, k, v}, [](In x) { return attention(x[0], x[1], x[2]); }, {{5, 5, 9, 9}});
}

TEST(AttentionSemantics, ScaleIsOneOverTheRootOfD) {
  // D = 4: scores 2 * 2 * 4 / 2 = 8 against 0
  const Arg q = given({1, 1, 1, 4}, {2}), k = given({1, 1, 2, 4}, {2, 2, 2, 2, 0, 0, 0, 0});
  const Arg v = given({1, 1, 2, 1}, {1, 0});
  const double weight = 1 / (1 + std::exp(-8.0));
  expect({q, k, v}, [](In x) { return attention(x[0], x[1], x[2], {.causal = false}); },
         {{weight}});
}

TEST(RopeSemantics, RotatesPairsOfHalves) {
  // D = 4: pairs (0, 2) by t and (1, 3) by t / 100
  const double c = std::cos(1.0), s = std::sin(1.0), c2 = std::cos(0.01), s2 = std::sin(0.01);
  expect({given({2, 4}, {1, 2, 3, 4, 1, 2, 3, 4})}, [](In x) { return rope(x[0]); },
         {{1, 2, 3, 4, c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2}});
  expect({given({1, 4}, {1, 2, 3, 4})}, [](In x) { return rope(x[0], 10000, 1); },
         {{c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2}});
  expect({given({1, 4}, {1, 2, 3, 4}), given({}, {1}, i32)},
         [](In x) { return rope(x[0], 10000, x[1]); },
         {{c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2}});
}

TEST(SoftmaxSemantics, CausalRowsIgnoreTheFuture) {
  expect({given({2, 2}, {0, 1000, kLn3, 0})}, [](In x) { return softmax_causal(x[0]); },
         {{1, 0, 0.75, 0.25}, {{0, 0, 3.0 / 16, -3.0 / 16}}, {1, 1, 1, 0}});
}

}  // namespace
}  // namespace tensorgrad::checks
