// The shaders of a dozen small graphs, byte for byte, so that a change in generated code is visible
// in review. TENSORGRAD_UPDATE_GOLDEN=1 writes the files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "checks/planned.h"
#include "codegen/wgsl/shader.h"
#include "kernels/lower.h"
#include "ops/table.h"
#include "passes/pipeline.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

struct Golden {
  const char* name;
  const char* graph;
};

const Golden kGolden[] = {
    {"elementwise_quads", R"(
  %0 = input {name="x", dtype=f32, shape=[8,16]}
  %1 = input {name="b", dtype=f32, shape=[16]}
  %2 = broadcast_to(%1) {shape=[8,16]}
  %3 = add(%0, %2)
  %4 = gelu(%3)
  output "y" = %4
)"},
    {"elementwise_ragged", R"(
  %0 = input {name="x", dtype=f32, shape=[3,5]}
  %1 = permute(%0) {order=[1,0]}
  %2 = exp(%1)
  output "y" = %2
)"},
    {"padded_and_flipped", R"(
  %0 = input {name="x", dtype=f32, shape=[6]}
  %1 = pad(%0) {axis=0, before=1, after=2, value=-1}
  %2 = flip(%1) {axis=0}
  %3 = neg(%2)
  output "y" = %3
)"},
    {"softmax", R"(
  %0 = input {name="x", dtype=f32, shape=[40,64]}
  %1 = softmax(%0) {axis=1}
  output "y" = %1
)"},
    {"long_row", R"(
  %0 = input {name="x", dtype=f32, shape=[40000]}
  %1 = mul(%0, %0)
  %2 = reduce_sum(%1) {axes=[0]}
  %3 = sqrt(%2)
  output "norm" = %3
)"},
    {"columns", R"(
  %0 = input {name="x", dtype=f32, shape=[100,12]}
  %1 = reduce_sum(%0) {axes=[0]}
  output "y" = %1
)"},
    {"matmul_tiled", R"(
  %0 = input {name="x", dtype=f32, shape=[64,40]}
  %1 = parameter {name="w", dtype=f32, shape=[40,48]}
  %2 = matmul(%0, %1)
  %3 = relu(%2)
  output "y" = %3
)"},
    {"matmul_transposed_ragged", R"(
  %0 = input {name="x", dtype=f32, shape=[33,35]}
  %1 = input {name="z", dtype=f32, shape=[37,35]}
  %2 = permute(%1) {order=[1,0]}
  %3 = matmul(%0, %2)
  output "y" = %3
)"},
    {"matmul_parts_of_k", R"(
  %0 = input {name="x", dtype=f32, shape=[2048,64]}
  %1 = input {name="g", dtype=f32, shape=[2048,64]}
  %2 = permute(%0) {order=[1,0]}
  %3 = matmul(%2, %1)
  %4 = reduce_sum(%1) {axes=[0]}
  output "w" = %3
  output "b" = %4
)"},
    {"matmul_direct_batched", R"(
  %0 = input {name="q", dtype=f32, shape=[6,8,4]}
  %1 = input {name="k", dtype=f32, shape=[6,8,4]}
  %2 = permute(%1) {order=[0,2,1]}
  %3 = matmul(%0, %2)
  output "s" = %3
)"},
    {"embedding", R"(
  %0 = parameter {name="table", dtype=f32, shape=[10,8]}
  %1 = input {name="ids", dtype=i32, shape=[5]}
  %2 = embedding(%0, %1)
  output "y" = %2
)"},
    {"embedding_gradient", R"(
  %0 = input {name="g", dtype=f32, shape=[5,8]}
  %1 = input {name="ids", dtype=i32, shape=[5]}
  %2 = segment_sum(%0, %1) {rows=10}
  output "y" = %2
)"},
    {"embedding_gradient_sorted", R"(
  %0 = input {name="g", dtype=f32, shape=[300,8]}
  %1 = input {name="ids", dtype=i32, shape=[300]}
  %2 = segment_sum(%0, %1) {rows=2000}
  output "y" = %2
)"},
    {"shared_by_two", R"(
  %0 = input {name="x", dtype=f32, shape=[64,16]}
  %1 = softmax(%0) {axis=1}
  %2 = exp(%0)
  %3 = permute(%2) {order=[1,0]}
  %4 = reduce_max(%3) {axes=[1]}
  output "a" = %1
  output "b" = %4
)"},
    {"argmax", R"(
  %0 = input {name="x", dtype=f32, shape=[5,11]}
  %1 = argmax(%0) {axis=1}
  output "y" = %1
)"},
    {"cumsum", R"(
  %0 = input {name="x", dtype=f32, shape=[4,100]}
  %1 = cumsum(%0) {axis=1, reverse=false}
  output "y" = %1
)"},
};

std::string shaders_of(const std::string& body) {
  const ir::Graph graph = ir::parse("graph {" + body + "}\n", ops::find_primitive);
  schedule::Layout parameters, state, inputs;
  for (const ir::Node& node : graph.nodes)
    if (node.op->name == "parameter") parameters.place(node.as<ir::LeafAttrs>().name, node.type);
  const schedule::Plan plan =
      eval::planned(passes::simplify(graph, ir::gpu_model()), {parameters, state, inputs});
  std::string out;
  for (const wgsl::Shader& shader : wgsl::emit(kernels::lower(plan, ir::gpu_model()), {}, true))
    out += fmt::format("// {} x {} workgroups\n{}\n", shader.workgroups[0], shader.workgroups[1],
                       shader.wgsl);
  return out;
}

// All counts have 32 bits; a space that is never in memory can be larger.
TEST(Shaders, RefuseWhatTheyCannotCount) {
  try {
    shaders_of(R"(
  %0 = input {name="x", dtype=f32, shape=[70000]}
  %1 = reshape(%0) {shape=[70000,1]}
  %2 = broadcast_to(%1) {shape=[70000,70000]}
  %3 = broadcast_to(%0) {shape=[70000,70000]}
  %4 = mul(%2, %3)
  %5 = reduce_sum(%4) {axes=[1]}
  output "y" = %5
)");
    FAIL() << "nothing was raised";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "webgpu: a kernel has 4900000000 elements; the limit is 2^31 - 1: "
                 "rows 70000 x 70000: mul_reduce_sum");
  }
}

// More workgroups than one dimension allows are laid out in two.
TEST(Shaders, UseASecondDimensionWhereOneIsTooShort) {
  const ir::Graph graph = ir::parse(
      "graph {\n  %0 = input {name=\"x\", dtype=f32, shape=[1000]}\n  %1 = exp(%0)\n  output \"y\" "
      "= %1\n}\n",
      ops::find_primitive);
  schedule::Layout parameters, state, inputs;
  const auto kernels =
      kernels::lower(eval::planned(graph, {parameters, state, inputs}), ir::gpu_model());
  const auto shaders = wgsl::emit(std::span(kernels).first(1), {.workgroups = 3}, false);
  ASSERT_EQ(shaders.size(), 1u);
  EXPECT_EQ(shaders[0].workgroups, (std::array<std::uint32_t, 3>{3, 2, 1}));  // 4 are needed
  EXPECT_NE(shaders[0].wgsl.find(
                "let group = group_id.x + 3u * group_id.y;\n  if (group >= 4u) { return; }"),
            std::string::npos);
}

class GoldenShaders : public testing::TestWithParam<Golden> {};

TEST_P(GoldenShaders, IsByteForByteWhatItWas) {
  const auto file = std::filesystem::path(TENSORGRAD_SOURCE_DIR) / "tests/wgsl/golden" /
                    (std::string(GetParam().name) + ".wgsl");
  const std::string now = shaders_of(GetParam().graph);
  if (std::getenv("TENSORGRAD_UPDATE_GOLDEN")) {
    std::ofstream(file) << now;
    return;
  }
  std::stringstream was;
  was << std::ifstream(file).rdbuf();
  EXPECT_EQ(now, was.str()) << "TENSORGRAD_UPDATE_GOLDEN=1 writes " << file << " anew";
}

INSTANTIATE_TEST_SUITE_P(Wgsl, GoldenShaders, testing::ValuesIn(kGolden),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
