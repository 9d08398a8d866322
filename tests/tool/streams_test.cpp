// Standard streams that are closed or not writable: nothing aborts, training saves, no text goes to
// a file of the run, and lost results change the exit code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

struct Redirection {
  const char *name, *words;
  int exit_code;
};

constexpr Redirection kRedirections[] = {
    {"StderrFull", "2>/dev/full", 0},   {"StderrClosed", "2>&-", 0},
    {"StdoutClosed", ">&-", 0},         {"StdinClosed", "<&-", 0},
    {"AllClosed", "<&- >&- 2>&-", 0},   {"StdoutFull", ">/dev/full", 1},
    {"BothFull", ">/dev/full 2>&1", 1},
};

class ToolStreams : public testing::TestWithParam<Redirection> {
 protected:
  static void SetUpTestSuite() {
    fs::remove_all(folder());
    fs::create_directories(folder());
    std::ofstream out(folder() / "text");
    for (int i = 0; i < 100; ++i) out << "the cat sat on mat " << i << "\n";
    out.close();
    EXPECT_EQ(run_tool(train_text("trained")).exit_code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path folder() { return fs::path(testing::TempDir()) / "tg_streams"; }
  static std::string train_text(const std::string& run) {
    return "train text '" + (folder() / "text").string() +
           "' --dim 16 --layers 1 --heads 2 --context 16 --batch 2 --device cpu --threads 1 "
           "--tokenizer bytes --sample 3 --steps 4 --out '" +
           (folder() / run).string() + "'";
  }
  // The redirection is the innermost, so that it counts.
  static ToolRun redirected(const std::string& arguments) {
    return run_command("( '" TENSORGRAD_TG "' " + arguments + " " + GetParam().words + " )");
  }
  static void expect_end(const ToolRun& run) {
    EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.err;
    if (GetParam().name == std::string("StdoutFull")) {
      EXPECT_TRUE(
          run.err.ends_with("tg: the output could not be written: No space left on device\n"))
          << run.err;
    }
  }
};

TEST_P(ToolStreams, Sin) {
  expect_end(redirected("train sin --steps 3 --device cpu"));
  expect_end(redirected("train sin --steps 3 --device cpu --json"));
}

TEST_P(ToolStreams, Devices) {
  expect_end(redirected("devices"));
  expect_end(redirected("devices --json"));
}

TEST_P(ToolStreams, Help) { expect_end(redirected("--help")); }

TEST_P(ToolStreams, Generate) {
  const std::string run = "'" + (folder() / "trained").string() + "'";
  expect_end(redirected("generate " + run + " --tokens 3 --device cpu"));
  expect_end(redirected("generate " + run + " --tokens 3 --device cpu --json"));
  // There is no input, so there is no answer and nothing is lost.
  EXPECT_EQ(redirected("generate " + run + " --tokens 3 --device cpu --interactive").exit_code, 0);
}

TEST_P(ToolStreams, TrainingSaves) {
  for (const std::string json : {"", " --json"}) {
    const std::string name = GetParam().name + json;
    expect_end(redirected(train_text(name) + json));
    const fs::path run = folder() / name;
    EXPECT_TRUE(fs::exists(run / "checkpoints" / "step-00000004.safetensors")) << name;
    EXPECT_EQ(fs::file_size(run / ".lock"), 0u) << name;
    EXPECT_TRUE(fs::exists(run / "plot.html")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(, ToolStreams, testing::ValuesIn(kRedirections),
                         [](const auto& row) { return std::string(row.param.name); });

// The reader is gone: training continues to its end, and the exit code shows it.
TEST(ToolReader, TrainingOnTextGoesOnWithoutIt) {
  const fs::path folder = fs::path(testing::TempDir()) / "tg_reader";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "text") << std::string(3000, 'a');
  for (const std::string json : {"", "--json "}) {
    const fs::path run = folder / ("run" + json.substr(0, 1));
    const ToolRun tool = run_tool(
        "train text '" + (folder / "text").string() +
            "' --dim 16 --layers 1 --heads 2 --context 16 --batch 2 --device cpu --tokenizer bytes "
            "--sample 0 --steps 200 " +
            json + "--out '" + run.string() + "'",
        R"(bash -c '"$0" "$@" | true; exit ${PIPESTATUS[0]}')");
    EXPECT_EQ(tool.exit_code, 141) << tool.err;
    EXPECT_TRUE(fs::exists(run / "checkpoints" / "step-00000200.safetensors")) << json;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tensorgrad
