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

// %1 is read last in the stage in which %5 and %6 are born: neither may lie where it does. %4 has the size of %1, too.
TEST(Overlap, WhatDiesInAStageIsNotOverwrittenInIt) {
  const Plan plan = plan_of(R"(graph {
  %0 = input {name="x", dtype=f32, shape=[40,40]}
  %1 = matmul(%0, %0)
  %2 = input {name="y", dtype=f32, shape=[40,40]}
  %3 = matmul(%1, %2)
  %4 = permute(%1) {order=[1,0]}
  %5 = matmul(%4, %2)
  %6 = matmul(%3, %5)
  %7 = exp(%6)
  output "a" = %7
}
)", {"side_by_side", "merge", "inline", "fuse"});
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 1, 1, 2, 3})) << plan.text();
  const auto place = [&](int step) { return plan.steps[static_cast<std::size_t>(step)].stored[0].place.offset; };
  EXPECT_NE(place(1), place(0));
  EXPECT_NE(place(2), place(0));
  EXPECT_NE(place(2), place(1));
}

// An operand that another kernel of the stage reads, too, is not overwritten, though this kernel reads it last.
TEST(Overlap, NothingIsDoneInPlaceWhileOthersRead) {
  const char* const graph = R"(graph {
  %0 = input {name="x", dtype=f32, shape=[40,40]}
  %1 = matmul(%0, %0)
  %2 = matmul(%1, %0)
  %3 = exp(%1)
  %4 = matmul(%3, %2)
  output "a" = %4
}
)";
  const std::vector<std::string> apart{"fuse"};
  std::vector<std::string> one_by_one = apart;
  one_by_one.push_back("overlap");
  const auto in_place = [](const Plan& plan) {
    int count = 0;
    for (const Step& step : plan.steps)
      for (const Stored& stored : step.stored) count += stored.over >= 0;
    return count;
  };
  EXPECT_EQ(in_place(plan_of(graph, one_by_one)), 1) << plan_of(graph, one_by_one).text();
  EXPECT_EQ(in_place(plan_of(graph, apart)), 0) << plan_of(graph, apart).text();
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
