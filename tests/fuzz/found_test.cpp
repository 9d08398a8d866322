// Programs that the fuzzer found and shrank, as graphs: each was wrong once.
#include <gtest/gtest.h>

#include "ir/primitive.h"
#include "ops/table.h"
#include "tests/fuzz/check.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::fuzz {
namespace {

Built parsed(const char* text) {
  Built built{ir::parse(text, ops::find_primitive)};
  std::uint64_t seed = 0;
  for (const ir::Node& node : built.graph.nodes)
    if (ir::is_leaf(node))
      built.leaves[std::string(node.op->name) + ":" + node.as<ir::LeafAttrs>().name] =
          draw(node.type, ++seed, -2, 2);
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
    {"a value per line was read by the elements of a row that is walked once, before it was made",
     R"(graph {
  %0 = state {name="rate", dtype=f32, shape=[]} : f32[]
  %1 = parameter {name="p", dtype=f32, shape=[4097]} : f32[4097]
  %2 = exp(%0) : f32[]
  %3 = broadcast_to(%2) {shape=[4097]} : f32[4097]
  %4 = mul(%1, %3) : f32[4097]
  %5 = mul(%4, %4) : f32[4097]
  %6 = reduce_sum(%5) {axes=[0]} : f32[]
  output "sum" = %6
})"},
    {"the sum of a right operand, made while packing, overwrote what the work on the product reads",
     R"(graph {
  %0 = parameter {name="v0", dtype=f32, shape=[2,2]} : f32[2,2]
  %1 = parameter {name="v1", dtype=f32, shape=[]} : f32[]
  %2 = reshape(%1) {shape=[1,1]} : f32[1,1]
  %3 = matmul(%2, %2) : f32[1,1]
  %4 = reshape(%3) {shape=[]} : f32[]
  %5 = narrow(%0) {axis=1, start=0, length=1} : f32[2,1]
  %6 = mul(%4, %4) : f32[]
  %7 = constant {value=0.5, dtype=f32} : f32[]
  %8 = add(%6, %7) : f32[]
  %9 = sqrt(%8) : f32[]
  %10 = reshape(%9) {shape=[1,1]} : f32[1,1]
  %11 = matmul(%5, %10) : f32[2,1]
  %12 = reshape(%11) {shape=[2]} : f32[2]
  %13 = broadcast_to(%1) {shape=[2]} : f32[2]
  %14 = add(%12, %13) : f32[2]
  %15 = mul(%14, %14) : f32[2]
  %16 = reduce_sum(%15) {axes=[0]} : f32[]
  %17 = add(%14, %14) : f32[2]
  %18 = reduce_sum(%17) {axes=[0]} : f32[]
  %19 = reshape(%17) {shape=[2,1]} : f32[2,1]
  %20 = permute(%5) {order=[1,0]} : f32[1,2]
  %21 = matmul(%20, %19) : f32[1,1]
  %22 = reshape(%21) {shape=[]} : f32[]
  %23 = div(%22, %9) : f32[]
  %24 = mul(%23, %4) : f32[]
  %25 = reshape(%24) {shape=[1,1]} : f32[1,1]
  %26 = permute(%2) {order=[1,0]} : f32[1,1]
  %27 = matmul(%25, %26) : f32[1,1]
  %28 = matmul(%26, %25) : f32[1,1]
  %29 = reshape(%28) {shape=[]} : f32[]
  %30 = add(%18, %29) : f32[]
  %31 = reshape(%27) {shape=[]} : f32[]
  %32 = add(%30, %31) : f32[]
  output "loss" = %16
  gradient "v1" = %32
})"},
    {"an infinite number, read through a guard, was written without the function that makes it",
     R"(graph {
  %0 = constant {value=1, dtype=f32} : f32[]
  %1 = constant {value=-inf, dtype=f32} : f32[]
  %2 = less(%0, %1) : bool[]
  %3 = where(%2, %1, %0) : f32[]
  %4 = reshape(%0) {shape=[1]} : f32[1]
  %5 = reshape(%3) {shape=[1]} : f32[1]
  %6 = concat(%4, %5) {axis=0} : f32[2]
  output "out" = %6
})"},
    {"the address of padding alone was a negative number, which a shader does not take as text",
     R"(graph {
  %0 = parameter {name="v0", dtype=f32, shape=[]} : f32[]
  %1 = parameter {name="v1", dtype=f32, shape=[1]} : f32[1]
  %2 = pad(%1) {axis=0, before=1, after=0, value=0} : f32[2]
  %3 = narrow(%2) {axis=0, start=0, length=1} : f32[1]
  %4 = reshape(%3) {shape=[]} : f32[]
  %5 = add(%0, %4) : f32[]
  output "out3" = %5
})"},
};

void expect_right(const std::vector<Configuration>& configurations) {
  for (const Found& found : kFound) {
    const Verdict verdict = check(parsed(found.graph), configurations);
    EXPECT_EQ(verdict.what, "") << found.what << ", " << verdict.configuration << "\n"
                                << found.graph;
  }
}

TEST(Found, IsRightInEveryConfiguration) { expect_right(all_configurations()); }

class GpuFound : public GpuTest {};
TEST_F(GpuFound, IsRight) { expect_right({all_configurations("webgpu")[0]}); }

class SlowGpuFound : public GpuTest {};
TEST_F(SlowGpuFound, IsRightInEveryConfiguration) { expect_right(all_configurations("webgpu")); }

}  // namespace
}  // namespace tensorgrad::fuzz
