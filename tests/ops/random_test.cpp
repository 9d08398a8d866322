// Random ops through the public interface: which values repeat and which differ, their
// distributions, and that dropout's backward pass uses the mask of its forward pass. Everything is
// deterministic; the bounds are five standard deviations of the statistic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::checks {
namespace {

struct Nothing {};

// A program with random ops; every call of run() is a step.
struct Draws {
  tensorgrad::Forward<Nothing> program;

  Draws(std::uint32_t seed, std::function<Tensor()> function)
      : program(compile_forward(Nothing{}, {.seed = seed},
                                [&](const Nothing&, const Inputs&) { return function(); })) {}
  std::vector<float> run() {
    const Array out = program.run().output();
    if (out.dtype() == f32) return {out.floats().begin(), out.floats().end()};
    return {out.ints().begin(), out.ints().end()};
  }
};

double mean_of(const std::vector<float>& x, int power = 1) {
  double sum = 0;
  for (const float v : x) sum += std::pow(v, power);
  return sum / static_cast<double>(x.size());
}

constexpr std::int64_t kMany = 100000;
// Five standard deviations of a mean of kMany values with this deviation.
double five_sigma(double deviation) {
  return 5 * deviation / std::sqrt(static_cast<double>(kMany));
}

TEST(Random, TheSameSeedRepeatsAndEverythingElseDiffers) {
  for (const auto& draw : std::vector<std::function<Tensor()>>{
           [] { return uniform({50}); }, [] { return randn({50}); },
           [] { return bernoulli(full({50}, 0.5)); },
           [] {
             return categorical(zeros({50, 9}));
           }}) {
    Draws a(1, draw), same(1, draw), other_seed(2, draw);
    const auto first = a.run(), second = a.run();
    EXPECT_EQ(same.run(), first);
    EXPECT_EQ(same.run(), second);
    EXPECT_NE(second, first) << "two steps share a stream";
    EXPECT_NE(other_seed.run(), first) << "two seeds share a stream";
  }
}

TEST(Random, EveryCallIsAStreamOfItsOwn) {
  const auto pair = Draws(3, [] { return stack({uniform({50}), uniform({50})}); }).run();
  EXPECT_NE(std::vector(pair.begin(), pair.begin() + 50),
            std::vector(pair.begin() + 50, pair.end()));
  // No shifted copies either: seed, step and call do not merely add up.
  Draws a(3, [] { return uniform({50}); }), b(4, [] { return uniform({50}); });
  a.run();
  EXPECT_NE(a.run(), b.run());
}

TEST(Random, TheShapeDoesNotChangeTheStream) {
  EXPECT_EQ(Draws(5,
                  [] {
                    return uniform({6, 4});
                  })
                .run(),
            Draws(5, [] { return uniform({24}); }).run());
}

TEST(Random, UniformMoments) {
  const auto x = Draws(11, [] { return uniform({kMany}); }).run();
  EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
  EXPECT_NEAR(mean_of(x), 0.5, five_sigma(std::sqrt(1 / 12.0)));
  EXPECT_NEAR(mean_of(x, 2), 1 / 3.0, five_sigma(std::sqrt(4 / 45.0)));
  EXPECT_NEAR(mean_of(x, 3), 1 / 4.0, five_sigma(std::sqrt(9 / 112.0)));
  // Neighbours are independent.
  double product = 0;
  for (std::size_t i = 1; i < x.size(); ++i) product += (x[i - 1] - 0.5) * (x[i] - 0.5);
  EXPECT_NEAR(product / static_cast<double>(kMany), 0, five_sigma(1 / 12.0));
  // Sixteen equal bins: chi squared with 15 degrees of freedom, standard deviation sqrt(30).
  std::vector<double> bins(16);
  for (const float v : x) ++bins[static_cast<std::size_t>(v * 16)];
  double chi = 0;
  for (const double n : bins) chi += (n - kMany / 16.0) * (n - kMany / 16.0) / (kMany / 16.0);
  EXPECT_LT(chi, 15 + 5 * std::sqrt(30.0));

  const auto wide = Draws(12, [] { return uniform({kMany}, -3, 5); }).run();
  EXPECT_GE(*std::min_element(wide.begin(), wide.end()), -3);
  EXPECT_LE(*std::max_element(wide.begin(), wide.end()), 5);
  EXPECT_NEAR(mean_of(wide), 1, five_sigma(8 * std::sqrt(1 / 12.0)));
}

TEST(Random, NormalMoments) {
  const auto x = Draws(13, [] { return randn({kMany}); }).run();
  EXPECT_NEAR(mean_of(x), 0, five_sigma(1));
  EXPECT_NEAR(mean_of(x, 2), 1, five_sigma(std::sqrt(2.0)));
  EXPECT_NEAR(mean_of(x, 3), 0, five_sigma(std::sqrt(15.0)));
  EXPECT_NEAR(mean_of(x, 4), 3, five_sigma(std::sqrt(96.0)));
  const auto beyond_2 = std::count_if(x.begin(), x.end(), [](float v) { return std::abs(v) > 2; });
  const double p = 0.0455002638963584;  // erfc(sqrt(2))
  EXPECT_NEAR(static_cast<double>(beyond_2) / kMany, p, five_sigma(std::sqrt(p * (1 - p))));
}

TEST(Random, BernoulliFrequencies) {
  for (const double p : {0.0, 0.03, 0.3, 0.5, 1.0}) {
    const auto x = Draws(14, [p] { return bernoulli(full({kMany}, p)); }).run();
    for (const float v : x) ASSERT_TRUE(v == 0 || v == 1);
    EXPECT_NEAR(mean_of(x), p, five_sigma(std::sqrt(p * (1 - p)))) << p;
  }
}

TEST(Random, CategoricalFrequencies) {
  // Probabilities 1/10, 2/10, 3/10, 4/10, given up to a constant; one class is impossible.
  const auto x = Draws(15, [] {
                   const Tensor logits = log(cast(arange(0, 5), f32)) + 7.0f;
                   return categorical(broadcast_to(logits, {kMany, 5}));
                 }).run();
  std::vector<double> seen(5);
  for (const float v : x) ++seen.at(static_cast<std::size_t>(v));
  EXPECT_EQ(seen[0], 0);
  for (std::size_t c = 1; c < 5; ++c) {
    const double p = static_cast<double>(c) / 10;
    EXPECT_NEAR(seen[c] / kMany, p, five_sigma(std::sqrt(p * (1 - p)))) << c;
  }
}

struct Weights {
  Param w{{kMany}, init::ones()};
};

TEST(Dropout, KeepsTheMeanAndTheRestIsScaled) {
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    auto train = compile(Weights{}, {.optimizer = Sgd{.lr = 0}, .seed = 21},
                         [&](const Weights& m, const Inputs&) -> Outputs {
                           const Tensor y = dropout(m.w, p);
                           return {{"loss", sum(y) * 1e-3f}, {"y", y}};
                         });
    const Array out = train.step()["y"];
    const auto y = out.floats();
    const float kept = 1 / (1 - p);
    for (const float v : y) ASSERT_TRUE(v == 0 || v == kept) << v;
    const auto zeros = std::count(y.begin(), y.end(), 0.0f);
    EXPECT_NEAR(static_cast<double>(zeros) / kMany, p, five_sigma(std::sqrt(p * (1 - p))));
  }
}

TEST(Dropout, BackwardUsesTheMaskOfForward) {
  auto train = compile(Weights{}, {.optimizer = Sgd{.lr = 0}, .seed = 22},
                       [](const Weights& m, const Inputs&) -> Outputs {
                         const Tensor y = dropout(m.w, 0.5f);
                         return {{"loss", sum(y)}, {"y", y}};
                       });
  std::vector<float> before;
  for (int step = 0; step < 3; ++step) {
    const Array out = train.step()["y"];
    const std::vector<float> y(out.floats().begin(), out.floats().end());
    const Array gradient = train.gradients().at("w");
    const std::vector<float> g(gradient.floats().begin(), gradient.floats().end());
    EXPECT_EQ(g, y) << "step " << step;  // w is 1: the value and its derivative are both the mask
    EXPECT_NE(y, before) << "steps share a mask";
    before = y;
  }
}

TEST(Dropout, TwoCallsHaveTwoMasks) {
  auto train =
      compile(Weights{}, {.optimizer = Sgd{.lr = 0}, .seed = 23},
              [](const Weights& m, const Inputs&) -> Outputs {
                return {{"loss", sum(m.w)}, {"both", dropout(m.w, 0.5f) * dropout(m.w, 0.5f)}};
              });
  const Array both = train.step()["both"];
  const auto kept = std::count(both.floats().begin(), both.floats().end(), 4.0f);
  EXPECT_NEAR(static_cast<double>(kept) / kMany, 0.25, five_sigma(std::sqrt(3) / 4));
}

TEST(Dropout, DropsInTrainingOnly) {
  const auto y_of = [](const Weights& m, const Inputs&) { return dropout(m.w, 0.5f); };
  const auto is_ones = [](const Array& a) {
    return std::all_of(a.floats().begin(), a.floats().end(), [](float v) { return v == 1; });
  };
  EXPECT_TRUE(is_ones(compile_forward(Weights{}, {}, y_of).run().output()));
  auto train = compile(Weights{}, {},
                       [](const Weights& m, const Inputs&) { return sum(dropout(m.w, 0.5f)); });
  EXPECT_TRUE(is_ones(train.attach({}, y_of).run().output()));
  EXPECT_FALSE(is_ones(train.attach({.training = true}, y_of).run().output()));
}

}  // namespace
}  // namespace tensorgrad::checks
