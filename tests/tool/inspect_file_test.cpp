// tg inspect: metadata, statistics of tensors, and errors for bad files.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tensorgrad/safetensors.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class ToolInspect : public testing::Test {
 protected:
  ToolInspect() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ToolInspect() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const TensorFile& file) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    write_safetensors(path, file);
    return path.string();
  }
  std::string write_bytes(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  const fs::path folder_ = testing::TempDir() + "tg_inspect_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

Array floats(const Shape& shape, std::vector<float> values) { return {shape, std::move(values)}; }

ToolRun inspect(const std::string& arguments) {
  const ToolRun run = run_tool("inspect " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  return run;
}

TensorFile checkpoint() {
  TensorFile file;
  file.tensors["layers.0.W"] = floats({2, 2}, {1.0f, -2.0f, 0.0f, 5.0f});
  file.tensors["layers.0.b"] = floats({2}, {0.25f, 0.25f});
  file.tensors["ids"] = Array({3}, std::vector<std::int32_t>{-1, 0, 7});
  file.tensors["optimizer/m/layers.0.W"] = floats({2, 2}, {0.0f, 0.0f, 0.0f, 0.0f});
  file.metadata = {{"step", "1500"},
                   {"seed", "7"},
                   {"position", "12000"},
                   {"config", R"({"kind":"mamba","vocab":97,"dim":64})"},
                   {"tokenizer", R"({"kind":"chars","characters":"abc"})"},
                   {"note", "second try"}};
  return file;
}

TEST_F(ToolInspect, StatisticsAreThoseByHand) {
  const auto lines = json_lines(inspect(write("a.safetensors", checkpoint()) + " --json"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(keys(lines[1]), "tensor dtype shape count bytes min max mean std norm zeros nan inf");
  EXPECT_EQ(lines[1]["tensor"], "ids");
  EXPECT_EQ(lines[1]["dtype"], "I32");
  EXPECT_EQ(lines[1]["min"], -1);
  EXPECT_EQ(lines[1]["max"], 7);
  EXPECT_EQ(lines[1]["mean"], 2);
  EXPECT_DOUBLE_EQ(lines[1]["std"], std::sqrt(38.0 / 3));  // (9 + 4 + 25) / 3
  EXPECT_DOUBLE_EQ(lines[1]["norm"], std::sqrt(50.0));
  EXPECT_EQ(lines[1]["zeros"], 1);

  EXPECT_EQ(lines[2]["tensor"], "layers.0.W");
  EXPECT_EQ(lines[2]["dtype"], "F32");
  EXPECT_EQ(lines[2]["shape"], ordered_json({2, 2}));
  EXPECT_EQ(lines[2]["count"], 4);
  EXPECT_EQ(lines[2]["bytes"], 16);
  EXPECT_EQ(lines[2]["mean"], 1);
  EXPECT_DOUBLE_EQ(lines[2]["std"], std::sqrt(26.0 / 4));  // 0 + 9 + 1 + 16
  EXPECT_DOUBLE_EQ(lines[2]["norm"], std::sqrt(30.0));

  EXPECT_EQ(lines[3]["tensor"], "layers.0.b");
  EXPECT_EQ(lines[3]["std"], 0);
}

// A million values around 1,000 that differ by 0.001: sums in f32, or sums of squares without
// subtracting the mean, lose that.
TEST_F(ToolInspect, StatisticsAreInDouble) {
  std::vector<float> values(1 << 20);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % 2 ? 1000.0009765625f : 999.9990234375f;
  const std::string file =
      write("a.safetensors", {.tensors = {{"x", Array({1 << 20}, values)}}, .metadata = {}});
  const auto line = json_lines(inspect(file + " --json"))[1];
  EXPECT_EQ(line["mean"], 1000);
  EXPECT_NEAR(line["std"].get<double>(), 0.0009765625, 1e-15);
}

TEST_F(ToolInspect, TheFileSaysWhatItIs) {
  const std::string file = write("a.safetensors", checkpoint());
  const auto line = json_lines(inspect(file + " --json"))[0];
  EXPECT_EQ(keys(line),
            "file bytes step seed position kind config tokenizer metadata parameters optimizer "
            "not_finite");
  EXPECT_EQ(line["file"], file);
  EXPECT_EQ(line["bytes"], fs::file_size(file));
  EXPECT_EQ(line["step"], 1500);
  EXPECT_EQ(line["seed"], 7);
  EXPECT_EQ(line["kind"], "mamba");
  EXPECT_EQ(line["config"]["dim"], 64);
  EXPECT_EQ(line["tokenizer"], ordered_json({{"kind", "chars"}, {"vocab", 97}}));
  EXPECT_EQ(line["metadata"], ordered_json({{"note", "second try"}}));
  EXPECT_EQ(line["parameters"], ordered_json({{"tensors", 3}, {"count", 9}, {"bytes", 36}}));
  EXPECT_EQ(line["optimizer"], ordered_json({{"tensors", 1}, {"count", 4}, {"bytes", 16}}));
  EXPECT_EQ(line["not_finite"], 0);
}

TEST_F(ToolInspect, TableForPeople) {
  const std::string file = write("a.safetensors", checkpoint());
  EXPECT_EQ(inspect(file).out, file + R"(
  checkpoint at step 1500
  seed       7
  position   12000
  config     kind mamba, vocab 97, dim 64
  tokenizer  kind chars, vocab 97
  note       second try

name        type  shape  count   min   max  mean   std   norm  zeros
ids         I32   [3]        3    -1     7     2  3.56   7.07  33.3%
layers.0.W  F32   [2,2]      4    -2     5     1  2.55   5.48  25.0%
layers.0.b  F32   [2]        2  0.25  0.25  0.25     0  0.354     0%

parameters  9 in 3 tensors, 36 bytes
optimizer   4 in 1 tensor, 16 bytes
not listed  1 of 4 tensors; --optimizer lists those of the optimizer
)");
}

TEST_F(ToolInspect, PlainFilesHaveNoStep) {
  const std::string file = write(
      "a.safetensors", {.tensors = {{"x", floats({1}, {2.0f})}}, .metadata = {{"format", "pt"}}});
  expect_starts_with(inspect(file).out,
                     file + "\n  safetensors file\n  format     pt\n\nname  type ");
  EXPECT_EQ(keys(json_lines(inspect(file + " --json"))[0]),
            "file bytes metadata parameters optimizer not_finite");
  // Metadata that resembles ours but is not.
  TensorFile odd = {
      .tensors = {},
      .metadata = {
          {"config", "[1"}, {"tokenizer", "3"}, {"step", "soon"}, {"kind", "own"}, {"x", ""}}};
  const auto line = json_lines(inspect(write("b.safetensors", odd) + " --json"))[0];
  EXPECT_EQ(line["config"], "[1");
  EXPECT_EQ(line["step"], "soon");
  EXPECT_EQ(line["metadata"], ordered_json({{"kind", "own"}}));
}

TEST_F(ToolInspect, ChoosesTensors) {
  const std::string file = write("a.safetensors", checkpoint());
  const auto names = [&](const std::string& options) {
    std::string list;
    for (const auto& line : json_lines(inspect(file + " --json " + options)))
      if (line.contains("tensor")) list += line["tensor"].get<std::string>() + " ";
    return list;
  };
  EXPECT_EQ(names(""), "ids layers.0.W layers.0.b ");
  EXPECT_EQ(names("--optimizer"), "ids layers.0.W layers.0.b optimizer/m/layers.0.W ");
  EXPECT_EQ(names("--tensors '*.W'"), "layers.0.W ");
  EXPECT_EQ(names("--tensors '*.W' --optimizer"), "layers.0.W optimizer/m/layers.0.W ");
  EXPECT_EQ(names("--tensors 'optimizer/*,ids'"), "ids optimizer/m/layers.0.W ");
  EXPECT_EQ(names("--tensors 'ids,layers.?.b'"), "ids layers.0.b ");

  const ToolRun none = run_tool("inspect " + file + " --tensors layers.0.w");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "tg: --tensors: no tensor matches 'layers.0.w'\n  hint: 'layers.0.W'?\n");
}

TEST_F(ToolInspect, NumbersThatAreNotFiniteAreLoud) {
  TensorFile file = {.tensors = {{"a", floats({5}, {kNan, 3.0f, -kInf, kInf, 0.0f})},
                                 {"b", floats({1}, {kNan})},
                                 {"c", floats({1}, {1.0f})},
                                 {"empty", Array({0, 2}, std::vector<float>{})},
                                 {"optimizer/m/a", floats({1}, {kInf})}},
                     .metadata = {}};
  const std::string path = write("a.safetensors", file);
  const auto lines = json_lines(inspect(path + " --json"));
  EXPECT_EQ(lines[0]["not_finite"], 3);
  EXPECT_EQ(lines[1]["nan"], 1);
  EXPECT_EQ(lines[1]["inf"], 2);
  EXPECT_EQ(lines[1]["mean"], 1.5);  // of 3 and 0
  EXPECT_EQ(lines[1]["norm"], 3);
  for (const char* key : {"min", "max", "mean", "std", "norm"}) {
    EXPECT_TRUE(lines[2][key].is_null()) << key;
    EXPECT_TRUE(lines[4][key].is_null()) << key;
  }
  const std::string text = inspect(path).out;
  expect_contains(text, "20.0%  !! 1 NaN, 2 inf\n");
  expect_contains(text, "0%  !! 1 NaN\n");
  EXPECT_TRUE(
      text.ends_with("!! a holds 1 NaN, 2 inf\n!! b holds 1 NaN\n!! optimizer/m/a holds 1 inf\n"))
      << text;
}

TEST_F(ToolInspect, TypesAreThoseInTheFile) {
  // 1.5 and -2 as BF16; three bytes.
  std::string header = R"({"h":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                       R"("u":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const std::string path =
      write_bytes("a.safetensors", bytes + header + std::string("\xc0\x3f\x00\xc0\x00\x01\xff", 7));
  const auto lines = json_lines(inspect(path + " --json"));
  EXPECT_EQ(lines[1]["dtype"], "BF16");
  EXPECT_EQ(lines[1]["bytes"], 4);
  EXPECT_EQ(lines[1]["min"], -2);
  EXPECT_EQ(lines[1]["max"], 1.5);
  EXPECT_EQ(lines[2]["dtype"], "U8");
  EXPECT_EQ(lines[2]["max"], 255);
  EXPECT_EQ(lines[0]["parameters"]["bytes"], 7);
}

TEST_F(ToolInspect, NarrowTerminalsGetTwoLines) {
  TensorFile file = checkpoint();
  const std::string longest(70, 'w');
  file.tensors[longest] = floats({1}, {1.0f});
  file.tensors["lä\n"] = floats({1}, {-1.25e-7f});
  const std::string text =
      inspect(write("a.safetensors", file) + " --width 60 --tensors 'layers.0.W,l?*,w*'").out;
  expect_contains(text, "\n" + longest + "\n" + std::string(36, ' ') + "  F32   [1]        1\n");
  const std::string row =
      "\nlayers.0.W" + std::string(26, ' ') +
      "  F32   [2,2]      4\n          -2         5         1  2.55     5.48  25.0%\n";
  expect_contains(text, row);
  expect_contains(text, "\nlä\\x0a" + std::string(30, ' ') + "  F32 ");
  expect_contains(text, " -1.25e-7 ");
  // Only a name may be wider.
  std::istringstream lines(text.substr(text.find("\nname ")));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 60 || line == longest || line.starts_with("not listed")) << line;
}

TEST_F(ToolInspect, AFolderMeansItsNewestCheckpoint) {
  const TensorFile one = {.tensors = {{"x", floats({1}, {1.0f})}}, .metadata = {}};
  write("run/checkpoints/step-00000900.safetensors", one);
  const std::string newest = write("run/checkpoints/step-100000000.safetensors", one);
  write("run/checkpoints/step-last.safetensors", one);
  write_bytes("run/checkpoints/step-200000000.safetensors.tmp", "half");
  const std::string run = (folder_ / "run").string();
  for (const std::string& folder : {run, run + "/checkpoints"}) {
    expect_starts_with(inspect(folder).out, newest + " (the newest of " + folder + ")\n");
    EXPECT_EQ(json_lines(inspect(folder + " --json"))[0]["file"], newest);
  }
  const ToolRun none = run_tool("inspect " + folder_.string());
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "tg: " + folder_.string() +
                          ": a folder without checkpoints\n  hint: files are named "
                          "checkpoints/step-00000100.safetensors\n");
}

TEST_F(ToolInspect, BadFilesGiveTheReadersMessage) {
  const std::string whole = format_safetensors(checkpoint(), "a");
  const auto message = [&](const std::string& bytes) {
    const std::string path = write_bytes("bad.safetensors", bytes);
    const ToolRun run = run_tool("inspect " + path);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    expect_starts_with(run.err, "tg: " + path + ": ");
    return run.err.substr(6 + path.size());
  };
  EXPECT_EQ(message(""), "too short: 0 bytes cannot hold the header length\n");
  expect_starts_with(message("this is a text, no tensors"), "the header has ");
  expect_starts_with(message(whole.substr(0, 40)), "truncated: the header has ");
  expect_contains(message(whole.substr(0, whole.size() - 3)), "past the ");
  EXPECT_EQ(message(whole + "x"), "the last 1 bytes belong to no tensor\n");
}

// JSON metadata is printed as JSON; printing it recursively would need a stack of its depth.
TEST_F(ToolInspect, MetadataNestedDeeply) {
  const std::string deep = std::string(300000, '[') + std::string(300000, ']');
  const std::string path = write("deep.safetensors", {.metadata = {{"config", deep}}});
  const ToolRun run = run_tool("inspect " + path);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expect_contains(run.out, "[[[[... (600,000 bytes)\n");
}

// A FIFO without a writer would block, a device would fill the memory.
TEST_F(ToolInspect, OnlyRegularFiles) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(run_command("mkfifo '" + pipe + "'").exit_code, 0);
  const ToolRun fifo = run_tool("inspect '" + pipe + "'", "timeout 60"),
                zero = run_tool("inspect /dev/zero", "timeout 60");
  EXPECT_EQ(fifo.exit_code, 1);
  EXPECT_EQ(fifo.err, "tg: " + pipe + ": cannot read: a FIFO (named pipe), not a regular file\n");
  EXPECT_EQ(zero.exit_code, 1);
  EXPECT_EQ(zero.err, "tg: /dev/zero: cannot read: a character device, not a regular file\n");
}

}  // namespace
}  // namespace tensorgrad
