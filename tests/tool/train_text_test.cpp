// tg train text and tg generate, as people use them: a run is a folder, goes on as if it had never
// stopped, and bad input is told apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const std::string kSmall =
    " --dim 16 --layers 2 --heads 2 --context 16 --batch 2 --device cpu --threads 1 ";
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
  // For the shell: until the file is there, for 20 s at most.
  static std::string wait_for(const std::string& path) {
    return "for i in $(seq 2000); do if [ -e " + path + " ]; then break; fi; sleep 0.01; done";
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
  // The log has the lines that a program is shown.
  const auto lines = log("run");
  EXPECT_EQ(lines, json_lines(run));
  EXPECT_EQ(lines.front()["event"], "start");
  EXPECT_EQ(keys(lines[1]), "event step loss lr grad_norm tokens_per_second seconds");
  std::map<std::string, int> count;
  for (const auto& line : lines) ++count[line["event"]];
  EXPECT_EQ(count["step"], 20);
  EXPECT_EQ(count["validation"], 10);
  EXPECT_EQ(count["sample"], 10);
  expect_contains(run.err, "tokens to learn from");
}

TEST_F(ToolText, GoesOnAsIfItHadNeverStopped) {
  for (const std::string model : {"gpt", "mamba", "mamba2", "hybrid"}) {
    const std::string arguments =
        file() + kBytes + "--steps 240 --save-every 75 --json --model " + model + " --out ";
    const ordered_json whole = last(train(arguments + in("whole " + model)));
    // Ended from outside after its first checkpoint, long before its end, and gone on with nothing but the folder.
    train(arguments + in(model) + " >/dev/null 2>&1 & " +
          wait_for(in(model) + "/checkpoints/step-00000075.safetensors") + "; kill -9 $!");
    const ToolRun again =
        train("--resume --json --device cpu --threads 2 --sample 0 --out " + in(model));
    const ordered_json done = last(again);
    EXPECT_EQ(done["params_sha256"], whole["params_sha256"]) << model;
    EXPECT_EQ(done["loss"], whole["loss"]);
    // The log reads as that of the run that never stopped.
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
  const std::string out = " --out " + in("run");
  const ToolRun run = train(file() + kBytes + "--steps 100000 --json" + out, "timeout --foreground -s INT 2");
  EXPECT_EQ(run.exit_code, 124) << run.err;  // timeout's own
  const auto lines = json_lines(run);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back()["event"], "done");
  EXPECT_EQ(lines.back()["stopped"], true);
  const int made = lines.back()["step"];
  expect_contains(run.err, "to go on: tg train text --resume --out");
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
  expect_contains(again.err, "all 5 steps are made already\n  hint: --steps for more");
}

TEST_F(ToolText, ABadCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::string out = " --out " + in("run");
  const ordered_json whole =
      last(train(file() + kBytes + "--steps 20 --save-every 5 --json" + out));
  const fs::path newest = folder / "run" / "checkpoints" / "step-00000020.safetensors";
  fs::resize_file(newest, fs::file_size(newest) - 100);
  const ToolRun again = train("--resume --json --device cpu --sample 0" + out);
  EXPECT_EQ(last(again)["params_sha256"], whole["params_sha256"]);
  expect_contains(again.err, "tg: passed over: " + newest.string() + ": ");
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
           ": not a text: byte 6 is zero\n  hint: --tokenizer bytes takes any file\n"},
      {in("short") + kBytes + "--out " + in("a"), 1,
       "tg: " + (folder / "short").string() +
           ": 8 tokens to learn from are too few for a context of 16\n  hint: --context 7, or a "
           "longer text\n"},
      {file() + kBytes + "--model gtp", 2,
       "'gtp' is none of gpt, mamba, mamba2, hybrid\n  hint: gpt?\n"},
      {file() + kSmall + "--tokenizer words --out " + in("b"), 1,
       "there is no tokenizer 'words': bpe, bytes and chars are, or a folder with vocab.json and "
       "merges.txt, or a tokenizer.json\n"},
      {file() + kBytes + "--lr 1e30 --steps 5 --out " + in("d"), 1, "hint: a lower --lr\n"},
      {file() + kBytes + "--lr 0", 2, "'0' is not a number above 0\n"},
      {file() + kBytes + "--validation 2", 2, "'2' is not a number from 0 to 0.9\n"},
      {file() + " --dim 30 --heads 4 --out " + in("c"), 1, "30"},
      {file() + kBytes + "--out " + in("full"), 2,
       ": not an empty folder\n  hint: another --out\n"},
      {file() + kBytes + "--out " + in("empty"), 1, ": cannot make the folder: Not a directory\n"},
      {file() + kBytes + "--out " + in("empty/below"), 1,
       "cannot make the folder: Not a directory\n"},
      {"--resume", 2,
       "tg: train text: --resume goes on with the run of a folder\n  hint: --out RUN\n"},
      {"--resume --out " + in("nothing"), 1,
       "tg: " + (folder / "nothing").string() + ": there is no run here to go on with\n"},
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

TEST_F(ToolText, ARunIsNotOverwritten) {
  const std::string out = " --out " + in("run");
  const ordered_json first = last(train(file() + kBytes + "--steps 5 --json" + out));
  expect_contains(train(file() + kBytes + "--steps 5" + out).err,
                  ": there is a run here already\n  hint: --resume goes on with it, another --out "
                  "begins a new one\n");
  const ToolRun other = train("--resume --dim 32" + out);
  EXPECT_EQ(other.exit_code, 2);
  expect_contains(
      other.err,
      "tg: --dim: the run in " + (folder / "run").string() +
          " has another value\n  hint: leave it out, or begin a new run with another --out\n");
  std::ofstream(folder / "run" / "config.json") << "{";
  expect_contains(train("--resume" + out).err, "config.json: not the config of a run: ");
  EXPECT_TRUE(fs::exists(folder / "run" / "checkpoints" / "step-00000005.safetensors"));
}

// A disk that is full while a checkpoint is written: the message says so, and the checkpoints
// before it stay good. What was trained on is gone on with, whatever has become of the text;
// without its tokens it has to be the same.
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
  expect_contains(changed.err,
                  "tg: " + text.string() +
                      ": not the text that was trained on, or cut or encoded in another way\n");
  EXPECT_EQ(read(folder / "third" / "config.json"), config);
  // Under another name it is the same text.
  fs::remove(text);
  std::ofstream(folder / "moved.txt") << before;
  EXPECT_EQ(last(train(in("moved.txt") + " " + more + in("third")))["params_sha256"],
            whole["params_sha256"]);
  // Tokens that were altered are made again.
  last(train(in("moved.txt") + " " + kBytes + "--steps 5 --json --out " + in("fourth")));
  std::fstream tokens(folder / "fourth" / "tokens.bin",
                      std::ios::in | std::ios::out | std::ios::binary);
  tokens.seekp(100), tokens.write("xyz", 3), tokens.close();
  EXPECT_EQ(last(train(more + in("fourth")))["params_sha256"], whole["params_sha256"]);
}

// A start that fails leaves nothing behind that the next one would stumble over.
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

// Going on needs nothing but the folder.
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
  // No file may become larger than 64 KiB: a checkpoint is.
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
  const std::string out = " --out " + in("run");
  const ToolRun run = run_command(
      "('" TENSORGRAD_TG "' train text " + file() + kBytes + "--steps 100000" + out +
      " >/dev/null 2>&1 & first=$!; " + wait_for(in("run") + "/log.jsonl") +
      "; '" TENSORGRAD_TG "' train text --resume" + out + "; code=$?; kill -9 $first; exit $code)");
  EXPECT_EQ(run.exit_code, 1);
  expect_contains(run.err,
                  "tg: " + (folder / "run").string() + ": another process is training there\n");
}

TEST_F(ToolText, EveryTokenizer) {
  for (const std::string tokenizer : {"bpe --vocab 280", "chars", "bytes"}) {
    const std::string name = tokenizer.substr(0, 3);
    const ordered_json done =
        last(train(file() + kSmall + "--sample 0 --steps 4 --json --tokenizer " + tokenizer +
                   " --out " + in(name)));
    EXPECT_EQ(done["step"], 4);
    const ToolRun said =
        run_tool("generate " + in(name) + " --prompt 'the cat' --tokens 5 --device cpu --json");
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_EQ(json_lines(said).at(0)["prompt"], "the cat");
  }
  // The byte pairs of one run for another: as it keeps them, and as files for other programs.
  const ordered_json kept =
      last(train(file() + kSmall + "--sample 0 --steps 4 --json --tokenizer " +
                 in("bpe/tokenizer.json") + " --out " + in("kept")));
  EXPECT_EQ(run_tool("convert " + in("bpe") + " " + in("weights") + " --to torch --tokenizer " +
                     in("files"))
                .exit_code,
            0);
  const ordered_json files =
      last(train(file() + kSmall + "--sample 0 --steps 4 --json --tokenizer " + in("files") +
                 " --out " + in("from files")));
  const ordered_json own = log("bpe").back();
  EXPECT_EQ(kept["params_sha256"], own["params_sha256"]);
  EXPECT_EQ(files["params_sha256"], own["params_sha256"]);
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
