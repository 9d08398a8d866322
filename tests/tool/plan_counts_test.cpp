// What the bench models become: kernels and planned bytes, exact on every machine. A change here is
// a change of the plan; the new number belongs in the commit that makes it.
#include <gtest/gtest.h>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

struct Expected {
  const char* model;
  std::int64_t kernels, arena_bytes, operations;
};

class PlanCounts : public testing::TestWithParam<Expected> {};

TEST_P(PlanCounts, AreExact) {
  const auto lines = json_lines(run_tool(std::string("show ") + GetParam().model + " --stage plan --json"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kernels"], GetParam().kernels);
  EXPECT_EQ(lines[0]["arena_bytes"], GetParam().arena_bytes);
  EXPECT_EQ(lines[0]["operations"], GetParam().operations);
}

// What WebGPU guarantees: a kernel binds each space once, writable if it writes there, and 8 bindings are
// allowed. Offsets are what the strictest device takes.
TEST_P(PlanCounts, NoKernelOnlyCopiesAndPlacesAreAligned) {
  const auto lines = json_lines(run_tool(std::string("show ") + GetParam().model + " --stage plan --json"));
  std::int64_t top = 0;
  for (const auto& kernel : lines[0]["plan"]) {
    EXPECT_NE(kernel["kind"], "copy") << kernel;
    EXPECT_NE(kernel["ops"], nlohmann::json({"copy"})) << kernel;
    EXPECT_FALSE(kernel["writes"].empty()) << kernel;
    for (const auto& tensor : kernel["writes"]) {
      EXPECT_EQ(tensor["offset"].get<std::int64_t>() % 256, 0) << kernel;
      if (tensor["space"] == "arena")
        top = std::max(top, tensor["offset"].get<std::int64_t>() + (tensor["bytes"].get<std::int64_t>() + 255) / 256 * 256);
    }
  }
  EXPECT_EQ(top, GetParam().arena_bytes);
}

// The products of mlp_sin by hand: 3 forward, 3 for the weights, 2 for what comes before the last two
// layers; all else is elementwise and small.
TEST(PlanOperations, OfProductsAreCountedTwicePerElement) {
  const std::int64_t products = 2 * 256 * (3 * 64 * 64 + 2 * 64 + 3 * 64);
  std::int64_t counted = 0;
  for (const auto& kernel : json_lines(run_tool("show mlp_sin --json"))[0]["plan"])
    if (kernel["kind"] == "matmul" && kernel["ops"].size() == 1) counted += kernel["operations"].get<std::int64_t>();
  EXPECT_LE(counted, products);
  const auto all = json_lines(run_tool("show mlp_sin --json"))[0]["operations"].get<std::int64_t>();
  EXPECT_GT(all, products);
  EXPECT_LT(all, products + products / 10);
}

INSTANTIATE_TEST_SUITE_P(, PlanCounts,
                         testing::Values(Expected{"mlp_sin", 12, 198656, 6750868}, Expected{"addition", 99, 11170048, 949544281},
                                         Expected{"gpt_small", 127, 175310592, 23140005913}),
                         [](const auto& test) { return std::string(test.param.model); });

}  // namespace
}  // namespace tensorgrad
