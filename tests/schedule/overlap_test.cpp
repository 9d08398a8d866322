// Stages: which kernels may run at the same time, and what that means for memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checks/planned.h"
#include "ops/table.h"
#include "schedule/operand.h"

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

Plan plan_of(const std::string& text, const std::vector<std::string>& without = {},
             std::int64_t piece = kOnePiece) {
  const ir::Graph graph = ir::parse(text, ops::find_primitive);
  Layout parameters, state, inputs;
  return eval::planned(graph, {parameters, state, inputs}, without, piece);
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

// %1 is last read in the stage that creates %5 and %6, so neither may use its memory. %4 has the
// size of %1, too.
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
)",
                            {"side_by_side", "merge", "inline", "fuse"});
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 1, 1, 2, 3})) << plan.text();
  const auto place = [&](int step) {
    return plan.steps[static_cast<std::size_t>(step)].stored[0].place.offset;
  };
  EXPECT_NE(place(1), place(0));
  EXPECT_NE(place(2), place(0));
  EXPECT_NE(place(2), place(1));
}

// An operand that another kernel of the stage reads is not overwritten, even if this kernel reads
// it last.
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

// X [rows,1024] and Y [64,1024] are computed first; then B [rows,1024] from Y beside A [rows,16],
// the last to read X.
std::string taking_turns(int rows) {
  return fmt::format(R"(graph {{
  %0 = input {{name="x", dtype=f32, shape=[{0},64]}}
  %1 = input {{name="w", dtype=f32, shape=[64,1024]}}
  %2 = input {{name="v", dtype=f32, shape=[64,64]}}
  %3 = input {{name="u", dtype=f32, shape=[1024,16]}}
  %4 = matmul(%0, %1)
  %5 = matmul(%2, %1)
  %6 = input {{name="t", dtype=f32, shape=[{0},64]}}
  %7 = matmul(%6, %5)
  %8 = matmul(%4, %3)
  %9 = permute(%8) {{order=[1,0]}}
  %10 = matmul(%9, %7)
  output "y" = %10
}}
)",
                     rows);
}

// Every step reads results of earlier ones, and stages never decrease.
void expect_legal(const Plan& plan) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_GE(plan.steps[s].stage, s == 0 ? 0 : plan.steps[s - 1].stage);
    for (const ir::NodeId id : plan.steps[s].group.nodes) {
      EXPECT_EQ(plan.fused.group[static_cast<std::size_t>(id)], static_cast<int>(s));
      for (const ir::NodeId input : plan.graph[id].inputs) {
        const int made = plan.fused.group[static_cast<std::size_t>(base_of(plan.graph, input))];
        if (made < 0 || made == static_cast<int>(s)) continue;
        EXPECT_LT(plan.steps[static_cast<std::size_t>(made)].stage, plan.steps[s].stage);
      }
    }
  }
}

// Together they need X and B at once. A, which writes less, goes first, and B reuses the memory of
// X.
TEST(Overlap, KernelsThatDecideHowMuchMemoryIsNeededTakeTurns) {
  const Plan plan = plan_of(taking_turns(512));
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 0, 1, 2, 3})) << plan.text();
  EXPECT_EQ(plan.graph[plan.steps[2].stored[0].node].type.text(), "f32[512,16]");
  EXPECT_EQ(plan.graph[plan.steps[3].stored[0].node].type.text(), "f32[512,1024]");
  expect_legal(plan);
  // X or B, Y, and A.
  EXPECT_EQ(plan.arena_bytes(), 4 * (512 * 1024 + 64 * 1024 + 512 * 16));
}

// 256 KB less are not worth a stage.
TEST(Overlap, SmallKernelsDoNotTakeTurns) {
  const Plan plan = plan_of(taking_turns(64));
  EXPECT_EQ(stages(plan), (std::vector<int>{0, 0, 1, 1, 2})) << plan.text();
  EXPECT_EQ(plan.arena_bytes(), 4 * (2 * 64 * 1024 + 64 * 1024 + 64 * 16));
  expect_legal(plan);
}

TEST(Overlap, TemporariesInPiecesLieInSeveralArenas) {
  const Plan whole = plan_of(kLayer, {"inline"}), pieces = plan_of(kLayer, {"inline"}, 64 * 80);
  EXPECT_EQ(whole.bytes(ir::Space::arena_1), 0);
  EXPECT_EQ(pieces.bytes(ir::Space::arena), 4 * 64 * 80);
  EXPECT_GT(pieces.bytes(ir::Space::arena_1), 0);
  EXPECT_EQ(pieces.arena_bytes(), whole.arena_bytes());
}

// The types of the group members' tensors in memory that are not results.
std::vector<std::string> kept(const Plan& plan) {
  std::vector<std::string> out;
  for (const Step& step : plan.steps)
    for (const Stored& stored : step.stored)
      if (ir::is_arena(stored.place.space)) out.push_back(plan.graph[stored.node].type.text());
  return out;
}

// log_softmax and its gradient g - exp(y) sum(g), where the sums are of columns: y is stored
// anyway, and exp(y) is recomputed where it is read.
TEST(KeptTwice, WorkOnRowsThatAreKeptAnywayIsDoneWhereItIsRead) {
  const Plan plan = plan_of(R"(graph {
  %0 = input {name="x", dtype=f32, shape=[64,100]}
  %1 = log_softmax(%0) {axis=1}
  %2 = exp(%1)
  %3 = reduce_sum(%1) {axes=[0]}
  %4 = broadcast_to(%3) {shape=[64,100]}
  %5 = mul(%2, %4)
  output "y" = %5
}
)");
  EXPECT_EQ(plan.steps.size(), 3u) << plan.text();
  EXPECT_EQ(kept(plan), (std::vector<std::string>{"f32[64,100]", "f32[100]"})) << plan.text();
}

// If the rows themselves are not needed, only values computed from them are stored.
TEST(KeptTwice, NotWhereNobodyElseReadsTheRows) {
  const Plan plan = plan_of(R"(graph {
  %0 = input {name="x", dtype=f32, shape=[64,100]}
  %1 = log_softmax(%0) {axis=1}
  %2 = exp(%1)
  %3 = reduce_sum(%2) {axes=[0]}
  %4 = broadcast_to(%3) {shape=[64,100]}
  %5 = mul(%2, %4)
  output "y" = %5
}
)");
  EXPECT_EQ(plan.steps.size(), 3u) << plan.text();
  EXPECT_EQ(kept(plan), (std::vector<std::string>{"f32[64,100]", "f32[100]"})) << plan.text();
  EXPECT_EQ(plan.graph[plan.steps[0].stored[0].node].op->name, "exp");
}

}  // namespace
}  // namespace tensorgrad::schedule
