// tg plot: reading a run's folder, thinning out long logs, and a page that has the data and works.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kStart =
    R"({"event":"start","step":0,"parameters":1234,"device":"cpu","vocab":97,"unigram_loss":3.5})";
constexpr const char* kConfig =
    R"({"file":"tale.txt","model":{"kind":"gpt","context":16},"training":{"batch":4,"lr":0.003},"tokenizer":"chars"})";

ordered_json step_line(int step, double loss) {
  return {{"event", "step"},
          {"step", step},
          {"loss", std::isfinite(loss) ? ordered_json(loss) : ordered_json()},
          {"lr", 0.001 * step},
          {"grad_norm", 0.5},
          {"tokens_per_second", 1000},
          {"seconds", 0.5 * step}};
}

ordered_json sample_line(int step, const std::string& text) {
  return {{"event", "sample"}, {"step", step}, {"prompt", "Once"}, {"text", text}};
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The runs in the data of the page.
ordered_json runs_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"runs\">";
  const std::size_t begin = page.find(open) + open.size();
  return ordered_json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

class ToolPlot : public testing::Test {
 protected:
  ToolPlot() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ToolPlot() override { fs::remove_all(folder_); }

  // A run's folder with this log and a config (none: no file).
  std::string run(const std::string& name, const std::string& log,
                  const std::string& config = kConfig) const {
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "log.jsonl", std::ios::binary) << log;
    if (!config.empty()) std::ofstream(folder_ / name / "config.json", std::ios::binary) << config;
    return (folder_ / name).string();
  }

  // The only run of a page.
  ordered_json plotted(const std::string& folder, const std::string& err = "") const {
    const ToolRun done = run_tool("plot " + folder);
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_EQ(done.err, err);
    expect_contains(done.out, "page written to " + folder + "/plot.html\n");
    const ordered_json runs = runs_of(read_file(folder + "/plot.html"));
    EXPECT_EQ(runs.size(), 1u);
    return runs[0];
  }

  const fs::path folder_ = testing::TempDir() + "tg_plot_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

std::string lines(const std::vector<ordered_json>& list) {
  std::string text;
  for (const ordered_json& line : list) text += line.dump() + "\n";
  return text;
}

std::string small_log() {
  return std::string(kStart) + "\n" +
         lines({step_line(1, 4.25),
                step_line(2, 3.5),
                {{"event", "validation"},
                 {"step", 2},
                 {"loss", 3.25},
                 {"perplexity", 25.75},
                 {"bits_per_byte", 4.5}},
                sample_line(2, "Once upon"),
                step_line(3, 3.0),
                {{"event", "final"}, {"step", 3}, {"loss", 3.125}, {"tokens", 50'000}},
                {{"event", "done"},
                 {"step", 3},
                 {"loss", 3.0},
                 {"validation", 3.25},
                 {"params_sha256", "ab"}}});
}

TEST_F(ToolPlot, ThePageHoldsTheLog) {
  const ordered_json run = plotted(this->run("tale", small_log()));
  EXPECT_EQ(keys(run),
            "name config start done final resumed steps seconds not_finite tokens_per_step curves "
            "samples all_samples warnings");
  EXPECT_EQ(run["name"], "tale");
  EXPECT_EQ(run["config"], ordered_json::parse(kConfig));
  EXPECT_EQ(run["start"], ordered_json::parse(kStart));
  EXPECT_EQ(run["done"]["params_sha256"], "ab");
  EXPECT_EQ(run["steps"], 3);
  EXPECT_EQ(run["seconds"], 1.5);
  EXPECT_EQ(run["tokens_per_step"], 64);
  EXPECT_EQ(keys(run["curves"]),
            "loss lr grad_norm tokens_per_second validation_loss perplexity bits_per_byte");
  EXPECT_EQ(
      run["curves"]["loss"],
      ordered_json::parse(R"({"step":[1,2,3],"seconds":[0.5,1.0,1.5],"value":[4.25,3.5,3.0]})"));
  EXPECT_EQ(run["curves"]["lr"]["value"], ordered_json({0.001, 0.002, 0.003}));
  EXPECT_EQ(run["curves"]["perplexity"],
            ordered_json::parse(R"({"step":[2],"seconds":[1.0],"value":[25.75]})"));
  EXPECT_EQ(run["samples"],
            ordered_json::parse(R"([{"step":2,"prompt":"Once","text":"Once upon"}])"));
}

TEST_F(ToolPlot, LinesForPrograms) {
  const std::string folder = run("tale", small_log());
  const ToolRun done = run_tool("plot --json " + folder);
  EXPECT_EQ(done.err, "page written to " + folder + "/plot.html\n");
  const auto found = json_lines(done);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], ordered_json({{"run", "tale"},
                                    {"folder", folder},
                                    {"steps", 3},
                                    {"finished", true},
                                    {"seconds", 1.5},
                                    {"loss", 3.0},
                                    {"validation_loss", 3.25},
                                    {"final_validation_loss", 3.125},
                                    {"best_validation_loss", 3.25},
                                    {"best_step", 2},
                                    {"not_finite", 0},
                                    {"samples", 1},
                                    {"warnings", ordered_json::array()}}));
  expect_starts_with(run_tool("plot " + folder).out,
                     "tale: 3 steps in 2 s, loss 3.0000, best validation loss 3.2500 at step 2\n");
}

TEST_F(ToolPlot, SeveralRunsGoToTheCurrentFolder) {
  const std::string a = run("a/tale", small_log()), b = run("b/tale", small_log()),
                    c = run("c", small_log());
  const ToolRun done =
      run_tool("plot " + a + "/ " + b + " " + c, "cd '" + folder_.string() + "' &&");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.out.ends_with("page written to plot.html\n"));
  const ordered_json runs = runs_of(read_file(folder_ / "plot.html"));
  ASSERT_EQ(runs.size(), 3u);
  // Equal names are distinguished.
  EXPECT_EQ(runs[0]["name"], a + "/");
  EXPECT_EQ(runs[1]["name"], b);
  EXPECT_EQ(runs[2]["name"], "c");

  const std::string own = (folder_ / "own.html").string();
  EXPECT_EQ(run_tool("plot " + c + " --out " + own).exit_code, 0);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_FALSE(fs::exists(c + "/plot.html"));
  EXPECT_EQ(run_tool("plot " + c + " --out /nowhere/x.html").err,
            "tg: /nowhere/x.html: cannot write: No such file or directory\n");
}

TEST_F(ToolPlot, LongLogsKeepWhatIsLowestAndHighest) {
  std::string log = std::string(kStart) + "\n";
  constexpr int kSteps = 20'000;
  for (int i = 1; i <= kSteps; ++i) {
    const double loss = i == 2'345 ? 99.5 : i == 14'321 ? 0.25 : i % 2 ? 2.0 : 3.0;
    log += step_line(i, i == 17'001 ? NAN : loss).dump() + "\n";
    if (i % 20 == 0) log += sample_line(i, "x").dump() + "\n";
  }
  const ordered_json run = plotted(this->run("long", log));
  const ordered_json& curve = run["curves"]["loss"];
  ASSERT_EQ(curve["step"].size(), curve["value"].size());
  ASSERT_EQ(curve["step"].size(), curve["mean"].size());
  EXPECT_LE(curve["step"].size(), 2010u);
  EXPECT_GE(curve["step"].size(), 1900u);
  EXPECT_EQ(curve["step"].front(), 1);
  EXPECT_EQ(curve["step"].back(), kSteps);
  const auto value_at = [&](int step) -> ordered_json {
    for (std::size_t i = 0; i < curve["step"].size(); ++i)
      if (curve["step"][i] == step) return curve["value"][i];
    return "none";
  };
  EXPECT_EQ(value_at(2'345), 99.5);
  EXPECT_EQ(value_at(14'321), 0.25);
  EXPECT_TRUE(value_at(17'001).is_null());
  EXPECT_EQ(run["not_finite"], 1);
  int last = 0;
  for (const ordered_json& step : curve["step"]) {
    EXPECT_GT(step.get<int>(), last);
    last = step;
  }
  EXPECT_EQ(curve["mean"].back(), 2.5);  // of a stretch of twos and threes
  EXPECT_EQ(run["samples"].size(), 200u);
  EXPECT_EQ(run["all_samples"], 1000);
  EXPECT_EQ(run["samples"].back()["step"], kSteps);
  EXPECT_LT(fs::file_size(folder_ / "long/plot.html"), 500'000u);
}

TEST_F(ToolPlot, LossesThatAreNotFiniteAreGaps) {
  const ordered_json run =
      plotted(this->run("bad", std::string(kStart) + "\n" +
                                   lines({step_line(1, 4), step_line(2, NAN), step_line(3, 2)})));
  EXPECT_EQ(run["curves"]["loss"]["value"], ordered_json::parse("[4.0,null,2.0]"));
  EXPECT_EQ(run["not_finite"], 1);
  expect_contains(run_tool("plot " + (folder_ / "bad").string()).out,
                  ", loss 2.0000, 1 loss not finite\n");
}

TEST_F(ToolPlot, ATornLastLineIsIgnored) {
  const std::string log = small_log();
  const ordered_json run = plotted(this->run("torn", log.substr(0, log.size() - 20)));
  EXPECT_EQ(run["steps"], 3);
  EXPECT_TRUE(run["done"].is_null());
  // A complete line without its newline.
  EXPECT_EQ(plotted(this->run("whole", log.substr(0, log.size() - 1)))["done"]["step"], 3);
}

TEST_F(ToolPlot, OtherBrokenLinesAreSkippedAndCounted) {
  const std::string log =
      std::string(kStart) + "\n" + step_line(1, 4).dump() + "\n\n{\"event\":\"st" +
      step_line(2, 3).dump() + "\n[1]\n{\"step\":3}\n{\"event\":\"step\",\"step\":\"x\"}\n" +
      "{\"event\":\"of later times\",\"step\":3}\n" + step_line(3, 2).dump() + "\n";
  const std::string folder = this->run("broken", log);
  const std::string warning =
      folder + "/log.jsonl: 4 unreadable lines were skipped, the first is line 4";
  const ordered_json run = plotted(folder, "tg: " + warning + "\n");
  EXPECT_EQ(run["curves"]["loss"]["step"], ordered_json({1, 3}));
  EXPECT_EQ(run["warnings"], ordered_json({warning}));
}

TEST_F(ToolPlot, StepsMadeAgainReplaceThoseBefore) {
  auto later = step_line(3, 2.75);
  later["seconds"] = 0.25;  // its clock began anew
  const ordered_json run =
      plotted(this->run("resumed", std::string(kStart) + "\n" +
                                       lines({step_line(1, 4),
                                              step_line(2, 3.5),
                                              sample_line(2, "two"),
                                              step_line(3, 3.25),
                                              sample_line(3, "three"),
                                              step_line(4, 3),
                                              {{"event", "resume"}, {"step", 2}},
                                              later})));
  EXPECT_EQ(
      run["curves"]["loss"],
      ordered_json::parse(R"({"step":[1,2,3],"seconds":[0.5,1.0,1.25],"value":[4.0,3.5,2.75]})"));
  EXPECT_EQ(run["resumed"], ordered_json({2}));
  ASSERT_EQ(run["samples"].size(), 1u);
  EXPECT_EQ(run["samples"][0]["text"], "two");
}

TEST_F(ToolPlot, WhatIsNoRun) {
  const ToolRun none = run_tool("plot " + folder_.string());
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "tg: " + folder_.string() + ": not a run: it has no readable log.jsonl\n");
  EXPECT_FALSE(fs::exists(folder_ / "plot.html"));

  const std::string empty = run("empty", "", "");
  EXPECT_EQ(plotted(empty, "tg: " + empty + "/log.jsonl: no steps yet\ntg: " + empty +
                               "/config.json: cannot read: No such file or directory\n")["curves"],
            ordered_json::object());
  const std::string odd = run("odd", small_log(), "[1, 2]");
  EXPECT_EQ(plotted(odd, "tg: " + odd + "/config.json: no JSON object\n")["tokens_per_step"],
            nullptr);
  // Settings of other types than expected.
  EXPECT_EQ(plotted(run("other", small_log(),
                        R"({"model":3,"training":{"batch":"x"}})"))["tokens_per_step"],
            nullptr);
}

// A FIFO without a writer would block, a device would fill the memory.
TEST_F(ToolPlot, OnlyRegularFiles) {
  const std::string folder = run("odd", small_log());
  const auto plot = [&] { return run_tool("plot " + folder, "timeout 60"); };
  for (const std::string name : {"config.json", "log.jsonl"}) {
    const std::string file = folder + "/" + name;
    fs::remove(file);
    ASSERT_EQ(run_command("mkfifo '" + file + "'").exit_code, 0);
    const ToolRun fifo = plot();
    EXPECT_EQ(fifo.exit_code, name == "config.json" ? 0 : 1);  // it does without a config
    EXPECT_EQ(fifo.err, "tg: " + file + ": cannot read: a FIFO (named pipe), not a regular file\n");
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    const ToolRun zero = plot();
    EXPECT_EQ(zero.exit_code, name == "config.json" ? 0 : 1);
    EXPECT_EQ(zero.err, "tg: " + file + ": cannot read: a character device, not a regular file\n");
    fs::remove(file);
    std::ofstream(file) << kConfig;
  }
}

TEST_F(ToolPlot, ThePageIsARegularFile) {
  const std::string folder = run("good", small_log()), fifo = (folder_ / "page.html").string();
  ASSERT_EQ(run_command("mkfifo '" + fifo + "'").exit_code, 0);
  const std::string refused =
      "tg: " + fifo + ": cannot write: a FIFO (named pipe), not a regular file\n";
  EXPECT_EQ(run_tool("plot " + folder + " --out " + fifo, "timeout 60").err, refused);
  const std::string bench = "bench --models mlp_sin --device cpu --profile --page ";
  EXPECT_EQ(run_tool(bench + fifo, "timeout 60").err, refused);
}

// For any log or config there is a page, and no text of an exception.
TEST_F(ToolPlot, DamagedFilesAreReadAsFarAsTheyGo) {
  const std::string logs[] = {R"({"event":"done","step":3,"stopped":"yes","loss":{}})",
                              R"({"event":"start","step":1e300})",
                              R"({"event":"final","step":3,"loss":"low","tokens":[]})",
                              R"({"event":"final","step":3})",
                              R"({"event":"sample","step":1,"prompt":3,"text":null})",
                              R"({"event":"step","step":-5,"seconds":"x"})",
                              R"({"event":"resume","step":9223372036854775807})",
                              "[[[[[[[[[[[[[[[[[[[[[[[[",
                              "\xff\xfe{}"};
  const std::string configs[] = {
      "", "3", "{\"model\":", R"({"model":[],"training":{"accumulate":"x"}})",
      R"({"training":{"batch":1,"accumulate":"x"},"model":{"context":4}})"};
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& log : logs) pairs.emplace_back(log, configs[4]);
  for (const std::string& config : configs) pairs.emplace_back(logs[0], config);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [log, config] = pairs[i];
    const std::string folder =
        run("odd" + std::to_string(i), small_log() + log + "\n" + small_log(), config);
    for (const std::string json : {"", " --json"}) {
      const ToolRun done = run_tool("plot " + folder + json);
      EXPECT_EQ(done.exit_code, 0) << log << "\n" << config << "\n" << done.err;
      EXPECT_EQ(done.err.find("exception"), std::string::npos) << done.err;
    }
  }
}

// Recursive printing would need a stack of their depth.
TEST_F(ToolPlot, JsonNestedDeeplyIsRefused) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  const std::string log = this->run(
      "log", R"({"event":"start","step":0,"odd":)" + deep + "}\n" + step_line(1, 4).dump() + "\n");
  EXPECT_EQ(plotted(log, "tg: " + log +
                             "/log.jsonl: 1 unreadable line was skipped, the first is "
                             "line 1\n")["steps"],
            1);
  const std::string config = this->run("config", small_log(), R"({"model":)" + deep + "}");
  EXPECT_EQ(plotted(config, "tg: " + config + "/config.json: nested too deeply\n")["config"],
            ordered_json::object());
}

TEST_F(ToolPlot, TextsCannotBreakThePage) {
  const std::string text =
      "</script><script>alert(1)</script><!--<script> & \"quotes\" \u2028 \n end";
  const std::string folder = this->run(
      "texts</b>", std::string(kStart) + "\n" + lines({step_line(1, 4), sample_line(1, text)}) +
                       R"({"event":"sample","step":1,"prompt":"","text":"half )"
                       "\xc3"
                       R"("})"
                       "\n");
  const ToolRun done = run_tool("plot '" + folder + "'");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.err, "");
  const std::string page = read_file(folder + "/plot.html");
  const ordered_json run = runs_of(page)[0];
  EXPECT_EQ(run["samples"][0]["text"], text);
  EXPECT_EQ(run["samples"][1]["text"], "half \ufffd");
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script", at)) != page.npos; ++at) ++ends;
  EXPECT_EQ(ends, 2u);
  EXPECT_EQ(page.find("<!--"), page.npos);

  const std::string odd = this->run("odd\xff", small_log());
  EXPECT_EQ(json_lines(run_tool("plot --json '" + odd + "'"))[0]["run"], "odd\ufffd");
  EXPECT_EQ(runs_of(read_file(odd + "/plot.html"))[0]["name"], "odd\ufffd");
}

TEST_F(ToolPlot, ThePageNeedsNothingElse) {
  run_tool("plot " + run("tale", small_log()));
  const std::string page = read_file(folder_ / "tale/plot.html");
  expect_starts_with(page, "<!DOCTYPE html>");
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* outside : {"http", "src=", "href=", "@import", "url(", "import("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

// Runs the script in Node with a stand-in for the browser: it draws, and none of its controls
// fails.
class ToolPlotScript : public ToolPlot {
 protected:
  void SetUp() override {
    if (run_command("node --version").exit_code != 0)
      GTEST_SKIP() << "there is no node to run the page's script";
  }
  ordered_json drawn(const std::string& runs) const {
    const std::string page = (folder_ / "page.html").string();
    EXPECT_EQ(run_tool("plot " + runs + " --out " + page).exit_code, 0);
    const ToolRun run =
        run_command("node '" TENSORGRAD_SOURCE_DIR "/tests/tool/run_page.js' '" + page + "'");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto lines = json_lines(run);
    return lines.empty() ? ordered_json() : lines[0];
  }
};

TEST_F(ToolPlotScript, DrawsRuns) {
  std::string log = std::string(kStart) + "\n";
  for (int i = 1; i <= 50; ++i) log += step_line(i, i == 20 ? NAN : 4.0 / i).dump() + "\n";
  log.insert(log.find(step_line(31, 4.0 / 31).dump()), R"({"event":"resume","step":30})"
                                                       "\n");
  log += sample_line(40, "Once before").dump() + "\n" + sample_line(50, "Once <i>more</i>").dump() +
         "\n";
  const std::string a = run("a", log),
                    b = run("b", small_log(), R"({"model":{"kind":"mamba","context":16}})");
  const ordered_json page = drawn(a + " " + b);
  EXPECT_EQ(page["title"], "2 runs");
  EXPECT_EQ(page["charts"],
            ordered_json({"Training and validation loss", "Validation perplexity",
                          "Validation, bits per byte", "Learning rate", "Gradient norm", "Speed"}));
  // Smoothed curves have two lines each; b has a validation loss.
  EXPECT_EQ(page["paths"], ordered_json({5, 1, 1, 2, 4, 4}));
  EXPECT_EQ(page["circles"], ordered_json({1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(page["resumes"], 1);
  EXPECT_EQ(page["axes"], ordered_json::parse(R"([["training step", "loss per token"],
      ["training step", "perplexity"], ["training step", "bits per byte"], ["training step", "learning rate"],
      ["training step", "norm"], ["training step", "tokens per second"]])"));
  EXPECT_EQ(page["dashed"], 2);
  EXPECT_EQ(page["marks"], 1);
  expect_contains(page["samples"],
                  "<span class=\"prompt\">Once</span> &lt;i&gt;more&lt;/i&gt;</pre>");
  const std::string samples = page["samples"];  // by step, the last one open
  expect_starts_with(samples, "<details open><summary>step 50</summary>");
  EXPECT_LT(samples.find("<summary>step 50<"), samples.find("<summary>step 40<"));
  EXPECT_LT(samples.find("<summary>step 40<"), samples.find("<summary>step 2<"));
  expect_contains(
      page["settings"],
      "<th scope=\"row\">final validation loss</th><td>–</td><td>3.125, over 50,000 tokens</td>");
  expect_contains(page["settings"], "<th scope=\"row\">resumed from</th><td>30</td>");
  EXPECT_EQ(page["differs"], 5);  // file, kind, batch, lr, tokenizer
  expect_contains(page["settings"],
                  "<th scope=\"row\">≠ model.kind</th><td>gpt</td><td>mamba</td>");
  EXPECT_EQ(page["only"].get<std::string>().find("model.context"), std::string::npos);
  expect_contains(page["tip"], "step 50<br>");
  expect_contains(page["tip"], "a, training <b>0.08000</b>, smooth ");
  expect_contains(page["tip"], "b, training <b>3.000</b>, smooth ");
  EXPECT_EQ(page["unclean"], ordered_json::array());
  EXPECT_EQ(page["left"], 2);  // the first run was switched off
}

TEST_F(ToolPlotScript, DrawsWhatIsHardlyThere) {
  const ordered_json empty = drawn(run("empty", ""));
  EXPECT_EQ(empty["charts"], ordered_json::array());
  const ordered_json one = drawn(run("one", lines({step_line(1, 4)})));
  EXPECT_EQ(one["charts"].size(), 4u);
  EXPECT_EQ(one["unclean"], ordered_json::array());
  const ordered_json bad = drawn(run("bad", lines({step_line(1, NAN), step_line(2, NAN)})));
  EXPECT_EQ(bad["marks"], 2);
  EXPECT_EQ(bad["unclean"], ordered_json::array());
}

}  // namespace
}  // namespace tensorgrad
