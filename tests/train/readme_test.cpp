// README shows what the program prints, on every SIMD target of the machine and for any number of
// threads.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "codegen/cpu/simd.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

// The first block of plain text after the name of the example.
std::string shown_output() {
  std::ifstream in(TENSORGRAD_SOURCE_DIR "/README.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name = text.find("(examples/01_fit_a_sine.cpp)");
  const std::size_t begin = text.find("\n```\n", name) + 5, end = text.find("\n```\n", begin);
  return name == std::string::npos || end == std::string::npos
             ? ""
             : text.substr(begin, end + 1 - begin);
}

TEST(Readme, ShowsWhatTheFirstExamplePrints) {
  const std::string shown = shown_output();
  ASSERT_NE(shown.find("the model says"), std::string::npos);
  for (const std::string& target : cpu::simd_targets())
    for (const char* threads : {"1", "2"}) {
      SCOPED_TRACE(target + ", threads " + threads);
      const ToolRun run = run_command("TENSORGRAD_DEVICE=cpu TENSORGRAD_SIMD=" + target +
                                      " TENSORGRAD_THREADS=" + threads +
                                      " '" TENSORGRAD_EXAMPLES "/example_01_fit_a_sine'");
      EXPECT_EQ(run.out, shown);
    }
}

}  // namespace
}  // namespace tensorgrad
