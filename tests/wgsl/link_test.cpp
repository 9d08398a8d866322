// Several kernels in one shader.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checks/planned.h"
#include "codegen/wgsl/shader.h"
#include "kernels/lower.h"
#include "ops/table.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

std::vector<ir::Kernel> kernels_of(const std::string& body,
                                   const std::vector<std::string>& without = {}) {
  const ir::Graph graph = ir::parse("graph {" + body + "}\n", ops::find_primitive);
  schedule::Layout parameters, state, inputs;
  for (const ir::Node& node : graph.nodes)
    if (node.op->name == "parameter") parameters.place(node.as<ir::LeafAttrs>().name, node.type);
  return kernels::lower(eval::planned(graph, {parameters, state, inputs}, without),
                        ir::gpu_model());
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t out = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++out;
  return out;
}

// Two gradients of one layer, and a reader of one of them.
constexpr const char* kTwo = R"(
  %0 = input {name="x", dtype=f32, shape=[64,48]}
  %1 = input {name="w", dtype=f32, shape=[48,80]}
  %2 = input {name="dy", dtype=f32, shape=[64,80]}
  %3 = permute(%1) {order=[1,0]}
  %4 = matmul(%2, %3)
  %5 = permute(%0) {order=[1,0]}
  %6 = matmul(%5, %2)
  output "dx" = %4
  output "dw" = %6
)";

TEST(Link, KernelsOfAStageShareAShader) {
  const auto kernels = kernels_of(kTwo);
  ASSERT_EQ(kernels.size(), 2u);
  const auto apart0 = wgsl::emit({&kernels[0], 1}, {}, false),
             apart1 = wgsl::emit({&kernels[1], 1}, {}, false);
  const auto shaders = wgsl::emit(kernels, {}, false);
  ASSERT_EQ(shaders.size(), 1u);
  EXPECT_EQ(shaders[0].name, apart0[0].name + " + " + apart1[0].name);
  EXPECT_EQ(shaders[0].workgroups[0], apart0[0].workgroups[0] + apart1[0].workgroups[0]);
  const std::string& text = shaders[0].wgsl;
  EXPECT_EQ(count(text, "fn left("), 1u) << text;
  EXPECT_EQ(count(text, "fn left_in_1("), 1u) << text;
  EXPECT_EQ(count(text, "var<workgroup> tile_a:"), 1u) << text;  // no workgroup is in both
  EXPECT_EQ(count(text, "fn piece_"), 2u) << text;
}

TEST(Link, NotWhereTheDeviceHasTooLittle) {
  // Workgroup memory of two kinds: a row reduction beside columns.
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[600,128]}
  %1 = reduce_sum(%0) {axes=[0]}
  %2 = softmax(%0) {axis=1}
  output "a" = %1
  output "b" = %2
)");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(wgsl::emit(kernels, {}, false).size(), 1u);
  EXPECT_EQ(wgsl::emit(kernels, {.workgroup_bytes = 4300}, false).size(), 2u);
  const auto groups = wgsl::emit(kernels, {}, false)[0].workgroups[0];
  EXPECT_EQ(wgsl::emit(kernels, {.workgroups = groups}, false).size(), 1u);
  EXPECT_EQ(wgsl::emit(kernels, {.workgroups = groups - 1}, false).size(), 2u);
  // Bindings: one kernel has inputs and outputs, the other parameters, too.
  const auto more = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[600,128]}
  %1 = parameter {name="w", dtype=f32, shape=[128]}
  %2 = exp(%1)
  %3 = softmax(%0) {axis=1}
  output "a" = %2
  output "b" = %3
)");
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(wgsl::emit(more, {.bindings = 3}, false).size(), 1u);
  EXPECT_EQ(wgsl::emit(more, {.bindings = 2}, false).size(), 2u);
}

// An argmax has 64 threads per workgroup, whatever its neighbours have.
TEST(Link, NotWhereWorkgroupsDifferInSize) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[600,128]}
  %1 = reduce_sum(%0) {axes=[0]}
  %2 = argmax(%0) {axis=1}
  output "a" = %1
  output "b" = %2
)");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].stage, kernels[1].stage);
  EXPECT_EQ(wgsl::emit(kernels, {}, false).size(), 2u);
}

// A matmul in parts, beside the start of a chain; its parts are combined beside the end of the
// chain.
TEST(Link, TheSecondShaderOfAKernelRunsWithTheNextStage) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[4096,64]}
  %1 = permute(%0) {order=[1,0]}
  %2 = matmul(%1, %0)
  %3 = input {name="y", dtype=f32, shape=[64,32]}
  %4 = exp(%3)
  %5 = input {name="z", dtype=f32, shape=[32,16]}
  %6 = matmul(%4, %5)
  output "g" = %2
  output "p" = %6
)",
                                  {"inline"});
  ASSERT_EQ(kernels.size(), 3u);
  const auto shaders = wgsl::emit(kernels, {}, false);
  ASSERT_EQ(shaders.size(), 2u);
  EXPECT_NE(shaders[0].name.find("(parts)"), std::string::npos) << shaders[0].name;
  EXPECT_NE(shaders[0].name.find("exp"), std::string::npos) << shaders[0].name;
  EXPECT_EQ(shaders[1].name, "matmul 1 x [64, 32]: matmul + matmul 1 x [64, 4096]: matmul (whole)");
}

// Both stages write partial results, to different places of the scratch memory.
TEST(Link, PartialResultsOfTwoStagesAreApart) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[4096,64]}
  %1 = permute(%0) {order=[1,0]}
  %2 = matmul(%1, %0)
  %3 = input {name="y", dtype=f32, shape=[4096,32]}
  %4 = exp(%3)
  %5 = permute(%4) {order=[1,0]}
  %6 = matmul(%5, %0)
  output "g" = %2
  output "p" = %6
)",
                                  {"inline", "side_by_side"});
  ASSERT_EQ(kernels.size(), 3u);
  const auto shaders = wgsl::emit(kernels, {}, false);
  ASSERT_EQ(shaders.size(), 3u);
  EXPECT_EQ(shaders[1].name,
            "matmul 1 x [32, 4096]: matmul (parts) + matmul 1 x [64, 4096]: matmul (whole)");
  EXPECT_GT(shaders[1].scratch_elements, shaders[0].scratch_elements);
}

// For any number of stages with partial results, two neighbours share the scratch memory.
TEST(Link, ScratchDoesNotGrowWithTheLayers) {
  std::string text = R"(
  %0 = input {name="x", dtype=f32, shape=[4096,64]}
  %1 = permute(%0) {order=[1,0]}
)";
  std::string results;
  int x = 0, next = 2;
  for (int layer = 0; layer < 6; ++layer) {
    text += fmt::format("  %{} = exp(%{})\n  %{} = matmul(%1, %{})\n", next, x, next + 1, next);
    results += fmt::format("  output \"g{}\" = %{}\n", layer, next + 1);
    x = next;
    next += 2;
  }
  const auto kernels = kernels_of(text + results, {"fuse"});
  ASSERT_EQ(kernels.size(), 12u);
  std::int64_t most = 0, one = 0;
  for (const ir::Kernel& kernel : kernels)
    for (const wgsl::Shader& shader : wgsl::emit({&kernel, 1}, {}, false))
      one = std::max(one, shader.scratch_elements);
  for (const wgsl::Shader& shader : wgsl::emit(kernels, {}, false))
    most = std::max(most, shader.scratch_elements);
  EXPECT_GT(one, 0);
  EXPECT_LE(most, 2 * one);
}

// Bad ids are recorded before later stages run: the piece that checks them does not wait for the
// next.
TEST(Link, APieceThatNotesBadIdsDoesNotWait) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[9000,8]}
  %1 = reduce_sum(%0) {axes=[0]}
  %2 = cast(%1) {to=i32}
  %3 = check_index(%2) {size=9}
  %4 = input {name="y", dtype=f32, shape=[64,32]}
  %5 = exp(%4)
  %6 = input {name="z", dtype=f32, shape=[32,16]}
  %7 = matmul(%5, %6)
  output "a" = %3
  output "b" = %7
)",
                                  {"inline"});
  ASSERT_EQ(kernels.size(), 3u);
  const auto shaders = wgsl::emit(kernels, {}, true);
  ASSERT_EQ(shaders.size(), 3u);
  EXPECT_TRUE(shaders[1].name.ends_with("(whole)")) << shaders[1].name;
  EXPECT_EQ(shaders[1].name.find(" + "), std::string::npos) << shaders[1].name;
}

TEST(Link, TheSecondShaderComesFirstWhereItIsWaitedFor) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[4096,64]}
  %1 = permute(%0) {order=[1,0]}
  %2 = matmul(%1, %0)
  %3 = reduce_max(%2) {axes=[0]}
  output "g" = %2
  output "m" = %3
)");
  ASSERT_EQ(kernels.size(), 2u);
  const auto shaders = wgsl::emit(kernels, {}, false);
  ASSERT_EQ(shaders.size(), 3u);
  EXPECT_EQ(shaders[1].name, "matmul 1 x [64, 4096]: matmul (whole)");
}

// The operands of a matmul in parts are temporaries, and the next stage writes temporaries. The
// parts have already read them, so combining the parts may wait for the next stage.
TEST(Link, TheSecondShaderOfAProductWaitsThoughItsOperandsAreWrittenOver) {
  const auto kernels = kernels_of(R"(
  %0 = input {name="x", dtype=f32, shape=[4096,64]}
  %1 = exp(%0)
  %2 = permute(%1) {order=[1,0]}
  %3 = matmul(%2, %1)
  %4 = input {name="y", dtype=f32, shape=[64,32]}
  %5 = exp(%4)
  %6 = input {name="z", dtype=f32, shape=[32,32]}
  %7 = matmul(%5, %6)
  %8 = matmul(%7, %6)
  %9 = matmul(%8, %6)
  output "g" = %3
  output "p" = %9
)",
                                  {"inline"});
  ASSERT_EQ(kernels.size(), 6u);
  const auto shaders = wgsl::emit(kernels, {}, false);
  ASSERT_EQ(shaders.size(), 4u);
  EXPECT_NE(shaders[1].name.find("(parts)"), std::string::npos) << shaders[1].name;
  EXPECT_EQ(shaders[2].name, "matmul 1 x [64, 32]: matmul + matmul 1 x [64, 4096]: matmul (whole)");
}

// The next stage writes parameters. Combining the parts of a matmul of parameters waits for it,
// unless the epilogue reads the parameters again.
TEST(Link, TheSecondShaderOfAProductDoesNotWaitForWhatItReads) {
  const std::string product = R"(
  %0 = parameter {name="w", dtype=f32, shape=[4096,64]}
  %1 = permute(%0) {order=[1,0]}
  %2 = matmul(%1, %0)
  %3 = exp(%0)
)";
  const auto waits = kernels_of(product + "output \"g\" = %2\nupdate \"w\" = %3\n");
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_LT(waits[0].stage, waits[1].stage);
  const auto together = wgsl::emit(waits, {}, false);
  ASSERT_EQ(together.size(), 2u);
  EXPECT_TRUE(together[1].name.ends_with(" + matmul 1 x [64, 4096]: matmul (whole)"))
      << together[1].name;

  const auto reads = kernels_of(product +
                                "%4 = narrow(%0) {axis=0, start=0, length=64}\n%5 = sub(%2, %4)\n"
                                "output \"g\" = %5\nupdate \"w\" = %3\n");
  ASSERT_EQ(reads.size(), 2u);
  const auto apart = wgsl::emit(reads, {}, false);
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_TRUE(apart[1].name.ends_with("(whole)")) << apart[1].name;
  EXPECT_EQ(apart[1].name.find(" + "), std::string::npos) << apart[1].name;
}

TEST(Link, TooManyBuffersAreRefused) {
  const auto kernels = kernels_of(kTwo);
  try {
    wgsl::emit(kernels, {.bindings = 1}, false);
    FAIL() << "nothing was raised";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "webgpu: a kernel needs 2 buffers at once, and the device allows 1: matmul 1 x "
                 "[64, 80]: matmul\n"
                 "  hint: a smaller batch, so that temporaries need fewer");
  }
}

}  // namespace
}  // namespace tensorgrad
