// Models of every kind learn a megabyte of text from tools/grammar_text, and then generate
// sentences of its grammar: all steps, as a user runs them.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/grammar.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class ReleaseToolLearnsText : public testing::TestWithParam<const char*> {};

void expect_to_learn(const std::string& model) {
  const fs::path folder = fs::path(testing::TempDir()) / ("tg learns " + model);
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string text = "'" + (folder / "text.txt").string() + "'",
                    run = "'" + (folder / "run").string() + "'";
  ASSERT_EQ(run_command("'" TENSORGRAD_SOURCE_DIR "/tools/grammar_text' > " + text).exit_code, 0);
  const ToolRun trained =
      run_tool("train text " + text + " --model " + model +
               " --steps 400 --dim 64 --layers 3 --sample 0 --device cpu --json --out " + run);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto lines = json_lines(trained);
  const double counting = lines.front()["unigram_loss"], validation = lines.back()["validation"];
  EXPECT_LT(validation, 0.5 * counting);
  const ToolRun written =
      run_tool("generate " + run + " --tokens 1500 --temperature 0.5 --device cpu --json");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const std::string said = json_lines(written).at(0)["text"];
  testing::Test::RecordProperty("share_of_sentences", std::to_string(share_of_sentences(said)));
  testing::Test::RecordProperty("validation", std::to_string(validation));
  EXPECT_GT(share_of_sentences(said), 0.7) << said;
  fs::remove_all(folder);
}

TEST_P(ReleaseToolLearnsText, AndWritesSentences) { expect_to_learn(GetParam()); }

// The hybrid has blocks of Mamba and of attention.
INSTANTIATE_TEST_SUITE_P(Models, ReleaseToolLearnsText,
                         testing::Values("gpt", "mamba", "mamba2", "hybrid"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tensorgrad
