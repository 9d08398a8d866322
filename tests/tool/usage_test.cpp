// Help, and errors for wrong arguments: message and exit code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

constexpr const char* kCommands[] = {"train", "inspect", "plot",   "show",  "bench",
                                     "ops",   "devices", "verify", "passes"};

TEST(ToolHelp, BareCallListsTheCommands) {
  const ToolRun run = run_tool("");
  EXPECT_EQ(run.exit_code, 0);
  for (const char* command : kCommands) expect_contains(run.out, command);
  EXPECT_EQ(run.out, run_tool("--help").out);
  EXPECT_TRUE(run.out.ends_with("\n"));
  EXPECT_EQ(run.err, "");
}

TEST(ToolHelp, EveryCommandHasAnExample) {
  for (const std::string command : kCommands) {
    const ToolRun run = run_tool(command + " --help");
    EXPECT_EQ(run.exit_code, 0) << command;
    expect_contains(run.out, "Usage: tg " + command);
    expect_contains(run.out, "Example:\n  tg " + command);
    expect_contains(run.out, "--json");
  }
}

TEST(ToolHelp, HelpIsACommandToo) {
  EXPECT_EQ(run_tool("help").out, run_tool("--help").out);
  for (const std::string command : kCommands)
    EXPECT_EQ(run_tool("help " + command).out, run_tool(command + " --help").out);
  const ToolRun unknown = run_tool("help trian");
  EXPECT_EQ(unknown.exit_code, 2);
  expect_starts_with(unknown.err, "tg: there is no command 'trian': ");
}

TEST(ToolHelp, Version) {
  const ToolRun run = run_tool("--version");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out, "tensorgrad ");
  EXPECT_EQ(run_tool("-v").out, run.out);
}

// The most useful command, with the folder that it creates.
TEST(ToolHelp, ShowsHowToTrainOnText) {
  const std::string help = run_tool("--help").out;
  expect_contains(help, "\n  tg train text book.txt ");
  expect_contains(help, "\n  tg generate runs/book-gpt ");
  expect_contains(help, "a built-in task or a text file");
  expect_contains(run_tool("train text --help").out, "the run is in runs/book-gpt");
}

struct WrongCall {
  const char* arguments;
  int exit_code;
  const char* message;
};

class ToolUsage : public testing::TestWithParam<WrongCall> {};

TEST_P(ToolUsage, SaysWhatIsWrong) {
  const ToolRun run = run_tool(GetParam().arguments);
  EXPECT_EQ(run.exit_code, GetParam().exit_code);
  EXPECT_EQ(run.out, "");
  expect_starts_with(run.err, std::string("tg: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , ToolUsage,
    testing::Values(
        WrongCall{"trian", 2,
                  "there is no command 'trian': the commands are train, generate, convert, "
                  "inspect, plot, show, "},
        WrongCall{"test -R ops", 2,
                  "test: only the wrapper ./tg of a tensorgrad checkout has this command\n"
                  "  hint: ./tg test, in the folder of the checkout\n"},
        WrongCall{"web --port 80", 2, "web: only the wrapper ./tg of a tensorgrad checkout"},
        WrongCall{"webgpu", 2, "webgpu: only the wrapper ./tg of a tensorgrad checkout"},
        WrongCall{"train", 2, "train: which task?\n  hint: tg train addition\n"},
        WrongCall{
            "train sine", 2,
            "there is no task 'sine': the tasks are addition, copy, sin, text\n  hint: sin?\n"},
        WrongCall{"train sin --steps 0", 2,
                  "--steps: '0' is not a whole number from 1 to 2,147,483,648\n  hint: tg train "
                  "--help\n"},
        WrongCall{"train sin --steps abc", 2, "--steps: 'abc' is not a whole number from 1 to "},
        WrongCall{"train sin --steps 1.5", 2, "--steps: '1.5' is not a whole number from 1 to "},
        WrongCall{"train sin --lr -1", 2, "--lr: '-1' is not a number above 0\n"},
        WrongCall{"train sin --lr 0", 2, "--lr: '0' is not a number above 0\n"},
        WrongCall{"train sin --lr nan", 2, "--lr: 'nan' is not a number above 0\n"},
        WrongCall{"train sin --lr inf", 2, "--lr: 'inf' is not a number above 0\n"},
        WrongCall{"train sin --seed x", 2,
                  "--seed: 'x' is not a whole number from 0 to 4,294,967,295\n  hint: tg train "
                  "--help\n"},
        WrongCall{"train sin --step 10", 2,
                  "train: there is no option '--step'\n  hint: did you mean --steps?\n"},
        WrongCall{"train sin --step=10", 2,
                  "train: there is no option '--step=10'\n  hint: did you mean --steps?\n"},
        WrongCall{"train sin --abacus", 2,
                  "train: there is no option '--abacus'\n  hint: tg train --help\n"},
        WrongCall{"train sin cos", 2,
                  "train: unexpected argument 'cos'\n  hint: tg train --help\n"},
        WrongCall{"--versoin", 2,
                  "tg: there is no option '--versoin'\n  hint: did you mean --version?\n"},
        WrongCall{"train sin --device abacus", 2,
                  "--device: there is no device 'abacus': the devices are auto, cpu, "},
        WrongCall{"train sin --device wgsl", 2,
                  "--device: the device wgsl only shows shaders\n  hint: tg show MODEL --stage "
                  "emit --device "
                  "wgsl\n"},
        WrongCall{"train sin --without fuze", 2,
                  "--without: there is no pass 'fuze': the passes are attention, fold, "},
        WrongCall{"inspect", 2, "inspect: which file?\n  hint: tg inspect model.safetensors\n"},
        WrongCall{"inspect /nowhere/x.safetensors", 1,
                  "/nowhere/x.safetensors: cannot read: No such file or directory\n"},
        WrongCall{"plot", 2, "plot: which run?\n  hint: tg plot runs/book-gpt\n"},
        WrongCall{"plot /nowhere", 1, "/nowhere: not a run: there is no such folder\n"},
        WrongCall{"show", 2, "show: which model?"},
        WrongCall{"show gpt_smal", 2,
                  "there is no model 'gpt_smal': the models are mlp_sin, addition, "},
        WrongCall{
            "show addition --stage plam", 2,
            "there is no stage 'plam': the stages are trace, recognise, differentiate, update, "
            "simplify, materialise, fuse, plan, lower, emit, load\n  hint: plan?\n"},
        WrongCall{"show gemm_512 --stage update", 1,
                  "show: a forward program has no stage 'update'\n"},
        WrongCall{"bench --models mlp_sin,mlp_cos", 2, "there is no model 'mlp_cos': "},
        WrongCall{"bench --seconds 0", 2, "--seconds: '0' is not a number above 0\n"},
        WrongCall{"bench --page x.html", 2, "--page requires --profile\n"},
        WrongCall{"bench --models mlp_sin --profile --page /nowhere/x.html", 1,
                  "/nowhere/x.html: cannot write: No such file or directory\n"}));

TEST(ToolUsageHints, ANearNameIsOffered) {
  expect_contains(run_tool("train Sine").err, "\n  hint: sin?\n");
  expect_contains(run_tool("PLOT x").err, "\n  hint: plot?\n");
  expect_contains(run_tool("train sin --STEPS 3").err, "\n  hint: did you mean --steps?\n");
  expect_contains(run_tool("bench --device WEBGPU").err, "\n  hint: webgpu?\n");
  expect_contains(run_tool("bench --without fuze").err, "\n  hint: fuse?\n");
  expect_contains(run_tool("bench --device wegpu").err, "\n  hint: webgpu?\n");
}

// Only existing choices are suggested.
TEST(ToolUsageHints, NoAdapterIsOfferedThatIsNotThere) {
  const ToolRun run =
      run_tool("train sin --device abacus", "env TENSORGRAD_WEBGPU_LIBRARY=/nowhere/dawn.so");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(
      run.err,
      "tg: --device: there is no device 'abacus': the devices are auto, cpu, webgpu\n  hint: tg "
      "train --help\n");
}

// Errors of the operating system have the path and the reason, not the text of an exception.
TEST(ToolPaths, SayWhatIsWrongWithThem) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "tg_paths";
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::create_symlink("loop", folder / "loop");
  std::ofstream(folder / "file") << "the cat sat on the mat\n";
  const std::string loop = (folder / "loop" / "x").string(), file = (folder / "file").string();
  const std::string long_name = "/" + std::string(300, 'x');
  const struct {
    std::string arguments, path;
  } cases[] = {
      {"train text " + loop, loop},
      {"train text " + long_name, long_name},
      {"train text " + file + " --out " + loop, loop},
      {"train text " + file + " --out " + long_name, long_name},
      {"train text " + file + " --out " + file, file},
      {"train text " + file + " --out /proc/none", "/proc/none"},
      {"train text --resume --out " + loop, loop},
      {"train text --resume --out " + file, file},
      {"train " + loop, loop},
      {"generate " + loop, loop},
      {"generate " + long_name, long_name},
      {"plot " + loop, loop},
      {"plot " + file, file},
      {"plot " + long_name, long_name},
      {"inspect " + loop, loop},
      {"convert " + loop + " " + (folder / "out").string() + " --to torch", loop},
      {"verify " + loop, loop},
      {"bench --models mlp_sin --profile --page " + loop, loop},
  };
  for (const auto& bad : cases) {
    const ToolRun run = run_tool(bad.arguments);
    EXPECT_NE(run.exit_code, 0) << bad.arguments;
    EXPECT_LE(run.exit_code, 2) << bad.arguments;
    expect_starts_with(run.err, "tg: ");
    expect_contains(run.err, bad.path);
    for (const char* raw : {"filesystem error", "json.exception", "[/", "terminate"})
      EXPECT_EQ(run.err.find(raw), std::string::npos) << bad.arguments << "\n" << run.err;
  }
  fs::remove_all(folder);
}

TEST(ToolPaths, ACurrentFolderThatIsGone) {
  const std::string gone = testing::TempDir() + "tg_gone";
  const std::string there =
      "mkdir -p '" + gone + "' && cd '" + gone + "' && rmdir '" + gone + "' &&";
  const ToolRun train = run_tool("train text book.txt", there);
  EXPECT_EQ(train.exit_code, 1);
  EXPECT_EQ(train.err, "tg: book.txt: cannot read: No such file or directory\n");
  const ToolRun plot = run_tool("plot .", there);
  EXPECT_EQ(plot.exit_code, 1);
  EXPECT_EQ(plot.err, "tg: .: not a run: it has no readable log.jsonl\n");
}

}  // namespace
}  // namespace tensorgrad
