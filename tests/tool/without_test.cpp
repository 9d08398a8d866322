// The PyTorch reference values hold with each pass of the compiler left out, on one thread and on
// two.
#include <gtest/gtest.h>

#include "tensorgrad/compile.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const PassInfo& pass : compiler_passes()) out.emplace_back(pass.name);
  return out;
}

class Without : public testing::TestWithParam<std::string> {};

TEST_P(Without, TheReferenceValuesHold) {
  for (const char* threads : {"1", "2"}) {
    const ToolRun run = run_tool("verify '" + std::string(TENSORGRAD_SOURCE_DIR) +
                                 "/tests/fixtures' --device cpu --json --threads " +
                                 std::string(threads) + " --without " + GetParam());
    ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

INSTANTIATE_TEST_SUITE_P(, Without, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// Leaving out a pass has an effect: more kernels, more memory or a larger graph.
TEST_P(Without, ThePlanIsAnother) {
  // A transformer splits nothing, so there is nothing to join.
  const std::string model = GetParam() == "join" ? "mamba_block" : "addition",
                    show = "show " + model + " --stage plan --json";
  const auto with = json_lines(run_tool(show))[0];
  const auto without = json_lines(run_tool(show + " --without " + GetParam()))[0];
  // The model has no arithmetic on constants, and its attention is not written out.
  EXPECT_EQ(with["text"] == without["text"], GetParam() == "fold" || GetParam() == "attention");
  EXPECT_GE(without["kernels"], with["kernels"]);
}

TEST(WithoutNames, AreChecked) {
  const ToolRun run = run_tool("show addition --without fuse,magic");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err,
            "tg: --without: there is no pass 'magic': the passes are attention, fold, "
            "algebra, join, views, cse, "
            "products, dce, fuse, inline, merge, side_by_side, ride, overlap, in_place, reuse\n  "
            "hint: tg show --help\n");
}

}  // namespace
}  // namespace tensorgrad
