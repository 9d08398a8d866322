// tg train text and tg generate as users run them: a run is a folder, resumes as if it had never
// stopped, and bad input has clear errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tensorgrad/dataset.h"
#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"
#include "tests/support/tool_process.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const std::string kSmall = " --dim 16 --layers 2 --context 16 --batch 2 --device cpu --threads 1 ";
const std::string kBytes = kSmall + "--tokenizer bytes --sample 0 ";

class ToolText : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::ofstream out(text);
    for (int i = 0; i < 100; ++i) out << "the cat sat on mat " << i << "\n";
  }
  void TearDown() override { fs::remove_all(folder); }

  ToolRun train(const std::string& arguments, const std::string& wrapper = "") const {
    return run_tool("train text " + arguments, wrapper);
  }
  std::string in(const std::string& name) const { return "'" + (folder / name).string() + "'"; }
  // The arguments of a call that trains on the text, for ToolProcess.
  std::vector<std::string> words(const std::string& options, const std::string& run) const {
    std::vector<std::string> all{"train", "text", text.string()};
    std::istringstream parts(options);
    all.insert(all.end(), std::istream_iterator<std::string>(parts), {});
    all.insert(all.end(), {"--out", (folder / run).string()});
    return all;
  }
  std::string file() const { return "'" + text.string() + "'"; }
  static ordered_json last(const ToolRun& run) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto lines = json_lines(run);
    return lines.empty() ? ordered_json() : lines.back();
  }
  static std::string read(const fs::path& path) {
    std::ifstream in_file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in_file), {}};
  }
  std::vector<ordered_json> log(const std::string& run) const {
    std::vector<ordered_json> lines;
    std::ifstream log_file(folder / run / "log.jsonl");
    for (std::string line; std::getline(log_file, line);)
      lines.push_back(ordered_json::parse(line));
    return lines;
  }

  const fs::path folder = fs::path(testing::TempDir()) / "tg text";
  const fs::path text = folder / "my text.txt";
};

TEST_F(ToolText, ARunIsAFolder) {
  const ToolRun run =
      train(file() + kSmall + "--tokenizer bytes --steps 20 --sample 5 --json --out " + in("run"));
  const ordered_json done = last(run);
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["step"], 20);
  EXPECT_EQ(done["stopped"], false);
  for (const char* name : {"config.json", "tokenizer.json", "log.jsonl", "tokens.bin", "plot.html",
                           "checkpoints/step-00000020.safetensors"})
    EXPECT_TRUE(fs::exists(folder / "run" / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "run" / "checkpoints"),
                          fs::directory_iterator()),
            3);
  // The log has the same lines as --json.
  const auto lines = log("run");
  EXPECT_EQ(lines, json_lines(run));
  EXPECT_EQ(lines.front()["event"], "start");
  EXPECT_EQ(keys(lines[1]), "event step loss lr grad_norm tokens_per_second seconds");
  std::map<std::string, int> count;
  for (const auto& line : lines) ++count[line["event"]];
  EXPECT_EQ(count["step"], 20);
  EXPECT_EQ(count["validation"], 10);
  EXPECT_EQ(count["sample"], 10);
  expect_contains(run.err, "tokens for training");
}

TEST_F(ToolText, GoesOnAsIfItHadNeverStopped) {
  for (const std::string model : {"gpt", "mamba", "mamba2", "hybrid"}) {
    const std::string options = kBytes + "--steps 240 --save-every 75 --json --model " + model;
    const ordered_json whole = last(train(file() + options + " --out " + in("whole " + model)));
    // Killed after its first checkpoint, long before its end, and resumed with only the folder.
    ToolProcess killed(words(options, model));
    ASSERT_TRUE(killed.wait_for_lines(R"("step":76,)", 1)) << killed.errors();
    killed.send(SIGKILL);
    EXPECT_EQ(killed.wait(), 128 + SIGKILL);
    const ToolRun again =
        train("--resume --json --device cpu --threads 2 --sample 0 --out " + in(model));
    const ordered_json done = last(again);
    EXPECT_EQ(done["params_sha256"], whole["params_sha256"]) << model;
    EXPECT_EQ(done["loss"], whole["loss"]);
    // The log is that of an uninterrupted run.
    const auto steps = [](const std::vector<ordered_json>& lines) {
      std::vector<std::pair<int, double>> losses;
      for (const auto& line : lines)
        if (line["event"] == "step") losses.emplace_back(line["step"], line["loss"]);
      return losses;
    };
    EXPECT_EQ(steps(log(model)), steps(log("whole " + model)));
    EXPECT_EQ(steps(log(model)).size(), 240u);
  }
}

TEST_F(ToolText, CtrlCSavesAndStops) {
  ToolProcess run(words(kBytes + "--steps 100000 --json", "run"));
  ASSERT_TRUE(run.wait_for_lines(R"("step",)", 1)) << run.errors();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.errors();
  const auto done = ordered_json::parse(run.lines().back());
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["stopped"], true);
  const int made = done["step"];
  expect_contains(run.errors(), "to continue: tg train text --resume --out");
  const std::string out = " --out " + in("run");
  EXPECT_TRUE(
      fs::exists(folder / "run" / "checkpoints" / fmt::format("step-{:08}.safetensors", made)));
  const ToolRun more =
      train("--resume --json --sample 0 --device cpu --steps " + std::to_string(made + 3) + out);
  EXPECT_EQ(last(more)["step"], made + 3);
  EXPECT_EQ(json_lines(more).front()["event"], "resume");
}

TEST_F(ToolText, AFinishedRunSaysSo) {
  const std::string out = " --out " + in("run");
  const ordered_json first = last(train(file() + kBytes + "--steps 5 --json" + out));
  const ToolRun again = train("--resume --json --device cpu --sample 0" + out);
  EXPECT_EQ(last(again)["params_sha256"], first["params_sha256"]);
  const std::string run = (folder / "run").string();
  expect_contains(again.err,
                  "\n" + run +
                      ": the run is finished at step 5\n  hint: --steps 10 trains 5 more; " +
                      "tg generate " + run + " writes text with it\n");
  // Fewer steps than were made change nothing.
  const std::string config = read(folder / "run" / "config.json");
  const ToolRun fewer = train("--resume --steps 3 --device cpu" + out);
  EXPECT_EQ(fewer.exit_code, 0) << fewer.err;
  expect_contains(
      fewer.out,
      "\n" + run +
          ": the run is finished at step 5, --steps 3 asks for fewer\n  hint: --steps 10 ");
  EXPECT_EQ(read(folder / "run" / "config.json"), config);
}

TEST_F(ToolText, ARunThatIsNotFinishedSaysWhereItIs) {
  ToolProcess killed(words(kBytes + "--steps 400 --save-every 5 --json", "run"));
  ASSERT_TRUE(killed.wait_for_lines(R"("step":6,)", 1)) << killed.errors();
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  const ToolRun fewer = train("--resume --steps 2 --device cpu --out " + in("run"));
  EXPECT_EQ(fewer.exit_code, 0) << fewer.err;
  expect_contains(fewer.out,
                  " of 400, so --steps 2 leaves nothing to do\n"
                  "  hint: without --steps it continues to step 400\n");
}

// A closed terminal ends a run like ctrl-C: saved.
TEST_F(ToolText, ASighupSavesAndStops) {
  ToolProcess run(words(kBytes + "--steps 100000 --json", "run"));
  ASSERT_TRUE(run.wait_for_lines(R"("step",)", 1)) << run.errors();
  run.send(SIGHUP);
  EXPECT_EQ(run.wait(), 128 + SIGHUP) << run.errors();
  const ordered_json done = log("run").back();
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["stopped"], true);
  EXPECT_TRUE(fs::exists(folder / "run" / "checkpoints" /
                         fmt::format("step-{:08}.safetensors", done["step"].get<int>())));
}

// Steps of earlier processes do not count.
TEST_F(ToolText, AResumedRunCountsItsOwnSteps) {
  const std::string out = " --out " + in("run");
  last(train(file() + kBytes + "--steps 5 --json" + out));
  const ToolRun more = train("--resume --steps 8" + out);
  EXPECT_EQ(more.exit_code, 0) << more.err;
  expect_contains(more.out, "\n3 steps in ");
  expect_contains(more.out, " (8 in all): loss ");
}

// With a learning rate of almost 0 the curve stays constant, over the same tokens each time. The
// final figure, over more tokens, is not a point of it.
TEST_F(ToolText, TheCurveEndsComparably) {
  std::ofstream(text) << [] {
    std::string all;
    for (int i = 0; all.size() < 400'000; ++i)
      all += "the cat sat on mat " + std::to_string(i * i) + "\n";
    return all;
  }();
  const std::string out = " --out " + in("run");
  last(train(file() +
             " --dim 8 --layers 1 --heads 1 --context 64 --batch 16 --device cpu --tokenizer bytes "
             "--sample 0 --lr 1e-30 --steps 4 --validate-every 2 --json" +
             out));
  std::vector<ordered_json> curve, final;
  for (const ordered_json& line : log("run")) {
    if (line["event"] == "validation") curve.push_back(line);
    if (line["event"] == "final") final.push_back(line);
  }
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0]["step"], 2);
  EXPECT_EQ(curve[1]["step"], 4);
  EXPECT_EQ(curve[0]["loss"], curve[1]["loss"]);
  ASSERT_EQ(final.size(), 1u);
  EXPECT_EQ(keys(final[0]), "event step loss perplexity bits_per_byte tokens");
  EXPECT_EQ(final[0]["tokens"], log("run").front()["validation_tokens"].get<int>() - 1);
  EXPECT_GT(final[0]["tokens"], 20'000);
  EXPECT_NE(final[0]["loss"], curve[1]["loss"]);
  EXPECT_EQ(log("run").back()["validation"], final[0]["loss"]);
  // After a resume there is only the new final figure.
  last(train("--resume --steps 6 --json" + out));
  int finals = 0;
  for (const ordered_json& line : log("run")) finals += line["event"] == "final";
  EXPECT_EQ(finals, 1);
}

// A line shows when its validation loss was measured.
TEST_F(ToolText, TheValidationLossHasItsStep) {
  const ToolRun run = train(file() + kBytes + "--steps 15 --validate-every 4 --out " + in("run"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  std::map<int, int> shown;
  for (std::string line; std::getline(lines, line);) {
    int step = 0, of = 0;
    if (std::sscanf(line.c_str(), "step %d/", &step) != 1) continue;
    const std::size_t at = line.find(" at step ");
    if (at != line.npos && std::sscanf(line.c_str() + at, " at step %d", &of) == 1)
      shown[step] = of;
    else
      shown[step] = 0;
  }
  EXPECT_EQ(shown[3], 0);
  EXPECT_EQ(shown[4], 4);
  EXPECT_EQ(shown[7], 4);
  EXPECT_EQ(shown[8], 8);
  EXPECT_EQ(shown[15], 15);
}

TEST_F(ToolText, ABadCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::string out = " --out " + in("run");
  const ordered_json whole =
      last(train(file() + kBytes + "--steps 20 --save-every 5 --json" + out));
  const fs::path newest = folder / "run" / "checkpoints" / "step-00000020.safetensors";
  fs::resize_file(newest, fs::file_size(newest) - 100);
  const ToolRun again = train("--resume --json --device cpu --sample 0" + out);
  EXPECT_EQ(last(again)["params_sha256"], whole["params_sha256"]);
  expect_contains(again.err, "tg: skipped: " + newest.string() + ": ");
  expect_contains(again.err, "step-00000015.safetensors, step 15");
}

TEST_F(ToolText, BadInputGetsAClearMessage) {
  std::ofstream(folder / "empty");
  std::ofstream(folder / "binary", std::ios::binary)
      << "GIF89a" << std::string(3, '\0') << std::string(1000, 'x');
  std::ofstream(folder / "short") << "too short";
  fs::create_directories(folder / "full");
  std::ofstream(folder / "full" / "file") << "x";
  const struct {
    std::string arguments;
    int exit_code;
    std::string message;
  } cases[] = {
      {"", 2, "tg: train text: which file?\n  hint: tg train text book.txt\n"},
      {in("none") + kBytes, 1,
       "tg: " + (folder / "none").string() + ": cannot read: No such file or directory\n"},
      {in("") + kBytes, 1, "cannot read: Is a directory\n"},
      {in("empty") + kBytes, 1, "tg: " + (folder / "empty").string() + ": the file is empty\n"},
      {in("binary") + kSmall + "--tokenizer chars", 1,
       "tg: " + (folder / "binary").string() +
           ": not a text: byte 6 is zero\n  hint: --tokenizer bytes accepts any file\n"},
      {in("short") + kBytes + "--out " + in("a"), 1,
       "tg: " + (folder / "short").string() +
           ": 8 tokens for training are too few for a context of 16\n  hint: --context 7, or a "
           "longer text\n"},
      {file() + kBytes + "--model gtp", 2,
       "'gtp' is not one of gpt, mamba, mamba2, hybrid\n  hint: gpt?\n"},
      {file() + kSmall + "--tokenizer words --out " + in("b"), 1,
       "there is no tokenizer 'words': use bpe, bytes, chars, a folder with vocab.json and "
       "merges.txt, or a tokenizer.json\n"},
      {file() + kBytes + "--lr 1e30 --steps 5 --out " + in("d"), 1, "hint: a lower --lr\n"},
      {file() + kBytes + "--lr 0", 2, "'0' is not a number above 0\n"},
      {file() + kBytes + "--validation 2", 2, "'2' is not a number from 0 to 0.9\n"},
      {file() + " --dim 30 --heads 4 --out " + in("c"), 1, "30"},
      {file() + " --model hybrid --dim 6 --heads 2 --out " + in("e"), 1,
       "tg: SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads "
       "2 (size 3)\n"},
      {file() + kBytes + "--state 8", 2,
       "tg: --state: for --model mamba or mamba2 or hybrid, not for gpt\n"},
      {file() + kBytes + "--model mamba --positions learned", 2,
       "tg: --positions: for --model gpt, not for mamba\n"},
      {file() + kBytes + "--model mamba --heads 2", 2,
       "tg: --heads: for --model gpt or hybrid, not for mamba\n"},
      {file() + kBytes + "--model mamba2 --groups 2", 2,
       "tg: --groups: for --model gpt or hybrid, not for mamba2\n"},
      {file() + kBytes + "--model mamba --activation relu", 2,
       "tg: --activation: for --model gpt or hybrid, not for mamba\n"},
      {file() + kBytes + "--norm batch", 2, "'batch' is not one of layer, rms\n"},
      {file() + kBytes + "--model hybrid --schedule 'mamba attends' --out " + in("f"), 1,
       "unknown layer 'attends' in \"mamba attends\"\n  hint: mamba, mamba2 or attention\n"},
      {file() + kBytes + "--out " + in("full"), 2,
       ": not an empty folder\n  hint: another --out\n"},
      {file() + kBytes + "--out " + in("empty"), 1,
       ": cannot create the folder: Not a directory\n"},
      {file() + kBytes + "--out " + in("empty/below"), 1,
       "cannot create the folder: Not a directory\n"},
      {"--resume", 2, "tg: train text: --resume needs the folder of the run\n  hint: --out RUN\n"},
      {"--resume --out " + in("nothing"), 1,
       "tg: " + (folder / "nothing").string() + ": there is no run to resume\n"},
      {file() + " --stepz 3", 2,
       "tg: train text: there is no option '--stepz'\n  hint: did you mean --steps?\n"},
  };
  for (const auto& bad : cases) {
    const ToolRun run = train(bad.arguments);
    EXPECT_EQ(run.exit_code, bad.exit_code) << bad.arguments << "\n" << run.err;
    expect_contains(run.err, bad.message);
    if (bad.message.find("--lr") == std::string::npos) {
      EXPECT_EQ(run.out, "") << bad.arguments;
    }
  }
  EXPECT_FALSE(fs::exists("runs"));
}

// Nine bytes: the context that the error message suggests, and almost no validation part.
TEST_F(ToolText, AVerySmallTextIsEnough) {
  std::ofstream(folder / "short") << "too short";
  const ToolRun run =
      train(in("short") +
            " --tokenizer bytes --context 7 --dim 16 --layers 1 --steps 2 --sample 0 "
            "--device cpu --json --out " +
            in("run"));
  EXPECT_EQ(last(run)["step"], 2);
  // Fewer byte pairs than requested are no error.
  EXPECT_EQ(
      last(train(file() + kSmall + "--sample 3 --steps 2 --json --out " + in("pairs")))["step"], 2);
}

TEST_F(ToolText, ARunIsNotOverwritten) {
  const std::string out = " --out " + in("run");
  const ordered_json first = last(train(file() + kBytes + "--steps 5 --json" + out));
  expect_contains(train(file() + kBytes + "--steps 5" + out).err,
                  ": there is a run here already\n  hint: --resume continues it, another --out "
                  "starts a new one\n");
  const ToolRun other = train("--resume --dim 32" + out);
  EXPECT_EQ(other.exit_code, 2);
  expect_contains(
      other.err,
      "tg: --dim: the run in " + (folder / "run").string() +
          " has another value\n  hint: leave it out, or start a new run with another --out\n");
  const fs::path config = folder / "run" / "config.json";
  const std::string good = read(config);
  const auto altered = [&](const std::string& from, const std::string& to) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(config, std::ios::binary) << changed;
    return train("--resume" + out).err;
  };
  const std::string not_a_config = "config.json: not the config of a run: ";
  expect_contains(altered(good, "{"), not_a_config + "not JSON: line 1, column 2: ");
  expect_contains(altered("\"vocab\": 1024,", "\"vocab\": 1024, \"vocab\": 512,"),
                  not_a_config + "\"vocab\" occurs twice\n");
  expect_contains(altered("\"steps\": 5", "\"steps\": 1e308"),
                  not_a_config + "'training.steps' must be an integer of at least 1: 1e+308\n");
  expect_contains(altered("\"lr\": 0.004", "\"lr\": 1e308"),
                  not_a_config + "'training.lr' must be a number: 1e+308\n");
  expect_contains(altered("\"lr\"", "\"rl\""), not_a_config + "'training.lr' is missing\n");
  expect_contains(altered("\"keep\": 3", "\"keep\": 3, \"kept\": 3"),
                  not_a_config + "unknown name 'run.kept'\n");
  expect_contains(altered("\"linear\"", "\"square\""),
                  not_a_config + "unknown lr schedule 'square'\n");
  expect_contains(altered(good, good + '\0'), not_a_config + "not JSON: line ");
  EXPECT_TRUE(fs::exists(folder / "run" / "checkpoints" / "step-00000005.safetensors"));
}

// A FIFO without a writer would block, a device would fill the memory.
TEST_F(ToolText, GoesOnWithRegularFilesOnly) {
  const std::string out = " --out " + in("run");
  last(train(file() + kBytes + "--steps 2 --json" + out));
  for (const std::string name : {"log.jsonl", "config.json"}) {
    const fs::path path = folder / "run" / name;
    const std::string before = read(path);
    fs::remove(path);
    ASSERT_EQ(run_command("mkfifo '" + path.string() + "'").exit_code, 0);
    const ToolRun fifo = train("--resume --steps 4" + out, "timeout 60");
    EXPECT_EQ(fifo.exit_code, 1);
    expect_contains(fifo.err, "tg: " + path.string() +
                                  ": cannot read: a FIFO (named pipe), not a regular file\n");
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    const ToolRun zero = train("--resume --steps 4" + out, "timeout 60");
    EXPECT_EQ(zero.exit_code, 1);
    expect_contains(zero.err, "tg: " + path.string() +
                                  ": cannot read: a character device, not a regular file\n");
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << before;
  }
}

// The disk is full while a checkpoint is written: the message says so, and the earlier checkpoints
// stay valid. Resuming works even if the text has changed, because the tokens are cached; without
// them the text must be the same.
TEST_F(ToolText, ARunKeepsItsText) {
  const std::string more = "--resume --steps 9 --json --out ";
  const ordered_json first = last(train(file() + kBytes + "--steps 5 --json --out " + in("run")));
  fs::copy(folder / "run", folder / "twin", fs::copy_options::recursive);
  fs::copy(folder / "run", folder / "third", fs::copy_options::recursive);
  const ordered_json whole = last(train(more + in("twin")));
  const std::string before = read(text);
  std::ofstream(text, std::ios::app) << "one line more\n";
  EXPECT_EQ(last(train(more + in("run")))["params_sha256"], whole["params_sha256"]);
  fs::remove(folder / "third" / "tokens.bin");
  const std::string config = read(folder / "third" / "config.json");
  const ToolRun changed = train(more + in("third"));
  EXPECT_EQ(changed.exit_code, 1);
  expect_contains(
      changed.err,
      "tg: " + text.string() +
          ": not the text of the checkpoint: its content, its split or its tokenizer differs\n");
  EXPECT_EQ(read(folder / "third" / "config.json"), config);
  // The same text under another name.
  fs::remove(text);
  std::ofstream(folder / "moved.txt") << before;
  EXPECT_EQ(last(train(in("moved.txt") + " " + more + in("third")))["params_sha256"],
            whole["params_sha256"]);
  // Changed tokens are encoded again.
  last(train(in("moved.txt") + " " + kBytes + "--steps 5 --json --out " + in("fourth")));
  std::fstream tokens(folder / "fourth" / "tokens.bin",
                      std::ios::in | std::ios::out | std::ios::binary);
  tokens.seekp(100), tokens.write("xyz", 3), tokens.close();
  EXPECT_EQ(last(train(more + in("fourth")))["params_sha256"], whole["params_sha256"]);
}

// A failed start leaves nothing that would disturb the next one.
TEST_F(ToolText, AFailedStartCanBeCorrected) {
  for (const std::string bad : {"--context 100000", "--heads 3", "--tokenizer words"}) {
    const std::string arguments =
        file() + " --dim 16 --layers 1 --batch 2 --sample 0 --steps 2 --device cpu --out " +
        in("run") + " ";
    EXPECT_EQ(train(arguments + bad).exit_code, 1) << bad;
    EXPECT_FALSE(fs::exists(folder / "run")) << bad;
    EXPECT_EQ(train(arguments + "--context 16 --heads 2").exit_code, 0) << bad;
    fs::remove_all(folder / "run");
  }
}

// The folder becomes a loop of links: the error is reported, and cleaning up does not throw
// another.
TEST_F(ToolText, AFolderThatGoesAwayIsAnError) {
  ToolProcess run(words(kBytes + "--steps 100000 --json", "run"));
  ASSERT_TRUE(run.wait_for_lines(R"("step",)", 1)) << run.errors();
  fs::rename(folder / "run", folder / "away");
  fs::create_symlink("run", folder / "run");
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 1) << run.errors();
  expect_contains(run.errors(), ": Too many levels of symbolic links\n");
}

// Resuming needs only the folder.
TEST_F(ToolText, ARunRemembersHowItWasRun) {
  last(train(file() + kBytes +
             "--steps 20 --save-every 2 --keep 7 --validate-every 4 --json --out " + in("run")));
  const ToolRun more = train("--resume --steps 30 --json --out " + in("run"));
  EXPECT_EQ(last(more)["step"], 30);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "run" / "checkpoints"),
                          fs::directory_iterator()),
            7);
  std::map<std::string, int> count;
  for (const auto& line : json_lines(more)) ++count[line["event"]];
  EXPECT_EQ(count["validation"], 3);  // 24, 28, 30
  EXPECT_EQ(count["sample"], 0);
  expect_contains(more.err, "on cpu (");
}

TEST_F(ToolText, OneLongLine) {
  std::ofstream(folder / "title") << "Title\n"
                                  << std::string(20000, 'a') << "bc" << std::string(20000, 'd');
  std::ofstream(folder / "end") << std::string(20000, 'a') << "\nEND";
  for (const std::string name : {"title", "end"}) {
    const ordered_json start =
        json_lines(train(in(name) + kBytes + "--steps 2 --json --out " + in("run " + name))).at(0);
    EXPECT_NEAR(start["validation_tokens"].get<double>() / start["training_tokens"].get<double>(),
                1 / 9.0, 0.01)
        << name;
  }
}

TEST_F(ToolText, WithoutAValidationPart) {
  const ToolRun run = train(file() + kBytes + "--steps 4 --validation 0 --json --out " + in("run"));
  EXPECT_FALSE(last(run).contains("validation"));
  EXPECT_EQ(run.err.find("nan"), std::string::npos) << run.err;
}

TEST_F(ToolText, AFullDiskLosesNothing) {
  const std::string out = " --out " + in("run"), more = "--resume --steps 12 --json";
  last(train(file() + kBytes + "--steps 6 --save-every 3 --json" + out));
  fs::copy(folder / "run", folder / "twin", fs::copy_options::recursive);
  const ordered_json whole = last(train(more + " --out " + in("twin")));
  // No file may exceed 64 KiB, but a checkpoint does.
  const ToolRun full = run_command(
      "bash -c 'trap \"\" XFSZ; ulimit -f 64; exec \"$@\"' - '" TENSORGRAD_TG "' train text " +
      more + out);
  EXPECT_EQ(full.exit_code, 1);
  expect_contains(full.err, ": cannot write: File too large");
  for (const auto& entry : fs::directory_iterator(folder / "run" / "checkpoints"))
    EXPECT_EQ(entry.path().filename().string().substr(0, 5), "step-") << entry.path();
  EXPECT_EQ(last(train(more + out))["params_sha256"], whole["params_sha256"]);
}

TEST_F(ToolText, TwoCannotTrainInOneFolder) {
  ToolProcess first(words(kBytes + "--steps 100000 --json", "run"));
  ASSERT_TRUE(first.wait_for_lines(R"("step",)", 1)) << first.errors();
  const ToolRun run = train("--resume --out " + in("run"));
  EXPECT_EQ(run.exit_code, 1);
  expect_contains(run.err,
                  "tg: " + (folder / "run").string() + ": another process is training there\n");
}

TEST_F(ToolText, EveryTokenizer) {
  for (const std::string tokenizer : {"bpe --vocab 280", "chars", "bytes"}) {
    const std::string name = tokenizer.substr(0, 3);
    const ordered_json done =
        last(train(file() + kSmall + "--model mamba --sample 0 --steps 4 --json --tokenizer " +
                   tokenizer + " --out " + in(name)));
    EXPECT_EQ(done["step"], 4);
    const ToolRun said =
        run_tool("generate " + in(name) + " --prompt 'the cat' --tokens 5 --device cpu --json");
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_EQ(json_lines(said).at(0)["prompt"], "the cat");
  }
  // The byte pairs of one run in another: from its tokenizer.json, and from files for other
  // programs.
  const ordered_json kept =
      last(train(file() + kSmall + "--model mamba --sample 0 --steps 4 --json --tokenizer " +
                 in("bpe/tokenizer.json") + " --out " + in("kept")));
  EXPECT_EQ(run_tool("convert " + in("bpe") + " " + in("weights") + " --to torch --tokenizer " +
                     in("files"))
                .exit_code,
            0);
  const ordered_json files =
      last(train(file() + kSmall + "--model mamba --sample 0 --steps 4 --json --tokenizer " +
                 in("files") + " --out " + in("from files")));
  const ordered_json own = log("bpe").back();
  EXPECT_EQ(kept["params_sha256"], own["params_sha256"]);
  EXPECT_EQ(files["params_sha256"], own["params_sha256"]);
}

// Every setting of a model and of the learning rate is an option, and the run keeps it.
TEST_F(ToolText, KeepsEverySetting) {
  const std::string common = file() + kBytes + "--steps 2 --out ";
  const auto kept = [&](const std::string& name, const std::string& arguments) {
    EXPECT_EQ(train(common + in(name) + " " + arguments).exit_code, 0) << arguments;
    return ordered_json::parse(read(folder / name / "config.json"));
  };
  const ordered_json hybrid =
      kept("hybrid",
           "--model hybrid --schedule 'mamba mamba2 attention' --state 4 --expand 1 --conv 3 "
           "--dt-rank 2 "
           "--discretisation zoh --head-size 4 --state-groups 2 --chunk 8 --norm rms --groups 1 "
           "--activation silu --embedding-std 0.1 --warmup 1 --lr-schedule cosine --last-lr 0.25");
  const ordered_json model = hybrid["model"], training = hybrid["training"];
  EXPECT_EQ(model["schedule"], "mamba mamba2 attention");
  EXPECT_EQ(model["state"], 4);
  EXPECT_EQ(model["expand"], 1);
  EXPECT_EQ(model["conv"], 3);
  EXPECT_EQ(model["dt_rank"], 2);
  EXPECT_EQ(model["discretisation"], "zoh");
  EXPECT_EQ(model["head_size"], 4);
  EXPECT_EQ(model["state_groups"], 2);
  EXPECT_EQ(model["chunk"], 8);
  EXPECT_EQ(model["norm"], "rms");
  EXPECT_EQ(model["groups"], 1);
  EXPECT_EQ(model["activation"], "silu");
  EXPECT_EQ(model["embedding_std"], 0.1);
  EXPECT_EQ(training["warmup"], 1);
  EXPECT_EQ(training["lr_schedule"], "cosine");
  EXPECT_EQ(training["last_lr_share"], 0.25);
  EXPECT_EQ(kept("gpt", "--positions learned")["model"]["positions"], "learned");
  EXPECT_EQ(kept("default", "")["model"]["positions"], "rotary");
  // The newest checkpoint of each can be resumed and generates text.
  for (const char* name : {"hybrid", "gpt"})
    EXPECT_EQ(
        last(train("--resume --json --device cpu --sample 3 --steps 3 --out " + in(name)))["step"],
        3);
  for (const char* other : {"--norm layer", "--lr-schedule linear", "--state 8"})
    EXPECT_EQ(train(std::string("--resume ") + other + " --out " + in("hybrid")).exit_code, 2)
        << other;
}

// An old run without this setting resumes as it began.
TEST_F(ToolText, GoesOnWithARunFromBefore) {
  const std::string run = in("run");
  const std::string as_before =
      kBytes + "--positions learned --lr-schedule cosine --last-lr 0.1 --steps 6 --json ";
  const ordered_json whole = last(train(file() + as_before + "--out " + in("whole")));
  train(file() + as_before + "--save-every 3 --out " + run);
  fs::remove(folder / "run" / "checkpoints" / "step-00000006.safetensors");
  ordered_json config = ordered_json::parse(read(folder / "run" / "config.json"));
  for (const char* name : {"warmup", "lr_schedule", "last_lr_share"})
    config["training"].erase(name);
  for (const char* name : {"chunk", "state_groups", "discretisation", "positions", "rope_base",
                           "norm", "embedding_std"})
    config["model"].erase(name);
  std::ofstream(folder / "run" / "config.json") << config.dump();
  EXPECT_EQ(last(train("--resume --json --device cpu --out " + run))["params_sha256"],
            whole["params_sha256"]);
}

// The size of gzip for the same part of the text after it has seen the rest, computed from file
// sizes.
TEST_F(ToolText, ComparesWithCompressors) {
  if (run_command("gzip --version").exit_code != 0) GTEST_SKIP() << "gzip is not installed";
  const ToolRun run = train(file() + kBytes + "--steps 2 --out " + in("run"));
  const ordered_json done = log("run").back();
  const std::int64_t all = static_cast<std::int64_t>(fs::file_size(text)),
                     rest = training_bytes_of(text, 0.1);
  const std::string cut = "head -c " + std::to_string(rest) + " " + file();
  ASSERT_EQ(run_command("(gzip -9 < " + file() + " > " + in("all.gz") + "; " + cut +
                        " | gzip -9 > " + in("rest.gz") + ")")
                .exit_code,
            0);
  const double bytes = static_cast<double>(fs::file_size(folder / "all.gz")) -
                       static_cast<double>(fs::file_size(folder / "rest.gz"));
  const double bits = 8 * bytes / static_cast<double>(all - rest);
  EXPECT_NEAR(done["gzip_bits_per_byte"].get<double>(), bits, 1e-4);
  expect_contains(run.out, fmt::format(", gzip: {:.2f}", bits));
  if (run_command("xz --version").exit_code == 0) {
    const ToolRun sizes =
        run_command("(xz -6e < " + file() + " | wc -c; " + cut + " | xz -6e | wc -c)");
    std::istringstream read(sizes.out);
    double whole = 0, part = 0;
    read >> whole >> part;
    const double xz = 8 * (whole - part) / static_cast<double>(all - rest);
    EXPECT_NEAR(done["xz_bits_per_byte"].get<double>(), xz, 1e-4);
    expect_contains(run.out, fmt::format(", xz: {:.2f}", xz));
  }
  expect_contains(run.out, "(unigram model: ");
}

// Without `head` both sizes are those of empty input: there is no figure, instead of 0.00.
TEST_F(ToolText, ACompressorThatFailsIsLeftOut) {
  if (run_command("gzip --version").exit_code != 0) GTEST_SKIP() << "gzip is not installed";
  fs::create_directories(folder / "bin");
  std::ofstream(folder / "bin" / "head") << "#!/bin/sh\nexit 1\n";
  fs::permissions(folder / "bin" / "head", fs::perms::owner_all);
  const ToolRun run =
      train(file() + kBytes + "--steps 2 --out " + in("run"), "PATH=" + in("bin") + ":\"$PATH\"");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expect_contains(run.out, "(unigram model: ");
  EXPECT_EQ(run.out.find("gzip"), std::string::npos) << run.out;
  EXPECT_FALSE(log("run").back().contains("gzip_bits_per_byte"));
  // Any file name is accepted.
  fs::copy_file(text, folder / "it's $HOME");
  EXPECT_TRUE(last(train("\"" + folder.string() + "/it's \\$HOME\"" + kBytes +
                         "--steps 2 --json --out " + in("quoted")))
                  .contains("gzip_bits_per_byte"));
}

TEST_F(ToolText, Generate) {
  const std::string run = in("run");
  last(train(file() + kBytes + "--steps 60 --lr 0.01 --json --out " + run));
  const auto said = [&](const std::string& arguments) {
    const ToolRun out = run_tool("generate " + run + " --device cpu " + arguments);
    EXPECT_EQ(out.exit_code, 0) << out.err;
    return out.out;
  };
  const std::string once = said("--prompt 'the cat' --tokens 20 --seed 4");
  expect_starts_with(once, "the cat");
  EXPECT_EQ(once.size(), 7u + 20 + 1);
  EXPECT_EQ(said("--prompt 'the cat' --tokens 20 --seed 4"), once);
  EXPECT_NE(said("--prompt 'the cat' --tokens 20 --seed 5"), once);
  const std::string likeliest = said("--prompt 'the cat' --tokens 40 --temperature 0");
  EXPECT_EQ(said("--prompt 'the cat' --tokens 40 --top-k 1"), likeliest);
  EXPECT_EQ(said("--prompt 'the cat' --tokens 40 --temperature 0 --stop '" +
                 likeliest.substr(10, 3) + "'"),
            likeliest.substr(0, likeliest.find(likeliest.substr(10, 3), 7)) + "\n");
  const ToolRun json = run_tool("generate " + run + " --tokens 3 --device cpu --json");
  EXPECT_EQ(keys(json_lines(json).at(0)), "event prompt text tokens seconds");
  expect_contains(json.err, "step-00000060.safetensors, step 60");
  EXPECT_EQ(json_lines(json).at(0)["tokens"], 3);
  const ToolRun talk =
      run_command("(printf 'the cat\\n/forget\\nsat on\\n\\nnot heard\\n' > " + in("said") +
                  "; '" TENSORGRAD_TG "' generate " + run +
                  " --interactive --tokens 30 --device cpu --json < " + in("said") + ")");
  const auto answers = json_lines(talk);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["prompt"], "the cat\n");
  EXPECT_EQ(answers[1]["prompt"], "sat on\n");
  EXPECT_EQ(answers[0]["text"].get<std::string>().find('\n'), std::string::npos);
}

TEST_F(ToolText, GenerateErrors) {
  const auto error = [&](const std::string& arguments, int exit_code) {
    const ToolRun run = run_tool("generate " + arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    return run.err;
  };
  expect_contains(error("", 2), "checkpoint is required");
  expect_contains(error(in("none"), 1), "cannot read: No such file or directory");
  expect_contains(error(file(), 1), (text.string() + ": "));
  expect_contains(error("'" + folder.string() + "'", 1), ": there is no checkpoint here");
  expect_contains(error(in("x") + " --top-p 0", 2), "'0' is not a number from");
}

}  // namespace
}  // namespace tensorgrad
