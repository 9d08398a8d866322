// Attention with non-finite scores, and queries that see no key. The op table cannot have these,
// because NaN compares with nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Nothing {};

std::vector<float> attended(const std::vector<float>& q, const std::vector<float>& k,
                            const std::vector<float>& v, bool causal = false) {
  const auto T = static_cast<std::int64_t>(q.size()), S = static_cast<std::int64_t>(k.size());
  auto run = compile_forward(
      Nothing{},
      {.inputs = {{"q", {1, 1, T, 1}}, {"k", {1, 1, S, 1}}, {"v", {1, 1, S, 1}}}, .device = "cpu"},
      [&](const Nothing&, const Inputs& in) {
        return attention(in["q"], in["k"], in["v"], {.causal = causal, .scale = 1.0f});
      });
  const Array out = run.run({{"q", q}, {"k", k}, {"v", v}}).output();
  return {out.floats().begin(), out.floats().end()};
}

// A whole block of keys with scores of -inf has no weight, wherever it is.
TEST(AttentionScores, OfMinusInfinityWeighNothing) {
  std::vector<float> k(300, 1.0f), v(300);
  for (std::size_t i = 0; i < 192; ++i) k[i] = -kInfinity;
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(i), sum += i < 192 ? 0 : static_cast<double>(i);
  EXPECT_FLOAT_EQ(attended({1}, k, v)[0], static_cast<float>(sum / 108));
}

TEST(AttentionScores, AllOfMinusInfinityAreNoNumber) {
  EXPECT_TRUE(
      std::isnan(attended({1}, std::vector<float>(5, -kInfinity), std::vector<float>(5, 1.0f))[0]));
}

TEST(AttentionScores, ThatAreNoNumberShow) {
  for (const std::size_t at : {0u, 7u, 200u, 299u}) {
    std::vector<float> k(300, 1.0f);
    k[at] = std::nanf("");
    EXPECT_TRUE(std::isnan(attended({1}, k, std::vector<float>(300, 1.0f))[0])) << at;
  }
  // Only the queries that see it.
  const std::vector<float> out = attended({1, 1, 1}, {1, 1, std::nanf("")}, {1, 2, 3}, true);
  EXPECT_FLOAT_EQ(out[0], 1);
  EXPECT_FLOAT_EQ(out[1], 1.5f);
  EXPECT_TRUE(std::isnan(out[2]));
}

// The last position of a cache only decides which keys are visible, however far away it is.
TEST(AttentionStart, FarAwaySeesAllOrNothing) {
  auto run = compile_forward(
      Nothing{},
      {.inputs = {{"q", {1, 1, 1, 1}}, {"k", {1, 1, 3, 1}}, {"start", {}, i32}}, .device = "cpu"},
      [](const Nothing&, const Inputs& in) {
        return attention(in["q"], in["k"], in["k"], in["start"]);
      });
  const std::vector<float> q{0}, k{1, 2, 6};
  const auto at = [&](int start) {
    return run.run({{"q", q}, {"k", k}, {"start", start}}).output().floats()[0];
  };
  EXPECT_FLOAT_EQ(at(std::numeric_limits<int>::max()), 3);
  EXPECT_FLOAT_EQ(at(1), 1.5f);
  EXPECT_FLOAT_EQ(at(-1), 0);
  EXPECT_FLOAT_EQ(at(std::numeric_limits<int>::min()), 0);
}

}  // namespace
}  // namespace tensorgrad
