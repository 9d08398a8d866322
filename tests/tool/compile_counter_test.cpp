// The counter that the tool shows while a device compiles.
#include "tools/tg/compile_counter.h"

#include <gtest/gtest.h>

#include "runtime/webgpu/adapters.h"
#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"
#include "tests/support/terminal.h"

namespace tensorgrad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Reports at times chosen by the test.
class Counted {
 public:
  explicit Counted(bool in_place) : counter_(in_place) {}
  std::string at(milliseconds time, CompileWork work, std::int64_t done, std::int64_t total) {
    return counter_.show({done, total, work}, tool::CompileCounter::Clock::time_point(time));
  }

 private:
  tool::CompileCounter counter_;
};

// A single shader may take a software driver 40 s, so the line appears before it starts.
TEST(CompileCounter, ATerminalShowsShadersAtOnce) {
  Counted counter(true);
  const auto work = CompileWork::shaders;
  EXPECT_EQ(counter.at(seconds(0), work, 0, 12), "\rcompiling shaders: 0 of 12");
  EXPECT_EQ(counter.at(milliseconds(99), work, 1, 12), "");  // not more often than people can read
  EXPECT_EQ(counter.at(milliseconds(100), work, 2, 12), "\rcompiling shaders: 2 of 12");
  EXPECT_EQ(counter.at(milliseconds(101), work, 12, 12), "\r" + std::string(26, ' ') + "\r");
  EXPECT_EQ(counter.at(seconds(1), work, 0, 0), "");  // all known already
  // The next part has its own line.
  EXPECT_EQ(counter.at(seconds(2), CompileWork::first_run, 0, 1),
            "\rcompiling shaders in the first run: 0 of 1");
  EXPECT_EQ(counter.at(seconds(42), CompileWork::first_run, 1, 1),
            "\r" + std::string(42, ' ') + "\r");
}

TEST(CompileCounter, ATerminalShowsKernelsOfTheCpuWhenTheyTakeLong) {
  Counted counter(true);
  const auto work = CompileWork::kernels;
  EXPECT_EQ(counter.at(seconds(0), work, 0, 900), "");
  EXPECT_EQ(counter.at(milliseconds(499), work, 400, 900), "");
  EXPECT_EQ(counter.at(milliseconds(500), work, 401, 900), "\rcompiling kernels: 401 of 900");
}

TEST(CompileCounter, ElsewhereThereIsALineNowAndThen) {
  Counted counter(false);
  EXPECT_EQ(counter.at(seconds(0), CompileWork::tuning, 0, 2), "measuring matmuls: 0 of 2\n");
  EXPECT_EQ(counter.at(seconds(1), CompileWork::tuning, 1, 2), "");
  EXPECT_EQ(counter.at(seconds(2), CompileWork::tuning, 2, 2), "");
  // Usually quick: no line in a log.
  EXPECT_EQ(counter.at(seconds(2), CompileWork::shaders, 0, 40), "");
  EXPECT_EQ(counter.at(seconds(6), CompileWork::shaders, 10, 40), "");
  EXPECT_EQ(counter.at(seconds(7), CompileWork::shaders, 20, 40), "compiling shaders: 20 of 40\n");
  EXPECT_EQ(counter.at(seconds(9), CompileWork::shaders, 40, 40), "");
  EXPECT_EQ(counter.at(seconds(9), CompileWork::first_run, 0, 50),
            "compiling shaders in the first run: 0 of 50\n");
  EXPECT_EQ(counter.at(seconds(13), CompileWork::first_run, 1, 50), "");
  EXPECT_EQ(counter.at(seconds(14), CompileWork::first_run, 2, 50),
            "compiling shaders in the first run: 2 of 50\n");
}

TEST(ToolCompiles, NothingIsSaidOfAFewKernelsOfTheCpu) {
  const ToolRun run = run_tool("train sin --steps 1 --device cpu");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out.find("compiling"), std::string::npos) << run.out;
}

using GpuToolCompiles = GpuTest;

TEST_F(GpuToolCompiles, ATerminalShowsHowFarItIs) {
  Terminal tool({TENSORGRAD_TG, "train", "sin", "--steps", "1", "--device", "webgpu"});
  // The header comes first: a software driver may compile for minutes.
  expect_contains(tool.wait_for("compiling shaders: 0 of "), "sin: ");
  expect_contains(tool.rest(), "held-out accuracy");
  EXPECT_EQ(tool.exit_code(), 0);
}

TEST_F(GpuToolCompiles, TheSelfTestShowsShadersToo) {
  if (!webgpu::adapters().at(0).software) GTEST_SKIP() << "this GPU compiles too fast to see it";
  Terminal tool({TENSORGRAD_TG, "devices", "--self-test", "--device", "webgpu"});
  expect_contains(tool.wait_for("failed, compiling "), "row ");
}

TEST_F(GpuToolCompiles, ALogSaysThatTheFirstRunOfASoftwareDriverTakesLong) {
  const ToolRun run = run_tool("train sin --steps 1 --device webgpu --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string line = "compiling shaders in the first run: 0 of ";
  EXPECT_EQ(run.err.find(line) != std::string::npos, webgpu::adapters().at(0).software) << run.err;
}

}  // namespace
}  // namespace tensorgrad
