// bench/compare: how it combines the times that both sides print, with scripts in their place.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class Compare : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command("python3 --version").exit_code != 0) GTEST_SKIP() << "no python3";
    fs::create_directories(folder_);
    script("tg", R"(echo "$@" >> FOLDER/calls
echo '{"model":"m","threads":2,"simd":"AVX2","batch":4,"ms_per_step":2.0,"best_ms":1.5}')");
    script("peer", R"(echo "$@" >> FOLDER/calls
while read mode; do
  echo $mode >> FOLDER/calls
  if [ $mode = compile ]; then ms=5.0; else ms=8.0; fi
  echo '{"peer":"torch 2","model":"m","mode":"'$mode'","batch":4,"ms_per_step":'$ms',"best_ms":4.5}'
done)");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void script(const std::string& name, std::string text) {
    for (std::size_t at; (at = text.find("FOLDER")) != std::string::npos;)
      text.replace(at, 6, folder_.string());
    const fs::path file = folder_ / name;
    std::ofstream(file) << "#!/usr/bin/env bash\n" << text << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }
  ToolRun compare(const std::string& arguments) {
    const std::string at = folder_.string();
    return run_command("'" TENSORGRAD_SOURCE_DIR "/bench/compare' --tg " + at + "/tg --peer " + at +
                       "/peer --models m " + arguments);
  }
  std::string calls() {
    std::ifstream file(folder_ / "calls");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_ = testing::TempDir() + "tensorgrad_compare";
};

TEST_F(Compare, TakesTurnsAndCountsTheFasterMode) {
  const ToolRun run = compare("--threads 2 --batch 4 --seconds 0.5 --rounds 2 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto lines = json_lines(run);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["mode"], "compile");
  EXPECT_EQ(lines[0]["ours_ms"], 2.0);
  EXPECT_EQ(lines[0]["torch_ms"], 5.0);
  EXPECT_EQ(lines[0]["ours_best_ms"], 1.5);
  EXPECT_EQ(lines[0]["torch_best_ms"], 4.5);
  EXPECT_EQ(lines[0]["ratio"], 2.5);
  EXPECT_EQ(lines[0]["rounds"], 2);
  EXPECT_EQ(lines[0]["load"], false);
  const std::string both = "--seconds 0.5 --threads 2 --batch 4\n";
  const std::string own = "bench --json --models m --device cpu " + both;
  EXPECT_EQ(calls(), "--turns --models m --device cpu " + both + "eager\ncompile\n" + own +
                         "compile\n" + own);
}

TEST_F(Compare, PrintsATable) {
  const ToolRun run = compare(
      "--rounds 1 --load --processors $(python3 -c 'import os; "
      "print(min(os.sched_getaffinity(0)))')");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  expect_starts_with(
      run.out,
      "torch 2, 2 threads, AVX2, one processor kept busy\nmodel         batch     ours ms");
  expect_contains(run.out,
                  "\nm                 4       2.000       1.500       5.000       4.500  compile  "
                  "   2.50  2.50 to 2.50\n");
}

TEST_F(Compare, ShowsTheMedianOfTheRounds) {
  script("tg", R"(n=$(cat FOLDER/n 2>/dev/null || echo 0); echo $((n + 1)) > FOLDER/n
echo '{"model":"m","threads":2,"batch":4,"ms_per_step":'$((1 << n))'}')");
  const auto lines = json_lines(compare("--rounds 3 --modes eager --json"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["ratio"], 4.0);  // of 8, 4 and 2
  EXPECT_EQ(lines[0]["lowest"], 2.0);
  EXPECT_EQ(lines[0]["highest"], 8.0);
  EXPECT_EQ(lines[0]["ours_best_ms"], 1.0);
}

TEST_F(Compare, GoesOnWithTheModeThatWorks) {
  script("peer", R"(while read mode; do
  if [ $mode = compile ]; then echo '{"model":"m","mode":"compile","error":"no compiler"}'
  else echo '{"model":"m","mode":"eager","batch":4,"ms_per_step":6.0,"best_ms":6.0}'; fi
done)");
  const ToolRun run = compare("--rounds 2 --json");
  EXPECT_EQ(run.err, "compare: PyTorch, m, compile: no compiler\n");
  EXPECT_EQ(json_lines(run)[0]["ratio"], 3.0);
}

TEST_F(Compare, SaysWhatFailed) {
  const std::string at = folder_.string();
  script("peer", "echo 'PyTorch is not installed' >&2; exit 1");
  ToolRun run = compare("--rounds 1 --modes eager");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "PyTorch is not installed\ncompare: this ended with exit code 1: " + at +
                         "/peer --turns --models m --device cpu --seconds 0.5\n");
  script("peer", "echo Segmentation fault");
  run = compare("--rounds 1 --modes eager");
  EXPECT_EQ(run.exit_code, 1);
  expect_starts_with(run.err, "compare: this printed something that is no JSON (");
  script("peer", R"(read mode; echo '{"model":"m","mode":"'$mode'","error":"no"}')");
  EXPECT_EQ(compare("--modes eager").err,
            "compare: PyTorch, m, eager: no\ncompare: no time came from: " + at +
                "/peer --turns --models m --device cpu --seconds 0.5\n");
}

TEST_F(Compare, SaysWhatIsMissing) {
  const std::string at = folder_.string();
  fs::remove(folder_ / "tg");
  EXPECT_EQ(compare("").err, "compare: cannot run " + at + "/tg: No such file or directory\n");
  fs::remove(folder_ / "peer");
  EXPECT_EQ(compare("").err, "compare: cannot run " + at + "/peer: No such file or directory\n");
  EXPECT_EQ(compare("--processors 4095").err, "compare: --processors 4095: Invalid argument\n");
  expect_contains(compare("--processors one").err,
                  "numbers of processors were expected, as in 0,1: one\n");
}

TEST_F(Compare, TimesProductsInOneMode) {
  ASSERT_EQ(compare("--models gemm_8 --rounds 1").exit_code, 0);
  expect_contains(calls(), "\neager\nbench");
}

// It cannot run without PyTorch, but it must say so, and be valid Python.
TEST_F(Compare, ThePeerSaysThatPyTorchIsMissing) {
  const std::string peer = "'" TENSORGRAD_SOURCE_DIR "/bench/torch_peer.py'";
  EXPECT_EQ(
      run_command("python3 -c \"import ast; ast.parse(open(" + peer + ").read())\"").exit_code, 0);
  if (run_command("python3 -c 'import torch'").exit_code == 0) GTEST_SKIP() << "PyTorch is here";
  const ToolRun run = run_command("python3 " + peer);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "torch_peer: PyTorch is not installed\n  hint: pip install torch\n");
}

}  // namespace
}  // namespace tensorgrad
