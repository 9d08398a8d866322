// Every row's value and gradients have the same bits on every run and for any number of threads,
// and are right without fusion too.
#include "checks/eval_graph.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using Bits = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Bits, testing::ValuesIn(all_rows()), row_name);

TEST_P(Bits, SameOnEveryRunAndForAnyNumberOfThreads) {
  const SampleGraph made = build(sample());
  const auto once = eval::evaluate(made.gradient, made.leaves, {.threads = 1});
  for (const int threads : {1, 2, 3}) {
    const auto again = eval::evaluate(made.gradient, made.leaves, {.threads = threads});
    EXPECT_EQ(again.damage, "");
    for (std::size_t i = 0; i < once.bits.size(); ++i)
      EXPECT_EQ(again.bits[i] == once.bits[i], true)
          << made.gradient.results[i].name << " differs with " << threads << " threads, in\n"
          << ir::print(made.gradient);
  }
}

TEST_P(Bits, RightWithoutFusion) {
  const SampleGraph made = build(sample());
  const auto got = eval::evaluate(made.gradient, made.leaves, {.without = {"fuse"}});
  const auto want = eval::interpret_results(made.gradient, made.leaves);
  EXPECT_EQ(got.damage, "");
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(eval::difference(got.results[i], want[i], sample().tolerance), "")
        << made.gradient.results[i].name << " of\n"
        << ir::print(made.gradient);
}

}  // namespace
}  // namespace tensorgrad::checks
