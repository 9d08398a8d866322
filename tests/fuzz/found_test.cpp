// Programs that the fuzzer found and shrank, as graphs: each was wrong once.
#include <gtest/gtest.h>

#include "ir/primitive.h"
#include "ops/table.h"
#include "tests/fuzz/check.h"

namespace tensorgrad::fuzz {
namespace {

Built parsed(const char* text) {
  Built built{ir::parse(text, ops::find_primitive)};
  std::uint64_t seed = 0;
  for (const ir::Node& node : built.graph.nodes)
    if (node.op->core == ir::Core::leaf)
      built.leaves[std::string(node.op->name) + ":" + node.as<ir::LeafAttrs>().name] = draw(node.type, ++seed, -2, 2);
  return built;
}

struct Found {
  const char* what;
  const char* graph;
};
const Found kFound[] = {
    {"the leaf of an update that nothing reads was dropped", R"(graph {
  %0 = state {name="s", dtype=f32, shape=[3]} : f32[3]
  %1 = parameter {name="p", dtype=f32, shape=[3]} : f32[3]
  %2 = exp(%1) : f32[3]
  update "s" = %2
})"},
    {"a product still needed what a node that had left its group reads", R"(graph {
  %0 = parameter {name="v0", dtype=f32, shape=[2,2]} : f32[2,2]
  %1 = matmul(%0, %0) : f32[2,2]
  %2 = cast(%0) {to=bool} : bool[2,2]
  %3 = where(%2, %1, %0) : f32[2,2]
  %4 = less(%0, %3) : bool[2,2]
  %5 = narrow(%1) {axis=0, start=0, length=1} : f32[1,2]
  %6 = mul(%5, %5) : f32[1,2]
  output "less" = %4
  output "square" = %6
})"},
    {"a value per line was read by the elements of a row that is walked once, before it was made", R"(graph {
  %0 = state {name="rate", dtype=f32, shape=[]} : f32[]
  %1 = parameter {name="p", dtype=f32, shape=[4097]} : f32[4097]
  %2 = exp(%0) : f32[]
  %3 = broadcast_to(%2) {shape=[4097]} : f32[4097]
  %4 = mul(%1, %3) : f32[4097]
  %5 = mul(%4, %4) : f32[4097]
  %6 = reduce_sum(%5) {axes=[0]} : f32[]
  output "sum" = %6
})"},
};

TEST(Found, IsRightInEveryConfiguration) {
  for (const Found& found : kFound) {
    const Verdict verdict = check(parsed(found.graph), all_configurations());
    EXPECT_EQ(verdict.what, "") << found.what << ", " << verdict.configuration << "\n" << found.graph;
  }
}

}  // namespace
}  // namespace tensorgrad::fuzz
