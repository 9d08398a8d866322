// What the bench models become: kernels and planned bytes, exact on every machine. A change here is
// a change of the plan; the new number belongs in the commit that makes it.
#include <gtest/gtest.h>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

struct Expected {
  const char* model;
  std::int64_t kernels, arena_bytes;
};

class PlanCounts : public testing::TestWithParam<Expected> {};

TEST_P(PlanCounts, AreExact) {
  const auto lines = json_lines(run_tool(std::string("show ") + GetParam().model + " --stage plan --json"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kernels"], GetParam().kernels);
  EXPECT_EQ(lines[0]["arena_bytes"], GetParam().arena_bytes);
}

TEST_P(PlanCounts, NoKernelOnlyCopies) {
  const std::string text = run_tool(std::string("show ") + GetParam().model + " --stage plan").out;
  EXPECT_EQ(text.find(" copy"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(, PlanCounts,
                         testing::Values(Expected{"mlp_sin", 12, 198656}, Expected{"addition", 99, 11931648},
                                         Expected{"gpt_small", 127, 177242112}),
                         [](const auto& test) { return std::string(test.param.model); });

}  // namespace
}  // namespace tensorgrad
