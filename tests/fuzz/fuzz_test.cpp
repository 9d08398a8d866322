// Runs random programs. As a test: seeds 0 to 1,999, one test each, and some of them on a GPU. By
// hand:
//   test_fuzz --programs 100000 [--seed 17]   that many programs from that seed on
//   test_fuzz --seed 17                       one program, shrunk if it fails
//   --device webgpu                           on a GPU
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/fuzz/explore.h"
#include "tests/fuzz/generate.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::fuzz {
namespace {

constexpr std::uint64_t kPrograms = 2000, kFewOnGpu = 6, kOnGpu = 150;

class Fuzz : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Random, Fuzz, testing::Range(std::uint64_t{0}, kPrograms));

TEST_P(Fuzz, AgreesWithTheInterpreter) {
  const Explored explored = explore(GetParam());
  EXPECT_NE(explored.verdict.kind, Verdict::Kind::fails) << explored.report;
}

class GpuFuzz : public GpuTest, public testing::WithParamInterface<std::uint64_t> {};
class ReleaseGpuFuzz : public GpuFuzz {};
INSTANTIATE_TEST_SUITE_P(Random, GpuFuzz, testing::Range(std::uint64_t{0}, kFewOnGpu));
INSTANTIATE_TEST_SUITE_P(Random, ReleaseGpuFuzz, testing::Range(kFewOnGpu, kOnGpu));

void expect_agreement_on_gpu(std::uint64_t seed) {
  const Explored explored = explore(seed, "webgpu");
  EXPECT_NE(explored.verdict.kind, Verdict::Kind::fails) << explored.report;
}

TEST_P(GpuFuzz, AgreesWithTheInterpreter) { expect_agreement_on_gpu(GetParam()); }
TEST_P(ReleaseGpuFuzz, AgreesWithTheInterpreter) { expect_agreement_on_gpu(GetParam()); }

int run_by_hand(const std::string& device, std::uint64_t seed, std::uint64_t programs) {
  std::uint64_t failed = 0, unclear = 0;
  for (std::uint64_t i = 0; i < programs; ++i) {
    if (programs == 1) fmt::print("{}", generate(seed).text());
    const Explored explored = explore(seed + i, device);
    unclear += explored.verdict.kind == Verdict::Kind::unclear;
    if (!explored.report.empty()) fmt::print("{}\n", explored.report), ++failed;
    std::fflush(stdout);
  }
  fmt::print("{} programs: {} failed, {} unclear\n", programs, failed, unclear);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tensorgrad::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // A software driver compiles for seconds what runs for milliseconds. Without optimisation it
  // compiles in less than half the time.
  setenv("GALLIVM_PERF", "nopt", 0);
  setenv("LP_NATIVE_VECTOR_WIDTH", "128", 0);
  std::uint64_t seed = 0, programs = 0;
  bool has_seed = false;
  std::string device = "cpu";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed")
      seed = value, has_seed = true;
    else if (option == "--programs")
      programs = value;
    else if (option == "--device")
      device = argv[i + 1];
  }
  if (has_seed || programs > 0)
    return tensorgrad::fuzz::run_by_hand(device, seed, programs > 0 ? programs : 1);
  return RUN_ALL_TESTS();
}
