// The fixtures, the task `addition` and the examples on a GPU. A software driver takes minutes for
// all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"
#include "tests/train/reference_directory.h"

namespace tensorgrad {
namespace {

class SlowGpuFixtures : public GpuTest {};
class ReleaseGpuFixtures : public GpuTest {};

void expect_passed(const std::string& options, int count) {
  const VerifyRun run = run_verify(kFixtures, "--device webgpu " + options);
  EXPECT_EQ(run.done.dump(),
            fmt::format(R"({{"event":"done","passed":{},"failed":0,"skipped":0}})", count))
      << run.tool.err;
  EXPECT_EQ(run.tool.exit_code, 0);
}

// The op table runs all ops on the GPU too (GpuOps); these are whole training steps.
TEST_F(SlowGpuFixtures, MlpAndCnnTrainAsInPyTorch) {
  expect_passed("--filter train_mlp_sin", 1);
  expect_passed("--filter train_cnn", 1);
}

// Seven minutes on a software driver.
TEST_F(ReleaseGpuFixtures, AllOfPyTorchsPass) { expect_passed("", 149); }

class ReleaseGpuTrain : public GpuTest {};

nlohmann::ordered_json train(const std::string& arguments) {
  const ToolRun run = run_tool("train " + arguments + " --device webgpu --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  return lines.empty() ? nlohmann::ordered_json() : lines.back();
}

// Far fewer than the 1,500 steps of 128 that addition takes, but better than guessing, whose loss
// is log(10) = 2.3.
TEST_F(ReleaseGpuTrain, AdditionLearnsAndDependsOnTheSeedAlone) {
  const std::string arguments = "addition --steps 60 --batch 16 --seed 1";
  const auto one = train(arguments), again = train(arguments);
  EXPECT_LT(one["loss"].get<double>(), 1.9);
  EXPECT_EQ(again["params_sha256"], one["params_sha256"]);
  EXPECT_EQ(again["loss"], one["loss"]);
}

class GpuExamples : public GpuTest, public testing::WithParamInterface<std::string> {};
class ReleaseGpuExamples : public GpuExamples {};

// All of them; the first two take seconds.
std::vector<std::string> examples(bool quick) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(TENSORGRAD_SOURCE_DIR "/examples"))
    if (const std::string name = file.path().stem();
        file.path().extension() == ".cpp" && (name < "03") == quick)
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void expect_good_end(const std::string& example) {
  const ToolRun run =
      run_command("TENSORGRAD_DEVICE=webgpu '" TENSORGRAD_EXAMPLES "/example_" + example + "'");
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

TEST_P(GpuExamples, EndsWell) { expect_good_end(GetParam()); }
TEST_P(ReleaseGpuExamples, EndsWell) { expect_good_end(GetParam()); }

const auto name_of = [](const auto& test) { return test.param; };
INSTANTIATE_TEST_SUITE_P(Examples, GpuExamples, testing::ValuesIn(examples(true)), name_of);
INSTANTIATE_TEST_SUITE_P(Examples, ReleaseGpuExamples, testing::ValuesIn(examples(false)), name_of);

}  // namespace
}  // namespace tensorgrad
