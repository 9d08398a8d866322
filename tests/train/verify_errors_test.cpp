// Errors of `tg verify` for cases it cannot replay and directories it cannot read. Nothing unknown
// passes silently.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/train/reference_directory.h"

namespace tensorgrad {
namespace {

using Json = nlohmann::ordered_json;

// ---- op cases

struct BadCase {
  const char* name;
  const char* description;
  const char* reason;
};

class Case : public testing::TestWithParam<BadCase> {};

TEST_P(Case, FailsWithItsReason) {
  ReferenceDirectory directory;
  directory.write_case(GetParam().description, {{"in/x", floats({2, 3}, {1, 2, 3, 4, 5, 6})},
                                                {"in/i", ints({2}, {0, 1})},
                                                {"cot", floats({3}, {1, 1, 1})},
                                                {"out", floats({3}, {5, 7, 9})}});
  const VerifyRun run = run_verify(directory.path());
  const Json& line = run.cases.at("one");
  EXPECT_EQ(keys(line), "case kind worst ok reason");
  EXPECT_EQ(line["ok"], false);
  EXPECT_TRUE(line["worst"].is_null()) << line;
  expect_starts_with(line["reason"], GetParam().reason);
  EXPECT_EQ(run.tool.exit_code, 1);
}

#define X R"("inputs":[{"name":"x","dtype":"f32","shape":[2,3]}])"
INSTANTIATE_TEST_SUITE_P(
    Verify, Case,
    testing::Values(
        BadCase{"UnknownOp", R"({"op":"summ",)" X "}", "unknown op 'summ'\n  hint: sum?"},
        BadCase{
            "UnknownAttribute", R"({"op":"sum","attrs":{"axis":0,"where":1},)" X "}",
            "sum: there is no parameter 'where'\n  hint: sum(x, axes = none, keepdims = false)"},
        BadCase{"AttributeOfTheWrongType", R"({"op":"sum","attrs":{"axis":"0"},)" X "}",
                "sum: 'axes' must be an integer: \"0\""},
        BadCase{"AttributeMissing", R"({"op":"permute",)" X "}",
                "permute: 'order' is missing\n  hint: permute(x, order)"},
        BadCase{"AttributesNoObject", R"({"op":"sum","attrs":[0],)" X "}",
                "attributes must be an object: [0]"},
        BadCase{"InputMissing", R"({"op":"add",)" X "}", "add: 'a' is missing\n  hint: add(a, b)"},
        BadCase{
            "InputUnknown",
            R"({"op":"sum","inputs":[{"name":"x","dtype":"f32","shape":[2,3]},{"name":"i","dtype":"i32","shape":[2]}]})",
            "sum: there is no parameter 'i'\n  hint: sum(x, axes = none, keepdims = false)"},
        BadCase{
            "InputTwice",
            R"({"op":"concat","inputs":[{"name":"x","dtype":"f32","shape":[2,3]},{"name":"x","dtype":"f32","shape":[2,3]}]})",
            "the input 'x' is declared twice"},
        BadCase{"AttributeAndInput", R"({"op":"sum","attrs":{"x":0},)" X "}",
                "sum: 'x' is given twice"},
        BadCase{"TwoNamesOfAnAttribute", R"({"op":"sum","attrs":{"axis":0,"axes":[1]},)" X "}",
                "sum: 'axes' is given twice"},
        BadCase{"AttributeIsAnObject", R"({"op":"sum","attrs":{"axis":{"input":"x"}},)" X "}",
                "sum: the attribute 'axis' must not be an object: {\"input\":\"x\"}"},
        BadCase{"ListIsAnAttribute", R"({"op":"concat","attrs":{"parts":1},)" X "}",
                "concat: 'parts' is given twice"},
        BadCase{"ArgmaxOfAnotherName",
                R"({"op":"argmax","inputs":[{"name":"i","dtype":"i32","shape":[2]}]})", "argmax: "},
        BadCase{"NoInputs", R"({"op":"concat","inputs":[]})", "concat without inputs"},
        BadCase{"TensorMissing",
                R"({"op":"sum","inputs":[{"name":"y","dtype":"f32","shape":[2,3]}]})",
                "the tensor one/in/y is missing"},
        BadCase{"DeclaredShape",
                R"({"op":"sum","inputs":[{"name":"x","dtype":"f32","shape":[3,2]}]})",
                "the input 'x' is declared as f32[3,2], its tensor is f32[2,3]"},
        BadCase{"DeclaredOutput", R"({"op":"sum","output":{"dtype":"i32","shape":[3]},)" X "}",
                "the output is declared as i32[3], its tensor is f32[3]"},
        BadCase{"ShapeOfTheResult", R"({"op":"sum","attrs":{"axis":1},)" X "}",
                "out is f32[2], the reference is f32[3]"},
        BadCase{"TypeOfTheResult", R"({"op":"argmax","attrs":{"axis":0},)" X "}",
                "out is i32[3], the reference is f32[3]"},
        BadCase{"GradientMissing", R"({"op":"sum","attrs":{"axis":0},"grads":["x"],)" X "}",
                "the tensor one/grad/x is missing"},
        BadCase{"GradientOfNothing", R"({"op":"sum","attrs":{"axis":0},"grads":["y"],)" X "}",
                "a gradient for 'y', which is not an input"},
        BadCase{
            "GradientOfIntegers",
            R"({"op":"one_hot","attrs":{"depth":3},"grads":["i"],"inputs":[{"name":"i","dtype":"i32","shape":[2]}]})",
            "the input 'i' is i32 and has no gradient"},
        BadCase{"RuleOfTheOp", R"({"op":"sum","attrs":{"axis":2},)" X "}", "sum: "}),
    [](const auto& test) { return std::string(test.param.name); });
#undef X

TEST(Verify, ANullAttributeIsNotGiven) {
  ReferenceDirectory directory;
  directory.write_case(
      R"({"op":"sum","attrs":{"axis":null,"keepdims":null},"inputs":[{"name":"x","dtype":"f32","shape":[2]}]})",
      {{"in/x", floats({2}, {1, 2})}, {"out", floats({}, {3})}});
  EXPECT_EQ(run_verify(directory.path()).done["passed"], 1);
}

TEST(Verify, ANullAttributeOfAttentionAndArgmaxIsNotGiven) {
  ReferenceDirectory directory;
  for (const char* attributes : {"{\"axis\":null}", "{\"keepdims\":true}", "{}"}) {
    directory.write_case(
        std::string(
            R"({"op":"argmax","inputs":[{"name":"x","dtype":"f32","shape":[2,2]}],"attrs":)") +
            attributes + "}",
        {{"in/x", floats({2, 2}, {1, 2, 4, 3})}, {"out", ints({}, {2})}});
    EXPECT_EQ(run_verify(directory.path()).done["passed"], 1) << attributes;
  }
  constexpr const char* kTensors =
      R"("inputs":[{"name":"q","dtype":"f32","shape":[1,1,2,1]},{"name":"k","dtype":"f32","shape":[1,1,2,1]},{"name":"v","dtype":"f32","shape":[1,1,2,1]}])";
  for (const char* attributes : {"{\"causal\":null}", "{}"}) {
    directory.write_case(
        std::string(R"({"op":"attention",)") + kTensors + ",\"attrs\":" + attributes + "}",
        {{"in/q", floats({1, 1, 2, 1}, {0, 0})},
         {"in/k", floats({1, 1, 2, 1}, {0, 0})},
         {"in/v", floats({1, 1, 2, 1}, {1, 3})},
         {"out", floats({1, 1, 2, 1}, {2, 2})}});
    EXPECT_EQ(run_verify(directory.path()).done["passed"], 1) << attributes;
  }
}

TEST(Verify, ReplaysBuilders) {
  ReferenceDirectory directory;
  directory.write_case(R"({"op":"eye","attrs":{"n":2},"inputs":[]})",
                       {{"out", floats({2, 2}, {1, 0, 0, 1})}});
  EXPECT_EQ(run_verify(directory.path()).done["passed"], 1);
}

// The registry is all that the replay knows: an op of which the format says nothing has the names
// of its parameters.
TEST(Verify, ReplaysOpsThatTheFormatDoesNotList) {
  for (
      const char* description :
      {R"({"op":"cumsum","attrs":{"axis":0},"grads":["x"],"inputs":[{"name":"x","dtype":"f32","shape":[2]}]})",
       R"({"op":"add","attrs":{"b":"NaN"},"inputs":[{"name":"a","dtype":"f32","shape":[2]}]})",
       R"({"op":"flip","attrs":{"axes":[0]},"inputs":[{"name":"x","dtype":"f32","shape":[2]}]})"}) {
    const std::string op = Json::parse(description)["op"];
    ReferenceDirectory directory;
    directory.write_case(
        description,
        {{"in/x", floats({2}, {1, 2})},
         {"in/a", floats({2}, {1, 2})},
         {"cot", floats({2}, {10, 1})},
         {"grad/x", floats({2}, {11, 1})},
         {"out", floats({2}, op == "flip" ? std::vector<float>{2, 1} : std::vector<float>{1, 3})}});
    EXPECT_EQ(run_verify(directory.path()).cases.at("one")["ok"], op != "add") << op;
  }
}

TEST(Verify, SkipsOpsWithSeveralResults) {
  ReferenceDirectory directory;
  directory.write_case(
      R"({"op":"split","attrs":{"sections":2},"inputs":[{"name":"x","dtype":"f32","shape":[2]}]})",
      {{"in/x", floats({2}, {1, 2})}, {"out", floats({1}, {1})}});
  const VerifyRun run = run_verify(directory.path());
  EXPECT_EQ(run.cases.at("one")["reason"], "split returns several tensors");
  EXPECT_EQ(run.done["skipped"], 1);
}

// ---- training runs

struct BadRun {
  const char* name;
  void (*change)(Json& json);
  const char* reason;
};

class Run : public testing::TestWithParam<BadRun> {};

TEST_P(Run, FailsWithItsReason) {
  ReferenceDirectory directory;
  for (const char* extension : {".json", ".safetensors"}) {
    const std::string file = std::string("train_mlp_tanh_adamw") + extension;
    std::filesystem::copy_file(kMoreFixtures / file, directory.path() / file);
  }
  directory.change_json("train_mlp_tanh_adamw.json", GetParam().change);
  const VerifyRun run = run_verify(directory.path());
  const Json& line = run.cases.at("train_mlp_tanh_adamw");
  EXPECT_EQ(line["ok"], false);
  expect_starts_with(line["reason"], GetParam().reason);
  EXPECT_EQ(run.tool.exit_code, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Verify, Run,
    testing::Values(
        BadRun{"UnknownModel", [](Json& j) { j["model"]["kind"] = "rnn"; },
               "unknown model kind 'rnn'"},
        BadRun{"UnknownModelSetting", [](Json& j) { j["model"]["dropout"] = 0.1; },
               "unknown model setting 'dropout': 0.1"},
        BadRun{"UnknownActivation", [](Json& j) { j["model"]["activation"] = "mish"; },
               "unknown activation 'mish'"},
        BadRun{"OtherActivation", [](Json& j) { j["model"]["activation"] = "relu"; }, "grad1/"},
        BadRun{"OtherSizes",
               [](Json& j) {
                 j["model"]["dims"] = {2, 7, 3};
               },
               "compile: decay names no parameter: 'l3.W'"},
        BadRun{"UnknownLoss", [](Json& j) { j["loss"] = "mae"; }, "unknown loss 'mae'"},
        BadRun{"UnknownOptimizer", [](Json& j) { j["optimizer"]["kind"] = "lion"; },
               "unknown optimizer 'lion'"},
        BadRun{"UnknownOptimizerSetting", [](Json& j) { j["optimizer"]["amsgrad"] = true; },
               "unknown optimizer setting 'amsgrad': true"},
        BadRun{"AdamWithDecay", [](Json& j) { j["optimizer"]["kind"] = "adam"; },
               "adam has no weight_decay"},
        BadRun{"UnknownSchedule", [](Json& j) { j["lr"]["kind"] = "cosine"; },
               "unknown lr kind 'cosine'"},
        BadRun{"UnknownScheduleSetting", [](Json& j) { j["lr"]["warmup"] = 5; },
               "unknown lr setting 'warmup': 5"},
        BadRun{"TooManySteps", [](Json& j) { j["steps"] = 9; }, "9 steps with 8 losses"},
        BadRun{"MissingBatch", [](Json& j) { j["steps"] = 9, j["losses"].push_back(1); },
               "input: 'x' is missing"},
        BadRun{"LossIsNoNumber", [](Json& j) { j["losses"][3] = nullptr; },
               "type must be number, but is null"},
        BadRun{"NoOptimizer", [](Json& j) { j.erase("optimizer"); }, "'optimizer' is missing"},
        BadRun{"NoDecay", [](Json& j) { j["decay"] = Json::array(); }, "the loss of step "},
        BadRun{"NoClipping", [](Json& j) { j["optimizer"].erase("clip_grad_norm"); },
               "the loss of step "}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- directories

struct Unreadable {
  const char* name;
  void (*make)(const ReferenceDirectory& directory);
  const char* options;
  const char* error;  // DIR stands for the directory
};

class Unread : public testing::TestWithParam<Unreadable> {};

TEST_P(Unread, IsExitCodeTwo) {
  ReferenceDirectory directory;
  GetParam().make(directory);
  const ToolRun run = run_tool(
      "verify '" + directory.path().string() + "' --json " + GetParam().options, "timeout 60");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  std::string error = GetParam().error;
  if (const auto at = error.find("DIR"); at != error.npos)
    error.replace(at, 3, directory.path().string());
  expect_starts_with(run.err, "tg: " + error);
}

void fill(const ReferenceDirectory& directory) {
  directory.write_case(R"({"op":"neg","inputs":[{"name":"x","dtype":"f32","shape":[]}]})",
                       {{"in/x", floats({}, {1})}, {"out", floats({}, {-1})}});
}

INSTANTIATE_TEST_SUITE_P(
    Verify, Unread,
    testing::Values(
        Unreadable{"Missing",
                   [](const ReferenceDirectory& d) { std::filesystem::remove(d.path()); }, "",
                   "DIR: cannot read the directory: No such file or directory"},
        Unreadable{"Empty", [](const ReferenceDirectory&) {}, "",
                   "DIR: no cases: there is neither an ops.json with cases nor a train_*.json"},
        Unreadable{"NoTensors",
                   [](const ReferenceDirectory& d) {
                     fill(d), std::filesystem::remove(d.path() / "ops.safetensors");
                   },
                   "", "DIR/ops.safetensors: cannot read: No such file or directory"},
        Unreadable{"TensorsAlone",
                   [](const ReferenceDirectory& d) { d.write("train_a.safetensors", ""); }, "",
                   "DIR/train_a.safetensors: there is no train_a.json beside it"},
        Unreadable{"BrokenTensors",
                   [](const ReferenceDirectory& d) { fill(d), d.write("ops.safetensors", "x"); },
                   "", "DIR/ops.safetensors: too short"},
        Unreadable{"BrokenJson",
                   [](const ReferenceDirectory& d) { fill(d), d.write("ops.json", "{"); }, "",
                   "DIR/ops.json: not JSON: line 1, column 2: expected a name in quotes"},
        Unreadable{"JsonNestedDeeply",
                   [](const ReferenceDirectory& d) {
                     fill(d);
                     d.write("ops.json", R"({"cases":[{"case":"a","op":"sum","attrs":)" +
                                             std::string(300'000, '[') + std::string(300'000, ']') +
                                             "}]}");
                   },
                   "", "DIR/ops.json: nested too deeply"},
        Unreadable{"JsonWithoutCases",
                   [](const ReferenceDirectory& d) { fill(d), d.write("ops.json", "{}"); }, "",
                   "DIR/ops.json: there is no list 'cases'"},
        Unreadable{"CaseWithoutOp",
                   [](const ReferenceDirectory& d) {
                     fill(d), d.write("ops.json", R"({"cases":[{"case":"a"}]})");
                   },
                   "", "DIR/ops.json: cases[0] has no string 'op'"},
        Unreadable{"JsonNoObject",
                   [](const ReferenceDirectory& d) { fill(d), d.write("train_a.json", "[]"); }, "",
                   "DIR/train_a.json: not a JSON object"},
        // A FIFO without a writer would block.
        Unreadable{"OpsInAFifo",
                   [](const ReferenceDirectory& d) {
                     fill(d), std::filesystem::remove(d.path() / "ops.json");
                     EXPECT_EQ(mkfifo((d.path() / "ops.json").c_str(), 0600), 0);
                   },
                   "", "DIR/ops.json: cannot read: a FIFO (named pipe), not a regular file"},
        Unreadable{"ARunInAFifo",
                   [](const ReferenceDirectory& d) {
                     EXPECT_EQ(mkfifo((d.path() / "train_a.json").c_str(), 0600), 0);
                   },
                   "", "DIR/train_a.json: cannot read: a FIFO (named pipe), not a regular file"},
        Unreadable{"OpsInADevice",
                   [](const ReferenceDirectory& d) {
                     std::filesystem::create_symlink("/dev/zero", d.path() / "ops.json");
                   },
                   "", "DIR/ops.json: cannot read: a character device, not a regular file"},
        Unreadable{"FilterWithoutMatch", fill, "--filter 'conv*'",
                   "DIR: no case is called 'conv*'"},
        Unreadable{"UnknownDevice", fill, "--device tpu", "--device: there is no device 'tpu': "}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- text for people

TEST(Verify, PeopleSeeFailuresAndASummary) {
  ReferenceDirectory directory;
  fill(directory);
  const std::string verify = "verify '" + directory.path().string() + "' --device cpu --threads 1";
  const std::string summary = run_tool(verify).out;
  expect_starts_with(summary, "1 passed, 0 failed, 0 skipped on cpu (1 thread, ");
  EXPECT_TRUE(summary.ends_with("); the worst error is 0 of the tolerance: one\n")) << summary;
  expect_starts_with(run_tool(verify + " --verbose").out,
                     "ok    one                          op     worst 0");
  directory.change_tensors("ops.safetensors",
                           [](NamedArrays& t) { t.at("one/out").floats()[0] = -1.1f; });
  const ToolRun failed = run_tool(verify);
  EXPECT_EQ(failed.exit_code, 1);
  expect_starts_with(failed.out,
                     "FAIL  one                          op     worst 1.82e+04   out is too far "
                     "from the reference\n");
}

TEST(Verify, TheFilterChoosesCases) {
  const VerifyRun run = run_verify(kFixtures, "--filter 'matmul_?'");
  EXPECT_EQ(run.done.dump(), R"({"event":"done","passed":5,"failed":0,"skipped":0})");
}

TEST(Verify, AWrongGradientNormIsANote) {
  ReferenceDirectory directory;
  directory.copy_from(kMoreFixtures);
  directory.change_json("train_transformer_short.json", [](Json& j) { j["grad_norms"][2] = 1.0; });
  const VerifyRun run = run_verify(directory.path(), "--filter train_transformer_short");
  EXPECT_EQ(run.done["passed"], 1);
  expect_contains(run.tool.err, "note  train_transformer_short: the gradient norm of step 2 is ");
}

}  // namespace
}  // namespace tensorgrad
