// JSON of an unexpected form, wherever the tool reads it: an error about that file, never one about
// the JSON library.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tensorgrad/checkpoint.h"
#include "tensorgrad/safetensors.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class ToolWrongJson : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "run"); }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string in(const std::string& name) const { return " '" + (folder_ / name).string() + "'"; }

  // Works, or reports the problem with a file in the folder.
  void expect_no_surprise(const std::string& command) const {
    const ToolRun run = run_tool(command);
    EXPECT_GE(run.exit_code, 0) << command;
    EXPECT_LE(run.exit_code, 2) << command << "\n" << run.err;
    for (const char* raw : {"internal error", "exception"})
      EXPECT_EQ(run.err.find(raw), std::string::npos) << command << "\n" << run.err;
    if (run.exit_code != 0) expect_contains(run.err, folder_.string());
  }

  const fs::path folder_ = [] {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    return fs::path(testing::TempDir()) / ("tg_wrong_json_" + name);
  }();
};

TEST_P(ToolWrongJson, InACheckpoint) {
  const std::string value = GetParam();
  save_checkpoint(folder_ / "a", {.tokenizer = value, .config = value, .more = {{"x", value}}});
  write_safetensors(folder_ / "b", {.metadata = {{"config", value}, {"step", value}}});
  for (const char* name : {"a", "b"}) {
    expect_no_surprise("inspect" + in(name));
    expect_no_surprise("inspect --json" + in(name));
    expect_no_surprise("convert --to torch" + in(name) + in("out"));
  }
}

TEST_P(ToolWrongJson, InARun) {
  const std::string value = GetParam();
  std::string log;
  for (const char* event : {"start", "step", "validation", "sample", "final", "done", "resume"}) {
    log += std::string(R"({"event":")") + event + R"(","step":)" + value + "}\n";
    log += std::string(R"({"event":")") + event + R"(","step":1)";
    for (const char* key : {"loss", "lr", "seconds", "prompt", "text", "stopped", "tokens"})
      log += std::string(",\"") + key + "\":" + value;
    log += "}\n";
  }
  write("run/log.jsonl", log);
  for (const std::string& config :
       {value, R"({"model":)" + value + R"(,"training":)" + value + "}",
        R"({"file":"x","model":{"kind":)" + value + R"(},"training":{"batch":)" + value + "}}"}) {
    write("run/config.json", config);
    expect_no_surprise("plot" + in("run"));
    expect_no_surprise("plot --json" + in("run"));
    expect_no_surprise("train text --resume --out" + in("run"));
  }
}

TEST_P(ToolWrongJson, InReferenceValues) {
  const std::string value = GetParam();
  write_safetensors(folder_ / "run/ops.safetensors", {});
  for (const std::string& ops :
       {value, R"({"cases":)" + value + "}", R"({"cases":[)" + value + "]}"}) {
    write("run/ops.json", ops);
    expect_no_surprise("verify --device cpu" + in("run"));
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachType, ToolWrongJson,
                         testing::Values("null", "true", "-1", "1e300", "18446744073709551615",
                                         R"("x")", "[]", "[1]", "{}", R"({"kind":3})"));

}  // namespace
}  // namespace tensorgrad
