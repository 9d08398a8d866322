// README shows what the program prints, on every SIMD target of the machine and for any number of
// threads. README and HACKING.md name the stages of the compiler's table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/cpu/simd.h"
#include "tensorgrad/compile.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

std::string read(const char* name) {
  std::ifstream in(std::string(TENSORGRAD_SOURCE_DIR "/") + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The first block of plain text after the name of the example.
std::string shown_output() {
  const std::string text = read("README.md");
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

// The words of the picture that are names of stages are all stages, in the order they run.
TEST(Readme, DrawsThePipelineOfTheTable) {
  const std::string text = read("README.md");
  const std::size_t begin = text.find("\n your struct + function\n"), end = text.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  std::istringstream picture(text.substr(begin, end - begin));
  std::vector<std::string> stages, drawn;
  for (const StageInfo& stage : compiler_stages()) stages.emplace_back(stage.name);
  for (std::string word; picture >> word;)
    if (std::find(stages.begin(), stages.end(), word) != stages.end()) drawn.push_back(word);
  EXPECT_EQ(drawn, stages);
}

// Every row of the table in HACKING.md is a stage, with its levels.
TEST(Hacking, ListsTheStagesOfTheTable) {
  const std::string text = read("HACKING.md");
  std::size_t at = text.find("| stage | from -> to | function |");
  ASSERT_NE(at, std::string::npos);
  for (const StageInfo& stage : compiler_stages()) {
    const std::string row = fmt::format("\n| `{}` | {} -> {} | ", stage.name, stage.from, stage.to);
    const std::size_t next = text.find(row, at);
    ASSERT_NE(next, std::string::npos) << row;
    EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                         text.begin() + static_cast<std::ptrdiff_t>(next) + 1, '\n'),
              stage.name == "trace" ? 2 : 1)
        << row;
    at = next;
  }
  EXPECT_EQ(text[text.find('\n', at + 1) + 1], '\n') << "a row that is no stage";
}

}  // namespace
}  // namespace tensorgrad
