// Counts, sizes and the texts of the stages.
#include <set>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {
namespace {

// The model of README.md.
struct Wide {
  Linear l1{1, 64}, l2{64, 64}, l3{64, 1};
};

constexpr std::int64_t kParams = 64 + 64 + 64 * 64 + 64 + 64 + 1;

Training<Wide> compile_wide(TrainingOptions options = {}) {
  options.inputs = {{"x", {256, 1}}, {"y", {256, 1}}};
  options.threads = 1;
  return compile(Wide{}, options, [](const Wide& m, const Inputs& in) {
    return mean(square(capture("y", m.l3(relu(m.l2(relu(m.l1(in["x"])))))) - in["y"]));
  });
}

TEST(Counts, OfTheExample) {
  auto train = compile_wide({.optimizer = Adam{.lr = 0.005f}});
  const Counts counts = train.counts();
  EXPECT_GT(counts.kernels, 0);
  EXPECT_EQ(counts.dispatches, counts.kernels);
  EXPECT_EQ(counts.passes, 0);
  EXPECT_EQ(counts.submits, 0);
  EXPECT_GT(counts.arena_bytes, 0);
  EXPECT_EQ(counts.arena_bytes % 256, 0);
  EXPECT_EQ(counts.param_bytes, 4 * kParams);
  EXPECT_EQ(counts.gradient_bytes, 4 * kParams);
  EXPECT_EQ(counts.state_bytes,
            4 * (2 * kParams + 1 + 1));  // m and v; updates made; the guard's flag
  EXPECT_EQ(counts.input_bytes, 4 * 2 * 256);
  train.step({{"x", Floats(256)}, {"y", Floats(256)}}, {.captures = true});
  EXPECT_EQ(train.counts().kernels, counts.kernels);
}

TEST(Counts, StateOfEachOptimizer) {
  const auto state_of = [](const TrainingOptions& options) {
    return compile_wide(options).counts().state_bytes / 4;
  };
  constexpr auto kFail = NonFinite::fail;
  EXPECT_EQ(state_of({.optimizer = Sgd{}, .non_finite = NonFinite::ignore}), 0);
  EXPECT_EQ(state_of({.optimizer = Sgd{}, .non_finite = NonFinite::skip}), 0);
  EXPECT_EQ(state_of({.optimizer = Sgd{}, .non_finite = kFail}), 1);
  EXPECT_EQ(state_of({.optimizer = Sgd{.momentum = 0.9f}, .non_finite = kFail}), kParams + 1);
  EXPECT_EQ(state_of({.optimizer = AdamW{}, .non_finite = kFail}), 2 * kParams + 2);
  EXPECT_EQ(state_of({.optimizer = Sgd{}, .accumulate = 4, .non_finite = kFail}), kParams + 1);
  EXPECT_EQ(state_of({.optimizer = Adam{}, .freeze = {"l2.*"}, .non_finite = kFail}),
            2 * (kParams - 64 * 64 - 64) + 2);
}

TEST(Counts, OfAForwardPass) {
  auto train = compile_wide();
  auto infer = train.attach({.inputs = {{"x", {1, 1}}}},
                            [](const Wide& m, const Inputs& in) { return m.l1(in["x"]); });
  const Counts counts = infer.counts();
  EXPECT_GT(counts.kernels, 0);
  EXPECT_LT(counts.kernels, train.counts().kernels);
  EXPECT_EQ(counts.param_bytes, 4 * kParams);
  EXPECT_EQ(counts.gradient_bytes, 0);
  EXPECT_EQ(counts.state_bytes, 0);
  EXPECT_EQ(counts.input_bytes, 4);
}

TEST(Counts, CompileTimeDeviceAndThreads) {
  if (std::getenv("TENSORGRAD_DEVICE")) GTEST_SKIP() << "TENSORGRAD_DEVICE says what auto means";
  auto train = compile_mlp({.device = "cpu", .threads = 2});
  EXPECT_GT(train.compile_ms(), 0);
  EXPECT_LT(train.compile_ms(), 60000);
  EXPECT_EQ(train.device(), "cpu");
  EXPECT_EQ(train.threads(), 2);
  EXPECT_EQ(compile_mlp({.device = "auto", .threads = 1}).device(), "cpu");
  bool listed = false;
  int automatic = 0;
  for (const DeviceInfo& info : devices()) {
    listed = listed || (info.name == "cpu" && info.available && !info.description.empty());
    automatic += info.chosen_by_auto;
    EXPECT_EQ(info.available, info.problem.empty()) << info.name;
  }
  EXPECT_TRUE(listed);
  EXPECT_EQ(automatic, 1);
}

std::vector<std::string> stage_names() {
  std::vector<std::string> out;
  for (const StageInfo& stage : compiler_stages()) out.emplace_back(stage.name);
  return out;
}

TEST(Stages, AreThoseOfTheTableAndAllDiffer) {
  const std::vector<std::string> expected = {"trace",    "recognise",   "differentiate", "update",
                                             "simplify", "materialise", "fuse",          "plan",
                                             "lower",    "emit",        "load"};
  EXPECT_EQ(stage_names(), expected);
  const std::vector<StageInfo> stages = compiler_stages();
  for (std::size_t i = 1; i < stages.size(); ++i)  // each takes what the one before makes
    EXPECT_EQ(stages[i].from, stages[i - 1].to) << stages[i].name;
  auto train = compile_mlp();
  std::set<std::string> texts;
  for (const std::string& stage : stage_names()) {
    texts.insert(train.show(stage));
    EXPECT_FALSE(train.show(stage).empty()) << stage;
  }
  EXPECT_EQ(texts.size(), stages.size() - 1);  // this model has nothing to recognise
  auto infer = train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output);
  for (const std::string& stage : stage_names())
    if (stage != "differentiate" && stage != "update") {
      EXPECT_FALSE(infer.show(stage).empty()) << stage;
    }
}

std::vector<std::string> timed(const ProgramHandle& program) {
  std::vector<std::string> out;
  for (const StageTime& time : program.stage_times()) {
    EXPECT_GE(time.milliseconds, 0);
    out.emplace_back(time.stage);
  }
  return out;
}

TEST(Stages, EachRunsOnceAndIsTimed) {
  auto train = compile_mlp({.accumulate = 2});
  EXPECT_EQ(timed(train), stage_names());
  // Executables of one program share the trace.
  int calls = 0;
  auto counted = compile(Mlp{}, {.inputs = mlp_inputs(), .accumulate = 2, .threads = 1},
                         [&](const Mlp& m, const Inputs& in) {
                           ++calls;
                           capture("h", m.l1(in["x"]));
                           return mean(m.l1(in["x"])) + 0 * mean(in["y"]);
                         });
  const std::vector<float> x(12), y(8);
  counted.step({{"x", x}, {"y", y}}, {.captures = true});
  EXPECT_EQ(calls, 1);
  std::vector<std::string> forward = stage_names();
  std::erase(forward, "differentiate");
  std::erase(forward, "update");
  EXPECT_EQ(timed(train.attach({.inputs = {{"x", {1, 3}}}}, mlp_output)), forward);
}

// A kernel's line names the layer and the line of the user's call.
TEST(Stages, ThePlanNamesTheUsersLines) {
  auto train = compile_mlp();
  int in_l1 = 0;
  for (const PlannedKernel& kernel : train.plan()) {
    if (kernel.kind == "matmul") {
      EXPECT_NE(kernel.where.find(", at "), std::string::npos) << kernel.where;
    }
    in_l1 += kernel.where.starts_with("l1, at ");
    if (!kernel.where.empty()) {
      EXPECT_NE(train.show("plan").find("  # " + kernel.where), std::string::npos);
    }
  }
  EXPECT_GE(in_l1, 1);
}

// Source lines are the user's. A path of this tree would make the text depend on the machine.
TEST(Stages, NameNoLinesOfTheLibrary) {
  auto train =
      compile(Mlp{}, {.inputs = mlp_inputs(), .clip_grad_norm = 1, .accumulate = 2, .threads = 1},
              [](const Mlp& m, const Inputs& in) {
                return mean(dropout(softplus(m.l1(in["x"])), 0.1f)) +
                       0 * mean(in["y"]);  // l2 and l3 are not used
              });
  for (const std::string& stage : stage_names()) {
    const std::string text = train.show(stage);
    for (const char* folder : {"/src/", "/include/tensorgrad/"})
      EXPECT_EQ(text.find(folder), std::string::npos)
          << stage << " " << text.substr(text.find(folder), 60);
  }
}

TEST(Stages, CompilingTwiceGivesTheSameTexts) {
  auto first = compile_mlp({.clip_grad_norm = 1, .accumulate = 2}),
       second = compile_mlp({.clip_grad_norm = 1, .accumulate = 2});
  for (const std::string& stage : stage_names())
    EXPECT_EQ(first.show(stage), second.show(stage)) << stage;
  const auto lm = [] {
    return compile(Transformer({.vocab = 11, .dim = 8, .context = 6, .layers = 2, .heads = 2}),
                   {.inputs = {{"ids", {2, 6}, i32}}, .threads = 1},
                   [](const Transformer& m, const Inputs& in) {
                     return cross_entropy(m(in["ids"]), in["ids"]);
                   });
  };
  auto one = lm(), two = lm();
  for (const std::string& stage : stage_names())
    EXPECT_EQ(one.show(stage), two.show(stage)) << stage;
}

}  // namespace
}  // namespace tensorgrad::compile_tests
