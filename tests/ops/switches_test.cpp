// Every row's value and gradients with all passes, and with each pass and each part of the
// scheduler left out.
#include "checks/eval_graph.h"
#include "passes/pipeline.h"
#include "schedule/fuse.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using Switches = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Switches, testing::ValuesIn(all_rows()), row_name);

TEST_P(Switches, RightWithEachPassLeftOut) {
  const SampleGraph made = build(sample(), Cotangent::ones);
  const auto want = eval::interpret_results(made.gradient, made.leaves);
  const auto check = [&](const std::vector<std::string>& without) {
    const auto got = eval::evaluate(made.gradient, made.leaves,
                                    {.threads = 2, .simplify = true, .without = without});
    const std::string_view name = without.empty() ? "nothing" : std::string_view(without[0]);
    EXPECT_EQ(got.damage, "") << "without " << name;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(eval::difference(got.results[i], want[i], sample().tolerance), "")
          << "without " << name << ": " << made.gradient.results[i].name << " of\n"
          << ir::print(made.gradient);
  };
  check({});
  for (const passes::Pass& pass : passes::pipeline()) check({std::string(pass.name)});
  for (const schedule::Switch& part : schedule::switches()) check({std::string(part.name)});
}

}  // namespace
}  // namespace tensorgrad::checks
