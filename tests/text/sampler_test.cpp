// Sampling tokens: which tokens each rule keeps, how often they are drawn, and that the result
// depends on nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tensorgrad/error.h"
#include "tensorgrad/generate.h"

namespace tensorgrad {
namespace {

// Logits of the probabilities 0.4, 0.3, 0.2, 0.1.
const std::vector<float> kLogits = {std::log(0.2f), std::log(0.4f), std::log(0.1f), std::log(0.3f)};

std::set<std::int32_t> kept(const SamplingOptions& options,
                            std::span<const std::int32_t> seen = {}) {
  Sampler sampler(options);
  std::set<std::int32_t> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(sampler.pick(kLogits, seen));
  return ids;
}

using Ids = std::set<std::int32_t>;

TEST(Sampler, EachRuleKeepsItsTokens) {
  EXPECT_EQ(kept({.temperature = 1}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.temperature = 0}), (Ids{1}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 1}), (Ids{1}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 2}), (Ids{1, 3}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 9}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.39f}), (Ids{1}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.69f}), (Ids{1, 3}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.75f}), (Ids{0, 1, 3}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.74f}), (Ids{1, 3}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.49f}), (Ids{0, 1, 3}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 1}), (Ids{1}));
  // top-k before top-p: the first of 0.4 and 0.3 has probability 0.57.
  EXPECT_EQ(kept({.temperature = 1, .top_k = 2, .top_p = 0.5f}), (Ids{1}));
}

TEST(Sampler, TokensComeAsOftenAsTheyAreLikely) {
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    Sampler sampler({.temperature = temperature, .seed = 7});
    std::vector<double> wanted = {0.2, 0.4, 0.1, 0.3}, counted(4);
    double sum = 0;
    for (double& p : wanted) sum += p = std::pow(p, 1 / static_cast<double>(temperature));
    const int n = 40000;
    for (int i = 0; i < n; ++i) counted[static_cast<std::size_t>(sampler.pick(kLogits))] += 1.0 / n;
    for (std::size_t id = 0; id < 4; ++id)
      EXPECT_NEAR(counted[id], wanted[id] / sum, 5 * std::sqrt(0.25 / n))
          << id << " at " << temperature;
  }
}

TEST(Sampler, SeenTokensBecomeLessLikely) {
  const std::vector<std::int32_t> seen = {1, 1, 1};  // the number of occurrences does not matter
  const std::vector<float> positive = {1.0f, 1.5f, 0.2f}, negative = {-1.0f, -0.9f, -3.0f};
  EXPECT_EQ(Sampler({.temperature = 0}).pick(positive, seen), 1);
  EXPECT_EQ(Sampler({.temperature = 0, .repetition_penalty = 2}).pick(positive, seen), 0);
  EXPECT_EQ(Sampler({.temperature = 0, .repetition_penalty = 2}).pick(negative, seen), 0);
  EXPECT_EQ(Sampler({.temperature = 0, .repetition_penalty = 1.4f}).pick(positive, seen), 1);
}

TEST(Sampler, SameSeedSameTokens) {
  const auto drawn = [](std::uint32_t seed) {
    Sampler sampler({.temperature = 1, .seed = seed});
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 100; ++i) ids.push_back(sampler.pick(kLogits));
    return ids;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Sampler, EqualOnesGoByTheirNumber) {
  const std::vector<float> equal(5, 0.5f);
  EXPECT_EQ(Sampler({.temperature = 0}).pick(equal), 0);
  Sampler two({.temperature = 1, .top_k = 2});
  for (int i = 0; i < 200; ++i) EXPECT_LT(two.pick(equal), 2);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Sampler({.temperature = 1}).pick(std::vector<float>{0, inf, 0}), 1);
  EXPECT_EQ(Sampler({.temperature = 1}).pick(std::vector<float>{-inf, 0, -inf}), 1);
}

TEST(Sampler, BadOptions) {
  const auto error = [](const SamplingOptions& options) -> std::string {
    try {
      Sampler(options).pick(kLogits, std::vector<std::int32_t>{9});
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error({.temperature = -1}), "sampling: the temperature must not be negative: -1");
  EXPECT_EQ(error({.temperature = std::nanf("")}),
            "sampling: the temperature must not be negative: nan");
  EXPECT_EQ(error({.top_k = -1}), "sampling: top_k must not be negative: -1");
  EXPECT_EQ(error({.top_p = 0}), "sampling: top_p must be above 0 and at most 1: 0");
  EXPECT_EQ(error({.top_p = 1.5f}), "sampling: top_p must be above 0 and at most 1: 1.5");
  EXPECT_EQ(error({.min_p = -0.5f}), "sampling: min_p must be from 0 to 1: -0.5");
  EXPECT_EQ(error({.repetition_penalty = 0}),
            "sampling: the repetition penalty must be above 0: 0");
  EXPECT_EQ(error({.repetition_penalty = 2}),
            "sampling: the seen token 9 is out of range: there are 4 tokens");
  const auto picking = [](const std::vector<float>& logits) -> std::string {
    try {
      Sampler({}).pick(logits);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(picking({}), "sampling: there are no logits");
  EXPECT_EQ(picking({0, std::nanf(""), 0}), "sampling: the logit of token 1 is NaN");
}

}  // namespace
}  // namespace tensorgrad
