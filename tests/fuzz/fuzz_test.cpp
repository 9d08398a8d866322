// Runs random programs. As a test: seeds 0 to 1,999, one test each. By hand:
//   test_fuzz --programs 100000 [--seed 17]   so many programs from that seed on
//   test_fuzz --seed 17                       one program, shrunk if it fails
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/fuzz/explore.h"
#include "tests/fuzz/generate.h"

namespace tensorgrad::fuzz {
namespace {

constexpr std::uint64_t kPrograms = 2000;

class Fuzz : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Random, Fuzz, testing::Range(std::uint64_t{0}, kPrograms));

TEST_P(Fuzz, AgreesWithTheInterpreter) {
  const Explored explored = explore(GetParam());
  EXPECT_NE(explored.verdict.kind, Verdict::Kind::fails) << explored.report;
}

int run_by_hand(std::uint64_t seed, std::uint64_t programs) {
  std::uint64_t failed = 0, unclear = 0;
  for (std::uint64_t i = 0; i < programs; ++i) {
    if (programs == 1) fmt::print("{}", generate(seed).text());
    const Explored explored = explore(seed + i);
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
  std::uint64_t seed = 0, programs = 0;
  bool has_seed = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed")
      seed = value, has_seed = true;
    else if (option == "--programs")
      programs = value;
  }
  if (has_seed || programs > 0) return tensorgrad::fuzz::run_by_hand(seed, programs > 0 ? programs : 1);
  return RUN_ALL_TESTS();
}
