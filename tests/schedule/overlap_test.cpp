// Stages: which kernels may run at the same time, and what that means for memory.
#include <gtest/gtest.h>

#include "ops/table.h"
#include "schedule/plan.h"

namespace tensorgrad::schedule {
namespace {

// The gradients of a layer y = x W with a loss of sum(relu(y) v): dW and dx both need only dy.
constexpr const char* kLayer = R"(graph {
  %0 = input {name="x", dtype=f32, shape=[64,48]}
  %1 = input {name="w", dtype=f32, shape=[48,80]}
  %2 = input {name="dy", dtype=f32, shape=[64,80]}
  %3 = exp(%2)
  %4 = permute(%1) {order=[1,0]}
  %5 = matmul(%3, %4)
  %6 = permute(%0) {order=[1,0]}
  %7 = matmul(%6, %3)
  %8 = tanh(%5)
  %9 = reduce_sum(%8) {axes=[0]}
  output "dw" = %7
  output "s" = %9
}
)";

Plan plan_of(const std::string& text, const std::vector<std::string>& without = {}, std::int64_t piece = kOnePiece) {
  const ir::Graph graph = ir::parse(text, ops::find_primitive);
  Layout parameters, state, inputs;
  return plan(graph, {parameters, state, inputs}, without, piece);
}

std::vector<int> stages(const Plan& plan) {
  std::vector<int> out;
  for (const Step& step : plan.steps) out.push_back(step.stage);
  return out;
}

TEST(Overlap, ProductsThatNeedTheSameAreInOneStage) {
  const Plan plan = plan_of(kLayer, {"inline"});
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 1, 1, 2})) << plan.text();
  EXPECT_EQ(plan.steps[1].kind(), "matmul");
  EXPECT_EQ(plan.steps[2].kind(), "matmul");
}

TEST(Overlap, LeftOutEveryKernelIsAStage) {
  EXPECT_EQ(stages(plan_of(kLayer, {"inline", "overlap"})), (std::vector<int>{0, 1, 2, 3}));
}

// A kernel that fills a device alone has a stage of its own.
TEST(Overlap, LargeKernelsAreAlone) {
  const Plan plan = plan_of(R"(graph {
  %0 = input {name="x", dtype=f32, shape=[5000,1000]}
  %1 = exp(%0)
  %2 = input {name="y", dtype=f32, shape=[3]}
  %3 = exp(%2)
  output "a" = %1
  output "b" = %3
}
)");
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 1}));
}

// What one kernel of a stage reads, another may not write over, nor may two write to one place.
TEST(Overlap, NoMemoryIsSharedWithinAStage) {
  const Plan plan = plan_of(R"(graph {
  %0 = input {name="x", dtype=f32, shape=[40,40]}
  %1 = matmul(%0, %0)
  %2 = permute(%1) {order=[1,0]}
  %3 = reduce_sum(%2) {axes=[0]}
  %4 = exp(%1)
  %5 = matmul(%4, %0)
  %6 = reduce_max(%1) {axes=[0]}
  output "a" = %3
  output "b" = %5
  output "c" = %6
}
)", {"side_by_side", "merge", "inline"});
  bool together = false;
  for (const Step& a : plan.steps)
    for (const Step& b : plan.steps) {
      if (&a == &b || a.stage != b.stage) continue;
      together = true;
      for (const Stored& mine : a.stored) {
        EXPECT_LT(mine.over, 0) << plan.text();  // everything here has several readers
        for (const Stored& theirs : b.stored) EXPECT_FALSE(mine.place == theirs.place) << plan.text();
      }
    }
  EXPECT_TRUE(together);
}

TEST(Overlap, TemporariesInPiecesLieInSeveralArenas) {
  const Plan whole = plan_of(kLayer, {"inline"}), pieces = plan_of(kLayer, {"inline"}, 64 * 80);
  EXPECT_EQ(whole.bytes(ir::Space::arena_1), 0);
  EXPECT_EQ(pieces.bytes(ir::Space::arena), 4 * 64 * 80);
  EXPECT_GT(pieces.bytes(ir::Space::arena_1), 0);
  EXPECT_EQ(pieces.arena_bytes(), whole.arena_bytes());
}

}  // namespace
}  // namespace tensorgrad::schedule
