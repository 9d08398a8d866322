// A run that is killed many times and resumed: no checkpoint is ever lost or unreadable, and the
// end has the bits of an uninterrupted run. Each process runs for a random number of steps. The
// test counts them by the lines that the tool prints, so the speed of the machine does not matter.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tensorgrad/checkpoint.h"
#include "tests/support/gpu_test.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tool_process.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

struct Plan {
  std::string device, model;
  int kills;
  int steps;         // of a run
  int longest_life;  // of a process, in steps
};

constexpr int kKills = kSanitized ? 30 : 200;

class Killing {
 public:
  Killing(const Plan& plan, const std::string& name)
      : plan_(plan), folder_(fs::path(testing::TempDir()) / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 200; ++i) text << "line " << i * i << " of a text\n";
  }
  ~Killing() { fs::remove_all(folder_); }

  void run() {
    const std::string whole = finish(folder_ / "whole");
    ASSERT_FALSE(whole.empty());
    int kills = 0, runs = 0, saved = 0;
    while (kills < plan_.kills) {
      const fs::path out = folder_ / ("run" + std::to_string(runs++));
      std::int64_t newest = 0;
      // Near its end a process may finish before it is killed; the last one does.
      while (kills < plan_.kills && kill_one(out)) {
        ++kills;
        newest = check_checkpoints(out, newest);
        saved += newest > 0;
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(finish(out), whole) << "after " << kills << " kills";
      check_leftovers(out);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(saved, plan_.kills / 2)
        << "most processes were killed before there was anything to lose";
    testing::Test::RecordProperty("runs", runs);
  }

 private:
  std::vector<std::string> arguments(const fs::path& out) const {
    std::vector<std::string> words{"train", "text", (folder_ / "text.txt").string()};
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"--out", out.string()},
                                                          {"--device", plan_.device},
                                                          {"--steps", std::to_string(plan_.steps)},
                                                          {"--model", plan_.model},
                                                          {"--save-every", "1"},
                                                          {"--dim", "16"},
                                                          {"--layers", "1"},
                                                          {"--context", "16"},
                                                          {"--batch", "2"},
                                                          {"--tokenizer", "bytes"},
                                                          {"--sample", "0"},
                                                          {"--threads", "1"}})
      words.insert(words.end(), {name, value});
    words.insert(words.end(), {"--resume", "--json"});
    return words;
  }

  // Starts or resumes the run and kills the process; false if it finished before.
  bool kill_one(const fs::path& out) {
    ToolProcess process(arguments(out));
    const int life = static_cast<int>(random_() % static_cast<unsigned>(plan_.longest_life + 1));
    // A random moment in the next step.
    if (process.wait_for_lines(R"("step",)", life))
      process.wait_at_most(static_cast<int>(random_() % 3000));
    process.send(SIGKILL);
    const int code = process.wait();
    EXPECT_TRUE(code == 0 || code == 128 + SIGKILL)
        << "it failed by itself: exit code " << code << "\n"
        << process.errors();
    return code != 0;
  }

  // Resumes the run if it is not finished, lets it end, and returns the hash of its parameters.
  std::string finish(const fs::path& out) const {
    ToolProcess process(arguments(out));
    EXPECT_EQ(process.wait(), 0) << process.errors();
    const std::string last = process.lines().empty() ? "" : process.lines().back();
    const auto json = nlohmann::json::parse(last, nullptr, false);
    return json.is_object() ? json.value("params_sha256", "") : "";
  }

  // All checkpoints are readable, and the newest is not older than before.
  static std::int64_t check_checkpoints(const fs::path& out, std::int64_t newest) {
    std::int64_t step = 0;
    for (const fs::path& path : CheckpointFolder(out / "checkpoints").files()) {
      try {
        step = load_checkpoint(path).step;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
    EXPECT_GE(step, newest) << "a checkpoint was lost";
    return step;
  }

  // No unfinished file is left, and every line of the log is readable.
  static void check_leftovers(const fs::path& out) {
    for (const auto& entry : fs::recursive_directory_iterator(out))
      EXPECT_EQ(entry.path().filename().string().find("unfinished"), std::string::npos)
          << entry.path();
    std::ifstream log(out / "log.jsonl");
    for (std::string line; std::getline(log, line);)
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }

  Plan plan_;
  fs::path folder_;
  std::mt19937 random_{7};
};

TEST(Killed, GoesOnBitForBit) { Killing({"cpu", "gpt", kKills, 300, 12}, "tg killed").run(); }

class GpuKilled : public GpuTest {};

TEST_F(GpuKilled, GoesOnBitForBit) {
  Killing({"webgpu", "mamba", 6, 12, 4}, "tg killed gpu").run();
}

}  // namespace
}  // namespace tensorgrad
