// A run that is killed at random moments, many times, and gone on with: no checkpoint is ever lost
// or unreadable, and the end has the bits of a run that nobody killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tensorgrad/checkpoint.h"
#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

struct Plan {
  std::string device;
  int kills;
  std::int64_t steps;  // of a run
};

// Sanitizers make everything slower.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kKills = 30;
#else
constexpr int kKills = 200;
#endif

class Killing {
 public:
  explicit Killing(const Plan& plan, const std::string& name)
      : plan_(plan), folder_(fs::path(testing::TempDir()) / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 200; ++i) text << "line " << i * i << " of a text\n";
  }
  ~Killing() { fs::remove_all(folder_); }

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    const std::string whole = sha256_of_finished(start(folder_ / "whole"));
    ASSERT_FALSE(whole.empty());
    // A process lives half as long as a whole run takes, at most.
    longest_ = std::chrono::duration_cast<std::chrono::microseconds>(
                   std::chrono::steady_clock::now() - begin) /
               2;
    int kills = 0, runs = 0, saved = 0;
    while (kills < plan_.kills) {
      const fs::path out = folder_ / ("run" + std::to_string(runs++));
      std::int64_t newest = 0;
      for (bool finished = false; !finished;) {
        const pid_t process = start(out);
        if (kills < plan_.kills && !ends_by_itself(process)) {
          ++kills;
          newest = check_checkpoints(out, newest);
          saved += newest > 0;
        } else {
          finished = true;
          EXPECT_EQ(kills < plan_.kills ? sha256_in(out_) : sha256_of_finished(process), whole)
              << "after " << kills << " kills";
          check_leftovers(out);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
    EXPECT_GT(saved, plan_.kills / 2)
        << "most processes were killed before there was anything to lose";
    RecordProperty("runs", runs);
  }

 private:
  static void RecordProperty(const char* name, int value) {
    testing::Test::RecordProperty(name, value);
  }

  // The tool, its standard output in a file.
  pid_t start(const fs::path& out) {
    out_ = folder_ / "stdout";
    const std::string text = (folder_ / "text.txt").string(), run = out.string(),
                      steps = std::to_string(plan_.steps);
    const pid_t process = fork();
    if (process != 0) return process;
    const int file = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666),
              null = open("/dev/null", O_WRONLY);
    dup2(file, 1);
    dup2(null, 2);
    execl(TENSORGRAD_TG, "tg", "train", "text", text.c_str(), "--out", run.c_str(), "--resume",
          "--steps", steps.c_str(), "--device", plan_.device.c_str(), "--save-every", "1", "--dim",
          "16", "--layers", "1", "--heads", "2", "--context", "16", "--batch", "2", "--tokenizer",
          "bytes", "--sample", "0", "--threads", "1", "--json", static_cast<char*>(nullptr));
    _exit(127);
  }

  // Kills the process at a random moment; whether it was done by then.
  bool ends_by_itself(pid_t process) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(random_() % static_cast<unsigned>(longest_.count())));
    kill(process, SIGKILL);
    int status = 0;
    waitpid(process, &status, 0);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0)
        << "it failed by itself: exit code " << WEXITSTATUS(status);
    return WIFEXITED(status);
  }

  // All that are there can be read, and the newest is not older than it was.
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

  // Nothing unfinished is left, and every line of the log can be read.
  static void check_leftovers(const fs::path& out) {
    for (const auto& entry : fs::recursive_directory_iterator(out))
      EXPECT_EQ(entry.path().filename().string().find("unfinished"), std::string::npos)
          << entry.path();
    std::ifstream log(out / "log.jsonl");
    for (std::string line; std::getline(log, line);)
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }

  static std::string sha256_in(const fs::path& out) {
    std::ifstream in(out);
    std::string last;
    for (std::string line; std::getline(in, line);) last = line;
    const auto json = nlohmann::json::parse(last, nullptr, false);
    return json.is_object() ? json.value("params_sha256", "") : "";
  }

  std::string sha256_of_finished(pid_t process) const {
    int status = 0;
    waitpid(process, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return sha256_in(out_);
  }

  Plan plan_;
  fs::path folder_, out_;
  std::chrono::microseconds longest_{};
  std::mt19937 random_{7};
};

TEST(Killed, GoesOnBitForBit) { Killing({"cpu", kKills, 300}, "tg killed").run(); }

class GpuKilled : public GpuTest {};

TEST_F(GpuKilled, GoesOnBitForBit) { Killing({"webgpu", 10, 60}, "tg killed gpu").run(); }

}  // namespace
}  // namespace tensorgrad
