// The tool at a terminal: control characters of a model's text are escaped, and lines of
// --interactive can be edited and recalled.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/run_tool.h"
#include "tests/support/terminal.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

// ESC, a bell, a carriage return, U+009B; tab and letters stay. Then a byte that is not UTF-8.
const std::string kOdd = "a\x1b[31m\a\r\xc2\x9b|\t\xc3\xa9", kOddByte = kOdd + "\x9b";
const std::string kShown = "a\\x1b[31m\\x07\\x0d\\xc2\\x9b|\t\xc3\xa9";

class ToolTerminal : public testing::Test {
 protected:
  // A model of bytes, which accepts any prompt.
  static void SetUpTestSuite() {
    fs::remove_all(folder());
    fs::create_directories(folder());
    std::ofstream(folder() / "text") << std::string(3000, 'a');
    trained = run_tool("train text '" + (folder() / "text").string() +
                       "' --dim 16 --layers 1 --heads 2 --context 16 --batch 2 --device cpu "
                       "--tokenizer bytes --sample 2 --steps 2 --prompt '" +
                       kOdd + "' --out '" + model() + "'");
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path folder() { return fs::path(testing::TempDir()) / "tg_terminal"; }
  static std::string model() { return (folder() / "run").string(); }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::string> generate(const std::vector<std::string>& more) {
    std::vector<std::string> words = {TENSORGRAD_TG, "generate", model(), "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static inline ToolRun trained;
};

TEST_F(ToolTerminal, SamplesOfTrainingAreWrittenOutWithTheirStep) {
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  expect_contains(trained.out, "  sample at step 1:\n  | " + kShown);
  expect_contains(trained.out, "  sample at step 2:\n  | " + kShown);
  EXPECT_EQ(trained.out.find('\x1b'), std::string::npos);
}

TEST_F(ToolTerminal, GenerateWritesControlCharactersOutAtATerminalOnly) {
  Terminal terminal(generate({"--prompt", kOddByte, "--tokens", "0"}));
  const std::string shown = terminal.rest();
  EXPECT_EQ(terminal.exit_code(), 0) << shown;
  expect_contains(shown, kShown + "\\x9b\r\n");
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  const ToolRun piped =
      run_tool("generate '" + model() + "' --device cpu --tokens 0 --prompt '" + kOddByte + "'");
  EXPECT_EQ(piped.out, kOddByte + "\n");
  expect_starts_with(piped.err, model() + "/checkpoints/");  // information has no prefix
}

TEST_F(ToolTerminal, LinesAreEditedAndComeBack) {
  const fs::path cache = folder() / "cache";
  const std::vector<std::string> environment = {"TENSORGRAD_CACHE=" + cache.string(), "TERM=vt100",
                                                "HOME=" + folder().string()};
  const auto wait_for_prompt = [](Terminal& terminal) {
    terminal.wait_for("> ");
#ifdef TENSORGRAD_LIBEDIT
    terminal.wait_for_raw_mode();
#endif
  };
  const auto talk = [&](const std::string& keys) {
    Terminal terminal(generate({"--interactive", "--tokens", "1"}), environment);
    wait_for_prompt(terminal);
    terminal.type(keys);
    terminal.wait_for("\r\n");  // the end of the line: editing it may show its prompt again
    wait_for_prompt(terminal);  // the next prompt, after the answer
    terminal.type("\x04");      // ctrl-D
    terminal.rest();
    return terminal.exit_code();
  };
  // Letters, two deleted (127 is backspace), another at the beginning of the line (ctrl-A).
  EXPECT_EQ(talk("helloXX\x7f\x7f\x01"
                 "2\r"),
            0);
#ifndef TENSORGRAD_LIBEDIT
  GTEST_SKIP() << "the tool was built without libedit";
#endif
  const fs::path history = cache / "history";
  ASSERT_TRUE(fs::exists(history));
  expect_contains(read(history), "2hello\n");
  // The arrow up brings that line back in a new process.
  EXPECT_EQ(talk("\x1b[A!\r"), 0);
  expect_contains(read(history), "2hello!\n");
}

TEST_F(ToolTerminal, WithoutATerminalThereIsNoHistory) {
  const fs::path cache = folder() / "other cache";
  const ToolRun run = run_command(
      "( printf 'hello\\n' > '" + (folder() / "said").string() + "'; TENSORGRAD_CACHE='" +
      cache.string() + "' '" TENSORGRAD_TG "' generate '" + model() +
      "' --interactive --tokens 1 --device cpu < '" + (folder() / "said").string() + "' )");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(fs::exists(cache));
}

}  // namespace
}  // namespace tensorgrad
