// Kernels and planned bytes of the bench models, exact on every machine. A change here is a change
// of the plan; the commit that causes it updates the number.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

struct Expected {
  const char* model;
  std::int64_t kernels, arena_bytes, operations, dispatches;  // dispatches: of a GPU
};

class PlanCounts : public testing::TestWithParam<Expected> {};

TEST_P(PlanCounts, AreExact) {
  const auto lines =
      json_lines(run_tool(std::string("show ") + GetParam().model + " --stage plan --json"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kernels"], GetParam().kernels);
  EXPECT_EQ(lines[0]["arena_bytes"], GetParam().arena_bytes);
  EXPECT_EQ(lines[0]["operations"], GetParam().operations);
}

// The limits that every WebGPU device has: 8 storage buffers per kernel, 256 threads and 16 KiB per
// workgroup.
TEST_P(PlanCounts, ShadersStayWithinTheGuaranteedLimits) {
  std::istringstream text(
      run_tool(std::string("show ") + GetParam().model + " --stage emit --device wgsl").out);
  std::int64_t shaders = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("@group(0)")) {
      EXPECT_LT(std::stoi(line.substr(line.find("@binding(") + 9)), 8) << line;
    }
    if (line.starts_with("@compute")) {
      ++shaders;
      EXPECT_LE(std::stoi(line.substr(line.find("workgroup_size(") + 15)), 256) << line;
    }
  }
  EXPECT_EQ(shaders, GetParam().dispatches);
}

// Offsets fit the strictest device.
TEST_P(PlanCounts, NoKernelOnlyCopiesAndPlacesAreAligned) {
  const auto lines =
      json_lines(run_tool(std::string("show ") + GetParam().model + " --stage plan --json"));
  std::int64_t top = 0;
  for (const auto& kernel : lines[0]["plan"]) {
    EXPECT_NE(kernel["kind"], "copy") << kernel;
    EXPECT_NE(kernel["ops"].dump(), "[\"copy\"]") << kernel;
    EXPECT_FALSE(kernel["writes"].empty()) << kernel;
    for (const auto& tensor : kernel["writes"]) {
      EXPECT_EQ(tensor["offset"].get<std::int64_t>() % 256, 0) << kernel;
      if (tensor["space"] == "arena")
        top = std::max(top, tensor["offset"].get<std::int64_t>() +
                                (tensor["bytes"].get<std::int64_t>() + 255) / 256 * 256);
    }
  }
  EXPECT_EQ(top, GetParam().arena_bytes);
}

// The matmuls of mlp_sin by hand: 3 forward, 3 for the weights, 2 for the inputs of the last two
// layers; all else is elementwise and small.
TEST(PlanOperations, OfProductsAreCountedTwicePerElement) {
  const std::int64_t products = 2 * 256 * (3 * 64 * 64 + 2 * 64 + 3 * 64);
  const auto all = json_lines(run_tool("show mlp_sin --json"))[0]["operations"].get<std::int64_t>();
  EXPECT_GT(all, products);
  EXPECT_LT(all, products + products / 10);
}

INSTANTIATE_TEST_SUITE_P(, PlanCounts,
                         testing::Values(Expected{"mlp_sin", 13, 199936, 6834774, 9},
                                         Expected{"addition", 77, 10825984, 944396892, 59},
                                         Expected{"gpt_small", 121, 139921152, 21669445148, 84},
                                         Expected{"mamba_small", 113, 90171136, 6510496668, 93},
                                         Expected{"mamba_block", 29, 16286976, 1902635802, 27}),
                         [](const auto& test) { return std::string(test.param.model); });

}  // namespace
}  // namespace tensorgrad
