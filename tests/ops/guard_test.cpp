// Every tensor of every row's plan has poisoned memory on both sides. Nothing around it is written,
// and nothing is read from there, because the results stay the same.
#include "checks/eval_graph.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using Guards = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Guards, testing::ValuesIn(all_rows()), row_name);

TEST_P(Guards, NothingOutsideATensorIsTouched) {
  const SampleGraph made = build(sample());
  const auto plain = eval::evaluate(made.gradient, made.leaves);
  for (const std::vector<std::string>& without : {std::vector<std::string>{}, {"fuse"}}) {
    const auto guarded = eval::evaluate(made.gradient, made.leaves,
                                        {.threads = 2, .without = without, .guards = true});
    EXPECT_EQ(guarded.damage, "") << (without.empty() ? "fused" : "not fused");
    if (!without.empty()) continue;
    for (std::size_t i = 0; i < plain.bits.size(); ++i)
      EXPECT_EQ(guarded.bits[i] == plain.bits[i], true)
          << made.gradient.results[i].name << " differs in\n"
          << ir::print(made.gradient);
  }
}

}  // namespace
}  // namespace tensorgrad::checks
