// tg train: events, learned sums, and weights that depend only on the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <regex>

#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"
#include "tests/support/tool_process.h"

namespace tensorgrad {
namespace {

using nlohmann::ordered_json;

// The last line of a run that ended well.
ordered_json train(const std::string& arguments) {
  const ToolRun run = run_tool("train " + arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  return lines.empty() ? ordered_json() : lines.back();
}

TEST(ToolTrain, ReportsStepsThenDone) {
  const ToolRun run = run_tool("train sin --steps 50 --seed 3 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(keys(lines.front()), "event step loss");
  std::int64_t last_step = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string event = lines[i]["event"];
    EXPECT_TRUE(event == "step" || event == "eval") << lines[i];
    EXPECT_GE(lines[i]["step"], last_step);
    last_step = lines[i]["step"];
  }
  EXPECT_EQ(last_step, 50);

  const ordered_json& done = lines.back();
  EXPECT_EQ(keys(done),
            "event task device seed steps seconds compile_ms loss accuracy params_sha256");
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["task"], "sin");
  EXPECT_EQ(done["seed"], 3);
  EXPECT_EQ(done["steps"], 50);
  EXPECT_GT(done["seconds"], 0.0);
  EXPECT_GE(done["accuracy"], 0.0);
  EXPECT_LE(done["accuracy"], 1.0);
  EXPECT_TRUE(
      std::regex_match(done["params_sha256"].get<std::string>(), std::regex("[0-9a-f]{64}")));
  expect_contains(run.err, "held-out accuracy ");  // people's text is not lost
  expect_contains(run.err, " % (of 1,000 points within 0.05 of the sine)\n");
}

TEST(ToolTrain, OneStepIsOneStep) {
  const ToolRun run = run_tool("train sin --steps 1 --threads 0 --device cpu");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expect_contains(run.out, "\n1 step in ");
  // The header shows the vector instructions.
  const ordered_json cpu = json_lines(run_tool("devices --json")).at(0);
  expect_contains(run.out, ", " + cpu["simd"].get<std::string>() + "), compiled in ");
}

TEST(ToolTrain, FitsTheSine) {
  const ordered_json done = train("sin --seed 1");
  EXPECT_GE(done["accuracy"], 0.99);
  EXPECT_LT(done["loss"], 1e-3);
}

TEST(ToolTrain, SinDependsOnTheSeedAlone) {
  const ordered_json one = train("sin --steps 50 --seed 5 --threads 1");
  EXPECT_EQ(train("sin --steps 50 --seed 5 --threads 1")["params_sha256"], one["params_sha256"]);
  EXPECT_EQ(train("sin --steps 50 --seed 5 --threads 2")["params_sha256"], one["params_sha256"]);
  EXPECT_NE(train("sin --steps 50 --seed 6 --threads 1")["params_sha256"], one["params_sha256"]);
}

TEST(ToolTrain, AdditionDependsOnTheSeedAlone) {
  const ordered_json one = train("addition --steps 30 --seed 5 --threads 1");
  const ordered_json two = train("addition --steps 30 --seed 5 --threads 2");
  EXPECT_EQ(two["params_sha256"], one["params_sha256"]);
  EXPECT_EQ(two["loss"], one["loss"]);
  EXPECT_EQ(two["accuracy"], one["accuracy"]);
}

// Far fewer than the 1,500 steps of 64 that copying takes, but better than guessing, whose loss is
// log(8) = 2.08.
TEST(ToolTrain, CopyBeginsToLearn) {
  EXPECT_LT(train("copy --steps 300 --batch 32 --seed 1 --device cpu")["loss"], 1.6);
}

TEST(ToolTrain, CopyDependsOnTheSeedAlone) {
  const ordered_json one = train("copy --steps 20 --seed 5 --threads 1 --batch 16");
  const ordered_json two = train("copy --steps 20 --seed 5 --threads 2 --batch 16");
  EXPECT_EQ(two["params_sha256"], one["params_sha256"]);
  EXPECT_EQ(two["loss"], one["loss"]);
  EXPECT_EQ(two["accuracy"], one["accuracy"]);
  EXPECT_NE(train("copy --steps 20 --seed 6 --threads 1 --batch 16")["params_sha256"],
            one["params_sha256"]);
}

TEST(ToolTrain, TextForPeople) {
  const ToolRun run = run_tool("train sin --steps 150");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  expect_contains(run.out, "step 150/150");
  expect_contains(run.out, "the model says");
  EXPECT_EQ(run.out.find('\r'), run.out.npos);    // no line is rewritten in a file
  EXPECT_EQ(run.out.find('\x1b'), run.out.npos);  // no colours
  const auto lines = std::count(run.out.begin(), run.out.end(), '\n');
  EXPECT_GE(lines, 15);
  EXPECT_LE(lines, 28);
}

TEST(ToolTrain, CtrlCEndsWithTheSummary) {
  ToolProcess run({"train", "addition", "--steps", "6000", "--json"});  // a line every 300
  ASSERT_TRUE(run.wait_for_lines(R"("step")", 1)) << run.errors();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 130);
  const auto last = ordered_json::parse(run.lines().back());
  EXPECT_EQ(last["event"], "done");
  EXPECT_LT(last["steps"], 6000);
  expect_contains(run.errors(), "stopped: ");
}

// Long before the next line: with --json that is after 50,000 steps.
TEST(ToolTrain, EndsWhenNobodyReads) {
  const ToolRun text = run_tool("train addition --steps 1000000", R"(sh -c '"$0" "$@" | head -1')");
  expect_starts_with(text.out, "addition: ");
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 1) << text.out;
  run_tool("train addition --steps 1000000 --json", R"(sh -c '"$0" "$@" | true')");
}

using GpuToolTrain = GpuTest;

// Work of the driver when a kernel first runs does not count as steps.
TEST_F(GpuToolTrain, NamesTheAdapterAndCompilesFirst) {
  const ToolRun run = run_tool("train sin --steps 20 --device webgpu --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto devices = json_lines(run_tool("devices --json"));
  expect_contains(
      run.err, "on webgpu:0 (" + devices[1]["description"].get<std::string>() + "), compiled in ");
  const ordered_json done = json_lines(run).back();
  EXPECT_EQ(done["steps"], 20);
  EXPECT_GT(done["compile_ms"], 0.0);
}

// About a minute: the default run has to learn to add.
TEST(SlowAddition, LearnsTwoDigitSums) {
  const ordered_json done = train("addition --seed 1");
  EXPECT_EQ(done["steps"], 1500);
  EXPECT_GE(done["accuracy"], 0.99);
}

// Half a minute to two: the default run has to learn to copy.
TEST(SlowCopy, LearnsToFindLettersAmongNoise) {
  const ordered_json done = train("copy --seed 1");
  EXPECT_EQ(done["steps"], 1500);
  EXPECT_GE(done["accuracy"], 0.99);
}

}  // namespace
}  // namespace tensorgrad
