// `tg devices --self-test`. Wrong results are tested with the comparison, in tests/ops.
#include <gtest/gtest.h>

#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

void expect_passes(const std::string& device) {
  const ToolRun run =
      run_tool("devices --self-test --rows 'softmax_*axis*' --json --device " + device);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto lines = json_lines(run);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(keys(lines[0]),
            "event device description passed failed rows unfinished hangs worst worst_row seconds");
  EXPECT_EQ(lines[0]["event"], "done");
  expect_starts_with(lines[0]["device"], device);
  EXPECT_GE(lines[0]["passed"], 3);
  EXPECT_EQ(lines[0]["failed"], 0);
  EXPECT_EQ(lines[0]["rows"], lines[0]["passed"]);
  EXPECT_GT(lines[0]["worst"], 0.0);
  EXPECT_LE(lines[0]["worst"], 1.0);
  expect_starts_with(lines[0]["worst_row"], "softmax_");
}

TEST(ToolSelfTest, PassesOnTheCpu) { expect_passes("cpu"); }

using GpuToolSelfTest = GpuTest;
TEST_F(GpuToolSelfTest, PassesOnAnAdapter) { expect_passes("webgpu"); }

TEST(ToolSelfTest, TextForPeople) {
  const ToolRun run = run_tool("devices --self-test --rows 'relu_*' --device cpu");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out, "cpu: the CPU, ");
  expect_contains(run.out, " passed, 0 failed in ");
  expect_contains(run.out, "the worst error is ");
  EXPECT_EQ(run.err, "");
}

TEST(ToolSelfTest, WrongCallsAreRefused) {
  const ToolRun none = run_tool("devices --self-test --rows sofmax");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, "tg: --rows: no row is called 'sofmax'\n  hint: 'softmax*', '*_long_*'\n");
  const ToolRun alone = run_tool("devices --all");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_EQ(alone.err, "tg: --all requires --self-test\n  hint: tg devices --help\n");
}

}  // namespace
}  // namespace tensorgrad
