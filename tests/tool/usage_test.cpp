// Help, and what the tool says to wrong words on the command line: message and exit code.
#include <gtest/gtest.h>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

constexpr const char* kCommands[] = {"train", "show", "bench", "ops", "devices", "verify"};

TEST(ToolHelp, BareCallListsTheCommands) {
  const ToolRun run = run_tool("");
  EXPECT_EQ(run.exit_code, 0);
  for (const char* command : kCommands) expect_contains(run.out, command);
  EXPECT_EQ(run.out, run_tool("--help").out);
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

TEST(ToolHelp, Version) {
  const ToolRun run = run_tool("--version");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out, "tensorgrad ");
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
        WrongCall{"trian", 2, "there is no command 'trian': the commands are train, show, "},
        WrongCall{"train", 2, "train: which task?\n  hint: tg train addition\n"},
        WrongCall{"train sine", 2,
                  "there is no task 'sine': the tasks are addition, sin\n  hint: sin?\n"},
        WrongCall{"train sin --steps 0", 2, "--steps: Value 0 not in range 1 to "},
        WrongCall{"train sin --lr -1", 2, "--lr: "},
        WrongCall{"train sin --seed x", 2,
                  "Could not convert: --seed = x\n  hint: tg train --help\n"},
        WrongCall{"train sin --speed 9", 2, "The following argument"},
        WrongCall{"train sin --device abacus", 1,
                  "device: 'abacus' is unknown\n  hint: 'auto', 'cpu', 'webgpu', 'webgpu:1'"},
        WrongCall{"show", 2, "show: which model?"},
        WrongCall{"show gpt_smal", 2,
                  "there is no model 'gpt_smal': the models are mlp_sin, addition, "},
        WrongCall{
            "show addition --stage plam", 2,
            "there is no stage 'plam': the stages are trace, differentiate, update, simplify, "
            "fuse, plan, lower, wgsl\n  hint: plan?\n"},
        WrongCall{"show gemm_512 --stage update", 1,
                  "show: a forward program has no stage 'update'\n"},
        WrongCall{"bench --models mlp_sin,mlp_cos", 2, "there is no model 'mlp_cos': "},
        WrongCall{"bench --models mlp_sin,mamba_small", 1, "mamba_small: not yet"},
        WrongCall{"bench --seconds 0", 2, "--seconds: "}));

}  // namespace
}  // namespace tensorgrad
