// Every row's graph, with gradients, is unchanged by printing and parsing.
#include "ops/table.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using Text = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Text, testing::ValuesIn(all_rows()), row_name);

TEST_P(Text, ReadsBackAsTheSameGraph) {
  const ir::Graph graph = build(sample()).gradient;
  ASSERT_NO_THROW(ir::verify(graph));
  const std::string text = ir::print(graph);
  const ir::Graph again = ir::parse(text, ops::find_primitive);
  EXPECT_EQ(ir::print(again), text);
  EXPECT_EQ(ir::structural_hash(again), ir::structural_hash(graph));
  EXPECT_NO_THROW(ir::verify(again));
}

}  // namespace
}  // namespace tensorgrad::checks
