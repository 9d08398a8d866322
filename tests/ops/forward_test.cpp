// Every row's value on the CPU against the double-precision interpreter.
#include "checks/eval_graph.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using Forward = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Forward, testing::ValuesIn(all_rows()), row_name);

TEST_P(Forward, AgreesWithTheInterpreter) {
  const SampleGraph made = build(sample());
  const eval::Evaluated got = eval::evaluate(made.forward, made.leaves);
  const auto want = eval::interpret_results(made.forward, made.leaves);
  EXPECT_EQ(got.damage, "");
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(eval::difference(got.results[i], want[i], sample().tolerance), "")
        << made.forward.results[i].name << " of\n"
        << ir::print(made.forward);
}

}  // namespace
}  // namespace tensorgrad::checks
