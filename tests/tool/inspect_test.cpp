// tg show, bench, ops and devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "nn/registry.h"
#include "ops/table.h"
#include "tensorgrad/compile.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

class ToolShow : public testing::TestWithParam<const char*> {};

TEST_P(ToolShow, EveryStageIsTheSameText) {
  const std::string call = std::string("show addition --batch 4 --stage ") + GetParam();
  const ToolRun text = run_tool(call);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_GT(text.out.size(), std::string(GetParam()) == "load" ? 10u : 1000u);
  EXPECT_EQ(run_tool(call).out, text.out);

  const auto lines = json_lines(run_tool(call + " --json"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["model"], "addition");
  EXPECT_EQ(lines[0]["stage"], GetParam());
  EXPECT_EQ(lines[0]["batch"], 4);
  EXPECT_GT(lines[0]["kernels"], 0);
  EXPECT_GT(lines[0]["arena_bytes"], 0);
  EXPECT_EQ(lines[0]["text"], text.out);
}

INSTANTIATE_TEST_SUITE_P(, ToolShow,
                         testing::Values("trace", "recognise", "differentiate", "update",
                                         "simplify", "materialise", "fuse", "plan", "lower", "emit",
                                         "load"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ToolShowTimes, ListsEveryStage) {
  const auto lines = json_lines(run_tool("show mlp_sin --times --json"));
  ASSERT_EQ(lines.size(), 1u);
  const ToolRun text = run_tool("show mlp_sin --times");
  ASSERT_EQ(lines[0]["times"].size(), compiler_stages().size());
  for (std::size_t i = 0; i < compiler_stages().size(); ++i) {
    EXPECT_EQ(lines[0]["times"][i]["stage"], compiler_stages()[i].name);
    EXPECT_GE(lines[0]["times"][i]["ms"], 0);
    expect_contains(text.out, std::string(compiler_stages()[i].name));
  }
}

// The text is what the device gets: CPU routines there, shaders here.
TEST(ToolShowDevice, PrintsWhatTheDeviceGets) {
  const ToolRun cpu = run_tool("show mlp_sin --stage emit"),
                wgsl = run_tool("show mlp_sin --stage emit --device wgsl");
  EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
  EXPECT_EQ(wgsl.exit_code, 0) << wgsl.err;
  expect_contains(wgsl.out, "@compute");
  EXPECT_EQ(cpu.out.find("@compute"), std::string::npos);
  expect_contains(cpu.out, "vector instructions\n");
}

TEST(ToolShowDefaults, StageIsPlan) {
  EXPECT_EQ(run_tool("show mlp_sin").out, run_tool("show mlp_sin --stage plan").out);
  expect_contains(run_tool("show mlp_sin --stage trace").out, "f32[256,1]");  // its own batch
}

TEST(ToolBench, ReportsAModel) {
  const ToolRun run = run_tool("bench --models mlp_sin --seconds 0.1 --threads 2 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(
      keys(lines[0]),
      "model device threads simd batch ms_per_step best_ms compile_ms kernels dispatches passes "
      "submits arena_bytes param_bytes operations bytes_moved gflops");
  EXPECT_EQ(lines[0]["model"], "mlp_sin");
  EXPECT_EQ(lines[0]["threads"], 2);
  EXPECT_EQ(lines[0]["batch"], 256);
  EXPECT_EQ(lines[0]["param_bytes"], 4 * (64 + 64 + 64 * 64 + 64 + 64 + 1));
  EXPECT_GT(lines[0]["best_ms"], 0.0);
  EXPECT_GE(lines[0]["ms_per_step"], lines[0]["best_ms"]);
  EXPECT_NEAR(lines[0]["gflops"].get<double>() * lines[0]["ms_per_step"].get<double>(),
              lines[0]["operations"].get<double>() / 1e6, 0.1);
}

TEST(ToolBench, ReportsModelsInTheOrderAskedFor) {
  const ToolRun run = run_tool("bench --models gemm_512,addition --batch 8 --seconds 0.1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["model"], "gemm_512");
  EXPECT_EQ(lines[0]["batch"], 1);
  EXPECT_TRUE(keys(lines[0]).ends_with(" bytes_moved gflops"));
  EXPECT_NEAR(lines[0]["gflops"].get<double>() * lines[0]["ms_per_step"].get<double>(),
              2 * 512.0 * 512 * 512 / 1e6, 1);
  EXPECT_EQ(lines[1]["model"], "addition");
  EXPECT_EQ(lines[1]["batch"], 8);
  EXPECT_EQ(lines[1]["param_bytes"], 4 * 150592);
}

TEST(ToolBench, TableForPeople) {
  const ToolRun run = run_tool("bench --models mlp_sin --seconds 0.05");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out, "model ");
  expect_contains(run.out, "\nmlp_sin ");
}

TEST(ToolPasses, ListsThemWithASentenceEach) {
  const auto lines = json_lines(run_tool("passes --json"));
  const std::string text = run_tool("passes").out;
  std::vector<std::string> stages, passes;
  for (const auto& line : lines) {
    EXPECT_NE(line["what"], "");
    if (line.contains("pass")) {
      EXPECT_EQ(keys(line), "pass what stage");
      EXPECT_EQ(line["stage"], stages.back());
      passes.push_back(line["pass"]);
      expect_contains(text, passes.back());
    } else {
      EXPECT_EQ(keys(line), "stage what from to");
      stages.push_back(line["stage"]);
      expect_contains(text, stages.back());
    }
  }
  std::vector<std::string> known_stages, known_passes;
  for (const StageInfo& stage : compiler_stages()) known_stages.emplace_back(stage.name);
  for (const PassInfo& pass : compiler_passes()) known_passes.emplace_back(pass.name);
  EXPECT_EQ(stages, known_stages);
  EXPECT_EQ(passes, known_passes);
  expect_contains(text, "  cse           nothing is computed twice\n");
}

TEST(ToolOps, ListsOpsAndLayers) {
  const auto lines = json_lines(run_tool("ops --json"));
  const std::string text = run_tool("ops").out;
  std::vector<std::string> ops, layers;
  for (const auto& line : lines) {
    if (line.contains("op")) {
      EXPECT_EQ(keys(line), "op signature family sentence parameters several");
      ops.push_back(line["op"]);
    } else {
      EXPECT_EQ(keys(line), "layer signature sentence parameters inputs");
      layers.push_back(line["layer"]);
    }
    EXPECT_NE(line["sentence"], "");
    expect_contains(text, "\n  " + line["signature"].get<std::string>());
  }
  EXPECT_EQ(ops, nn::op_names());
  EXPECT_EQ(layers, nn::layer_names());
  for (const char* part :
       {"\n  softmax(x, axis = -1)                 exp(x) / sum(exp(x)) along an axis.\n",
        "\n  cross_entropy(logits, targets, reduction = mean, ignore_index = none, label_smoothing "
        "= "
        "0)\n",
        "\n  Linear(in, out, bias = true)(x)       x W + b over the last axis; W is [in, out].\n"})
    expect_contains(text, part);
  expect_contains(text, fmt::format("\n{} ops and {} layers", ops.size(), layers.size()));
}

TEST(ToolOps, ShowsOneWithItsTypes) {
  EXPECT_EQ(run_tool("ops pad").out,
            "pad(x, axis, before, after, mode = constant, value = 0)\n"
            "  Adds elements before and after one axis: a constant, or by reflection, or "
            "circularly.\n"
            "    x: tensor\n    axis: integer\n    before: integer\n    after: integer\n"
            "    mode: constant | reflect | circular = constant\n    value: number = 0\n");
  EXPECT_EQ(run_tool("ops RMSNorm").out,
            "RMSNorm(size, eps = 1e-05)(x)\n  RMS norm over the last axis.\n"
            "    size: integer\n    eps: number = 1e-05\n");
  const auto lines = json_lines(run_tool("ops 'conv*' --json"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["op"], "conv2d");
  const ToolRun unknown = run_tool("ops sofmax");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err, "tg: no op or layer is called 'sofmax'\n  hint: softmax?\n");
}

TEST(ToolOps, ListsThePrimitives) {
  std::size_t count = 0;
  for (const auto& family : ops::families()) count += family.primitives.size();
  const auto lines = json_lines(run_tool("ops --primitives --json"));
  ASSERT_EQ(lines.size(), count);
  for (const auto& line : lines) {
    EXPECT_EQ(keys(line), "family op core arity gradient");
    EXPECT_NE(line["core"], "?");
  }
  const ToolRun text = run_tool("ops --primitives");
  expect_contains(text.out, "matmul");
  expect_contains(text.out, std::to_string(count) + " primitives in ");
}

TEST(ToolOps, TheReferencePageIsUpToDate) {
  std::ifstream in(TENSORGRAD_SOURCE_DIR "/docs/ops.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(run_tool("ops --markdown").out == page)
      << "docs/ops.md is not what the registry says. Renew it:\n"
         "  ./tg ops --markdown > docs/ops.md";
}

}  // namespace
}  // namespace tensorgrad
