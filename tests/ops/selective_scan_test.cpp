// Properties of the selective scan beyond single rows of the table: values computed by hand,
// independence from the chunk length, of sequences from each other and of steps from the future,
// and extreme values.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "checks/eval_graph.h"
#include "checks/sample_graph.h"
#include "tests/ops/literal.h"

namespace tensorgrad::checks {
namespace {

struct Sizes {
  std::int64_t B, L, E, N;
};

Tensor scan(In x, Discretisation rule, std::int64_t chunk = 16) {
  return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], {rule, chunk});
}

// The same values for any chunk length.
SampleGraph build_scan(const Sizes& s, Discretisation rule, std::int64_t chunk) {
  const Shape wide{s.B, s.L, s.E}, narrow{s.B, s.L, s.N};
  const std::vector<Arg> args{real(wide),          real(wide),          real({s.E, s.N}, -2, 2),
                              real(narrow, -1, 1), real(narrow, -1, 1), real({s.E})};
  return build({"selective_scan", "test", args, [=](In x) { return scan(x, rule, chunk); }});
}

class SelectiveScan : public testing::TestWithParam<Discretisation> {};
INSTANTIATE_TEST_SUITE_P(Ops, SelectiveScan,
                         testing::Values(Discretisation::euler, Discretisation::zoh),
                         [](const auto& test) {
                           return test.param == Discretisation::zoh ? "zoh" : "euler";
                         });

// softplus(0) = ln 2 and A = -1, so that a = 1/2. With Euler's rule h = (ln2, 5/2 ln2), with
// zero-order hold, whose weight of B u is 1/2, h = (1/2, 5/4).
TEST(SelectiveScanByHand, TwoSteps) {
  const std::vector<Arg> args{given({1, 2, 1}, {1, 2}), given({1, 2, 1}, {0}), given({1, 1}, {0}),
                              given({1, 2, 1}, {1}),    given({1, 2, 1}, {1}), given({1}, {10})};
  expect(args, [](In x) { return scan(x, Discretisation::euler); },
         {{std::numbers::ln2 + 10, 2.5 * std::numbers::ln2 + 20},
          {{1.5 * std::numbers::ln2 + 10, std::numbers::ln2 + 10},
           {0.75, 1 - 0.25 * std::numbers::ln2},
           {-0.5 * std::numbers::ln2 * std::numbers::ln2},
           {1.5 * std::numbers::ln2, 2 * std::numbers::ln2},
           {std::numbers::ln2, 2.5 * std::numbers::ln2},
           {3}}});
  expect(args, [](In x) { return scan(x, Discretisation::zoh); },
         {{10.5, 21.25},
          {{10.75, 10.5},
           {0.375, 0.375},
           {1.5 * std::numbers::ln2 - 1.75},
           {0.75, 1},
           {0.5, 1.25},
           {3}}});
}

TEST_P(SelectiveScan, AnyLengthOfChunksGivesTheSequentialForm) {
  const Sizes sizes{2, 100, 37, 6};
  const SampleGraph sequential = build_scan(sizes, GetParam(), sizes.L);
  const auto wanted = eval::interpret_results(sequential.gradient, sequential.leaves);
  const auto whole = eval::evaluate(sequential.gradient, sequential.leaves);
  for (const std::int64_t chunk : {1, 7, 64, 100, 256}) {
    SCOPED_TRACE(chunk);
    const SampleGraph made = build_scan(sizes, GetParam(), chunk);
    const auto got = eval::evaluate(made.gradient, made.leaves, {.threads = 2});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::string& name = made.gradient.results[i].name;
      EXPECT_EQ(eval::difference(got.results[i], whole.results[i], 1e-5), "") << name;
      EXPECT_EQ(eval::difference(got.results[i], wanted[i], 1e-5), "") << name;
    }
  }
}

TEST_P(SelectiveScan, ABatchIsItsSequences) {
  constexpr int kBatch = 3;
  const SampleGraph all = build_scan({kBatch, 21, 67, 5}, GetParam(), 8);
  const SampleGraph one = build_scan({1, 21, 67, 5}, GetParam(), 8);
  const auto batch = eval::evaluate(all.gradient, all.leaves);
  for (std::size_t b = 0; b < kBatch; ++b) {
    reference::Leaves leaves = one.leaves;
    for (auto& [name, value] : leaves) {  // A_log and D belong to all
      const std::vector<double>& from = all.leaves.at(name).data;
      const std::size_t first = from.size() == value.data.size() ? 0 : b * value.data.size();
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), value.data.size(),
                  value.data.begin());
    }
    const auto alone = eval::evaluate(one.gradient, leaves);
    for (std::size_t i = 0; i < alone.bits.size(); ++i) {
      const std::string& name = one.gradient.results[i].name;
      if (name == "x2" || name == "x5") continue;  // sums over the batch
      const auto& bits = batch.bits[i];
      ASSERT_EQ(bits.size(), kBatch * alone.bits[i].size());
      const auto first = bits.begin() + static_cast<std::ptrdiff_t>(b * alone.bits[i].size());
      EXPECT_TRUE(std::equal(alone.bits[i].begin(), alone.bits[i].end(), first))
          << name << " of sequence " << b;
    }
  }
}

TEST_P(SelectiveScan, NoStepSeesTheFuture) {
  const Sizes s{2, 20, 9, 5};
  const SampleGraph made = build_scan(s, GetParam(), 7);
  const auto before = eval::evaluate(made.forward, made.leaves);
  reference::Leaves leaves = made.leaves;
  for (auto& [name, value] : leaves) {
    const Shape& shape = value.type.shape;
    if (shape.rank() != 3) continue;
    for (std::int64_t b = 0; b < s.B; ++b)
      for (std::int64_t c = 0; c < shape[2]; ++c)
        value.data[static_cast<std::size_t>(((b + 1) * s.L - 1) * shape[2] + c)] += 1;
  }
  const auto after = eval::evaluate(made.forward, leaves);
  for (std::int64_t i = 0; i < s.B * s.L * s.E; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool last = i / s.E % s.L == s.L - 1;
    EXPECT_EQ(before.bits[0][at] != after.bits[0][at], last) << "element " << i;
  }
}

// Steps of 0 keep the state; infinite ones forget it.
TEST_P(SelectiveScan, FarOut) {
  const std::vector<double> deltas{-1e4, -104, -88, -17, 17, 88, 104, 1e4};
  const std::vector<Arg> args{
      real({1, 24, 3}),        given({1, 24, 3}, deltas), given({3, 4}, {-60, -9, 0, 6, 40}),
      real({1, 24, 4}, -1, 1), real({1, 24, 4}, -1, 1),   real({3})};
  const Discretisation rule = GetParam();
  const SampleGraph made =
      build({"selective_scan", "far_out", args, [=](In x) { return scan(x, rule, 5); }});
  const auto wanted = eval::interpret_results(made.gradient, made.leaves);
  const auto got = eval::evaluate(made.gradient, made.leaves);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (const double x : got.results[i].data) EXPECT_TRUE(std::isfinite(x));
    EXPECT_EQ(eval::difference(got.results[i], wanted[i], 2e-6), "")
        << made.gradient.results[i].name;
  }
}

TEST_P(SelectiveScan, NanReachesTheResult) {
  const SampleGraph made = build_scan({1, 6, 3, 2}, GetParam(), 4);
  for (const auto& [name, value] : made.leaves) {
    if (name.find("input") == 0) continue;  // the cotangent, and seeds
    SCOPED_TRACE(name);
    reference::Leaves leaves = made.leaves;
    leaves[name].data[0] = kNan;
    const auto wanted = eval::interpret_results(made.forward, leaves);
    EXPECT_EQ(eval::difference(eval::evaluate(made.forward, leaves).results[0], wanted[0], 2e-6),
              "");
  }
}

}  // namespace
}  // namespace tensorgrad::checks
