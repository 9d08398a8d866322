// Training by the C interface gives the bits of the same model in C++, and state moves between the
// two in files.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "io/checkpoint_bytes.h"
#include "tensorgrad/safetensors.h"
#include "tests/c/calls.h"

namespace tensorgrad::c_tests {
namespace {

struct Mlp {
  Linear l1{2, 8}, l2{8, 1};
  Param scale{{1}, init::ones()};
};

Tensor predict(const Mlp& m, const Tensor& x) { return m.l2(tanh(m.l1(x))) * m.scale; }

Outputs loss_of(const Mlp& m, const Inputs& in) {
  const Tensor y = capture("prediction", predict(m, in["x"]));
  return {{"loss", mean(square(y - in["y"]))}, {"y", y}};
}

NamedArrays batch(int step) {
  std::vector<float> x, y;
  for (int i = 0; i < 16; ++i) {
    const double a = std::sin(1.3 * i + step), b = std::cos(0.7 * i - step);
    x.push_back(static_cast<float>(a)), x.push_back(static_cast<float>(b));
    y.push_back(static_cast<float>(a * b));
  }
  return {{"x", floats({16, 2}, x)}, {"y", floats({16, 1}, y)}};
}

Feed feed_of(const NamedArrays& all) {
  Feed feed;
  for (const auto& [name, array] : all) feed.set(name, FeedValue(array));
  return feed;
}

Model mlp() {
  Model model(tg_model_new());
  EXPECT_EQ(tg_model_layer(model.get(), "l1", "Linear", R"({"in": 2, "out": 8})", "", 0), 0);
  EXPECT_EQ(tg_model_layer(model.get(), "l2", "Linear", R"({"in": 8, "out": 1})", "", 0), 1);
  EXPECT_EQ(tg_model_param(model.get(), "scale", R"({"shape": [1], "init": "ones"})", nullptr, 0),
            1)
      << tg_error();
  return model;
}

// Calls an op whose tensors are numbers of the graph.
int op(const Graph& graph, const char* name, std::initializer_list<std::pair<const char*, int>> in,
       Json more = Json::object()) {
  for (const auto& [argument, tensor] : in) more[argument] = {{"tensor", tensor}};
  const int result = tg_op(graph.get(), name, more.dump().c_str(), __FILE__, __LINE__);
  EXPECT_GE(result, 0) << tg_error();
  return result;
}

int layer(const Graph& graph, int number, int x) {
  const int result =
      tg_layer(graph.get(), number, fmt::format(R"({{"x": {{"tensor": {}}}}})", x).c_str(),
               __FILE__, __LINE__);
  EXPECT_GE(result, 0) << tg_error();
  return result;
}

int predict(const Graph& graph, int x) {
  const int y = layer(graph, 1, op(graph, "tanh", {{"x", layer(graph, 0, x)}}));
  return op(graph, "mul", {{"a", y}}, {{"b", {{"param", "scale"}}}});
}

// `more` are fields of the options.
Program training(const Json& more = Json::object()) {
  Json options = {
      {"inputs", {{{"name", "x"}, {"shape", {16, 2}}}, {{"name", "y"}, {"shape", {16, 1}}}}},
      {"seed", 3},
      {"device", "cpu"},
      {"threads", 1}};
  options.update(more);
  const Model model = mlp();
  Graph graph(tg_begin_training(model.get(), options.dump().c_str()));
  EXPECT_TRUE(graph) << tg_error();
  const int y = op(graph, "capture", {{"x", predict(graph, 0)}}, {{"name", "prediction"}});
  const int loss = op(
      graph, "mean", {{"x", op(graph, "square", {{"x", op(graph, "sub", {{"a", y}, {"b", 1}})}})}});
  EXPECT_EQ(tg_output(graph.get(), "loss", loss), 1);
  EXPECT_EQ(tg_output(graph.get(), "y", y), 1);
  return compiled(std::move(graph));
}

TrainingOptions options(TrainingOptions more = {}) {
  more.inputs = {{"x", {16, 2}}, {"y", {16, 1}}};
  more.seed = 3;
  more.device = "cpu";
  more.threads = 1;
  return more;
}

struct Step {
  NamedArrays outputs;
  Json text;
};
Step step(const Program& program, int number, int captures = 0) {
  const Waiting future = done(tg_run(program.get(), arrays(batch(number)).get(), captures));
  return {values(tg_future_arrays(future.get())), Json::parse(tg_future_text(future.get()))};
}

TEST(CTraining, HasTheBitsOfCpp) {
  const Program program =
      training({{"optimizer", {{"kind", "adamw"}, {"lr", 0.02}, {"weight_decay", 0.1}}},
                {"clip_grad_norm", 0.5}});
  auto own = compile(
      Mlp{},
      options({.optimizer = AdamW{.lr = 0.02, .weight_decay = 0.1f}, .clip_grad_norm = 0.5f}),
      loss_of);
  expect_same(download(program), own.download());
  for (int i = 0; i < 20; ++i) {
    const Step got = step(program, i);
    const Result want = own.step(feed_of(batch(i)));
    ASSERT_EQ(got.outputs.size(), 2u);
    expect_same(got.outputs.at("loss"), want["loss"], "loss");
    expect_same(got.outputs.at("y"), want["y"], "y");
    EXPECT_EQ(got.text["step"], i);
    EXPECT_EQ(got.text["lr"], 0.02);
    EXPECT_EQ(got.text["finite"], true);
    EXPECT_EQ(got.text["grad_norm"].get<float>(), want.grad_norm());
  }
  expect_same(download(program), own.download());
  expect_same(download(program, "optimizer"), own.optimizer_state());
  expect_same(download(program, "gradients"), own.gradients());
  EXPECT_EQ(tg_steps(program.get()), 20);
  EXPECT_EQ(tg_updates(program.get()), 20);
}

TEST(CTraining, StepsThatAreNotReadChangeTheSameBits) {
  const Program read = training(), unread = training();
  for (int i = 0; i < 10; ++i) {
    step(read, i);
    const Waiting future(tg_run(unread.get(), arrays(batch(i)).get(), TG_READ_NOTHING));
    EXPECT_EQ(tg_ready(future.get()), 1) << tg_error();
    EXPECT_EQ(tg_future_arrays(future.get()), nullptr);
  }
  expect_same(download(unread), download(read));
  EXPECT_EQ(tg_steps(unread.get()), 10);
}

TEST(CTraining, AStepThatIsReadReportsTheFailureOfOneThatIsNot) {
  const Program program = training();
  const NamedArrays before = download(program);
  NamedArrays bad = batch(0);
  bad.at("x") = floats({16, 2}, std::vector<float>(32, std::nanf("")));
  const Waiting unread(tg_run(program.get(), arrays(bad).get(), TG_READ_NOTHING));
  EXPECT_EQ(tg_ready(unread.get()), 1);
  const Waiting next(tg_run(program.get(), arrays(batch(1)).get(), TG_READ_OUTPUTS));
  while (tg_ready(next.get()) == 0) tg_poll();
  EXPECT_EQ(tg_ready(next.get()), -1);
  EXPECT_STREQ(tg_error_kind(), "non_finite");
  EXPECT_TRUE(std::string(tg_error()).starts_with("step 0: ")) << tg_error();
  expect_same(download(program), before);
  step(program, 1);
}

TEST(CTraining, ReadsAllOptions) {
  const Program program = training({{"optimizer",
                                     {{"kind", "sgd"},
                                      {"lr", 0.1},
                                      {"momentum", 0.9},
                                      {"nesterov", true},
                                      {"weight_decay", 0.01}}},
                                    {"accumulate", 2},
                                    {"clip_grad_norm", 1},
                                    {"normalize_grads", {"l1.*"}},
                                    {"freeze", {"scale"}},
                                    {"decay", {"*.W"}},
                                    {"non_finite", "skip"},
                                    {"without", {"cse"}}});
  auto own = compile(
      Mlp{},
      options(
          {.optimizer = Sgd{.lr = 0.1, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f},
           .clip_grad_norm = 1,
           .normalize_grads = {"l1.*"},
           .accumulate = 2,
           .freeze = {"scale"},
           .decay = NameFilter{"*.W"},
           .non_finite = NonFinite::skip,
           .without = {"cse"}}),
      loss_of);
  for (int i = 0; i < 6; ++i) {
    const Step got = step(program, i);
    const Result want = own.step(feed_of(batch(i)));
    // Only a step that updates clips.
    ASSERT_EQ(got.text.contains("grad_norm"), i % 2 == 1);
    if (i % 2 == 0) continue;
    EXPECT_EQ(got.text["grad_norm"].get<float>(), want.grad_norm());
  }
  expect_same(download(program), own.download());
  EXPECT_EQ(tg_steps(program.get()), 6);
  EXPECT_EQ(tg_updates(program.get()), 3);
  const Json info = Json::parse(tg_program_info(program.get()));
  EXPECT_EQ(info["trains"], true);
  EXPECT_EQ(info["device"], "cpu");
  EXPECT_EQ(info["threads"], 1);
  EXPECT_EQ(info["parameters"][4]["name"], "scale");
  EXPECT_EQ(info["parameters"][4]["frozen"], true);
  EXPECT_EQ(info["parameters"][0]["decay"], true);
  EXPECT_EQ(info["inputs"][0], (Json{{"name", "x"}, {"shape", {16, 2}}, {"dtype", "f32"}}));
  EXPECT_EQ(info["outputs"].size(), 2u);
  EXPECT_EQ(info["captures"][0]["name"], "prediction");
  EXPECT_EQ(info["counts"]["kernels"], own.counts().kernels);
  EXPECT_EQ(info["kernels"].size(), own.plan().size());
  EXPECT_EQ(info["counts"]["bytes_moved"], own.counts().bytes_moved);
  // The same graph, but for the lines of the calls.
  static const std::regex line("_test.cpp:[0-9]+");
  EXPECT_TRUE(std::regex_replace(tg_program_show(program.get(), "simplify"), line, "") ==
              std::regex_replace(own.show("simplify"), line, ""));
}

TEST(CTraining, ThePlanIsThatOfCpp) {
  const Program program = training();
  const auto own = compile(Mlp{}, options(), loss_of);
  const std::vector<PlannedKernel> want = own.plan();
  const Json plan = Json::parse(tg_program_plan(program.get()));
  ASSERT_EQ(plan.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Json& kernel = plan[i];
    EXPECT_EQ(kernel["kind"], want[i].kind);
    EXPECT_EQ(kernel["phase"], want[i].phase);
    EXPECT_EQ(kernel["stage"], want[i].stage);
    EXPECT_EQ(kernel["ops"], want[i].ops);
    EXPECT_EQ(kernel["operations"], want[i].operations);
    EXPECT_EQ(kernel["bytes_read"], want[i].bytes_read);
    EXPECT_EQ(kernel["bytes_written"], want[i].bytes_written);
    ASSERT_EQ(kernel["writes"].size(), want[i].writes.size());
    for (std::size_t j = 0; j < want[i].writes.size(); ++j) {
      const PlannedTensor& tensor = want[i].writes[j];
      EXPECT_EQ(kernel["writes"][j], (Json{{"type", tensor.type},
                                           {"space", tensor.space},
                                           {"offset", tensor.offset},
                                           {"bytes", tensor.bytes},
                                           {"last_use", tensor.last_use},
                                           {"in_place", tensor.in_place}}));
    }
  }
  EXPECT_TRUE(plan[0]["where"].get<std::string>().starts_with("l1, at training_test.cpp:"));
}

TEST(CTraining, AProfileTimesEachKernelAndMakesSteps) {
  const Program program = training();
  step(program, 0);
  const Waiting future = done(tg_profile(program.get(), arrays(batch(1)).get(), 2));
  const Json times = Json::parse(tg_future_text(future.get()));
  ASSERT_EQ(times.size(), Json::parse(tg_program_plan(program.get())).size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i]["kernel"], i);
    EXPECT_NE(times[i]["name"], "");
    EXPECT_GT(times[i]["microseconds"].get<double>(), 0);
    EXPECT_GE(times[i]["mean_microseconds"].get<double>(),
              0.999 * times[i]["microseconds"].get<double>());
    EXPECT_EQ(times[i].size(), 4u);
  }
  EXPECT_EQ(tg_steps(program.get()), 3);
  const Program other = training();
  step(other, 0), step(other, 1), step(other, 1);
  expect_same(download(program), download(other));
}

TEST(CTraining, TrainOnlyFreezesTheOthers) {
  const Program program = training({{"train_only", {"l2.*"}}});
  const NamedArrays before = download(program);
  step(program, 0);
  const NamedArrays after = download(program);
  expect_same(after.at("l1.W"), before.at("l1.W"), "l1.W");
  EXPECT_NE(after.at("l2.W").floats()[0], before.at("l2.W").floats()[0]);
}

TEST(CTraining, ReturnsCaptures) {
  const Program program = training();
  const Waiting future = done(tg_run(program.get(), arrays(batch(0)).get(), 1));
  const NamedArrays captures = values(tg_future_captures(future.get()));
  ASSERT_EQ(captures.size(), 1u);
  expect_same(captures.at("prediction"), values(tg_future_arrays(future.get())).at("y"), "y");
}

// ---- learning rates

const char* const kSchedules[] = {
    R"({"kind": "linear", "peak": 0.1, "last": 0.01, "steps": 6})",
    R"({"kind": "cosine", "peak": 0.1, "last": 0, "steps": 5})",
    R"({"kind": "warmup", "steps": 3, "after": {"kind": "linear", "peak": 0.2, "last": 0, "steps": 4}})",
    R"({"kind": "staircase", "rate": 0.1, "factor": 0.5, "every": 2})",
    R"({"kind": "multi_step", "rate": 0.1, "factor": 0.1, "milestones": [2, 5]})",
};

Schedule schedule(int number) {
  const Schedule all[] = {linear(0.1, 0.01, 6), cosine(0.1, 0, 5), warmup(3, linear(0.2, 0, 4)),
                          staircase(0.1, 0.5, 2), multi_step(0.1, 0.1, {2, 5})};
  return all[number];
}

TEST(CTraining, ASetLearningRateEqualsTheSchedule) {
  for (int s = 0; s < 5; ++s) {
    const Program planned =
        training({{"optimizer", {{"kind", "sgd"}, {"lr", Json::parse(kSchedules[s])}}}});
    const Program set = training({{"optimizer", {{"kind", "sgd"}, {"lr", 7}}}});
    const Program later = training({{"optimizer", {{"kind", "sgd"}, {"lr", 7}}}});
    ASSERT_EQ(tg_set_lr(later.get(), kSchedules[s]), 1) << tg_error();
    for (int i = 0; i < 8; ++i) {
      const std::int64_t update = tg_updates(set.get()) + 1;
      ASSERT_EQ(update, i + 1);
      ASSERT_EQ(tg_set_lr(set.get(), fmt::format("{}", schedule(s).at(update)).c_str()), 1);
      EXPECT_EQ(step(planned, i).text["lr"], schedule(s).at(update));
      EXPECT_EQ(step(set, i).text["lr"], schedule(s).at(update));
      step(later, i);
    }
    expect_same(download(set), download(planned));
    expect_same(download(later), download(planned));
  }
}

// ---- state

TEST(CTraining, AttachedProgramsShareParameters) {
  const Program program = training({{"optimizer", {{"kind", "adam"}, {"lr", 0.05}}}});
  Graph graph(tg_begin_attached(program.get(), R"({"inputs": [{"name": "x", "shape": [16, 2]}]})"));
  ASSERT_TRUE(graph) << tg_error();
  ASSERT_EQ(tg_output(graph.get(), "out", predict(graph, 0)), 1);
  const Program forward = compiled(std::move(graph));
  for (int i = 0; i < 3; ++i) {
    const NamedArrays feed{{"x", batch(i).at("x")}};
    const NamedArrays before = run(forward, feed);
    expect_same(before.at("out"), step(program, i).outputs.at("y"), "y");
    EXPECT_NE(run(forward, feed).at("out").floats()[0], before.at("out").floats()[0]);
  }
}

TEST(CTraining, ParametersMayBeUploaded) {
  const Program program = training();
  const NamedArrays first = download(program);
  step(program, 0);
  ASSERT_EQ(tg_upload(program.get(), arrays(first).get(), 0), 1) << tg_error();
  expect_same(download(program), first);
  ASSERT_EQ(tg_upload(program.get(), arrays({{"scale", floats({1}, {4})}}).get(), 1), 1);
  EXPECT_EQ(download(program).at("scale").floats()[0], 4);
  EXPECT_EQ(tg_steps(program.get()), 1);
}

TEST(CTraining, InputsMayBeSetForAllRuns) {
  const Program program = training();
  ASSERT_EQ(tg_set_inputs(program.get(), arrays(batch(0)).get()), 1) << tg_error();
  const Waiting future = done(tg_run(program.get(), nullptr, 0));
  const Program other = training();
  expect_same(values(tg_future_arrays(future.get())), step(other, 0).outputs);
}

TEST(CTraining, ResetAndRestartBeginAgain) {
  const Program program = training();
  const NamedArrays initial = download(program), fresh = download(program, "optimizer");
  step(program, 0), step(program, 1);
  const NamedArrays trained = download(program);
  ASSERT_EQ(tg_reset(program.get(), R"({"optimizer": true})"), 1) << tg_error();
  expect_same(download(program), trained);
  expect_same(download(program, "optimizer"), fresh);
  EXPECT_EQ(tg_steps(program.get()), 0);
  ASSERT_EQ(tg_reset(program.get(), "{}"), 1);
  expect_same(download(program), initial);
  ASSERT_EQ(tg_reset(program.get(), R"({"seed": 4})"), 1);
  EXPECT_NE(download(program).at("l1.W").floats()[0], initial.at("l1.W").floats()[0]);
  step(program, 0);
  ASSERT_EQ(tg_restart(program.get(), arrays(trained).get()), 1) << tg_error();
  expect_same(download(program), trained);
  expect_same(download(program, "optimizer"), fresh);
  EXPECT_EQ(tg_steps(program.get()), 0);
}

TEST(CTraining, ARestoredRunHasTheBitsOfOneThatWentOn) {
  const Json optimizer{{"optimizer", {{"kind", "adam"}, {"lr", 0.05}}}};
  const Program whole = training(optimizer);
  for (int i = 0; i < 8; ++i) step(whole, i);

  const Program first = training(optimizer);
  for (int i = 0; i < 3; ++i) step(first, i);
  const Point point(tg_checkpoint_new(arrays(download(first)).get(),
                                      arrays(download(first, "optimizer")).get(),
                                      R"({"step": 3, "seed": 3, "position": 48, "config": "c",
                                          "tokenizer": "t", "more": {"note": "half"}})"));
  ASSERT_TRUE(point) << tg_error();
  const Bytes bytes(tg_checkpoint_save(point.get()));
  ASSERT_TRUE(bytes) << tg_error();

  const Point read(
      tg_checkpoint_load(tg_bytes_data(bytes.get()), tg_bytes_size(bytes.get()), "run"));
  ASSERT_TRUE(read) << tg_error();
  EXPECT_EQ(Json::parse(tg_checkpoint_info(read.get())), (Json{{"step", 3},
                                                               {"seed", 3},
                                                               {"position", 48},
                                                               {"config", "c"},
                                                               {"tokenizer", "t"},
                                                               {"more", {{"note", "half"}}}}));
  const Program second = training(optimizer);
  step(second, 17);
  done(tg_restore(second.get(), tg_checkpoint_parameters(read.get()),
                  tg_checkpoint_optimizer(read.get())));
  EXPECT_EQ(tg_steps(second.get()), 3);
  for (int i = 3; i < 8; ++i) step(second, i);
  expect_same(download(second), download(whole));
  expect_same(download(second, "optimizer"), download(whole, "optimizer"));

  // The same bytes in C++, and back.
  const Checkpoint own = io::parse_checkpoint(
      {static_cast<const char*>(tg_bytes_data(bytes.get())), tg_bytes_size(bytes.get())}, "run");
  auto cpp = compile(Mlp{}, options({.optimizer = Adam{.lr = 0.05}}), loss_of);
  cpp.restore(own.parameters, own.optimizer);
  for (int i = 3; i < 8; ++i) cpp.step(feed_of(batch(i)));
  expect_same(cpp.download(), download(whole));
  EXPECT_EQ(own.more.at("note"), "half");
  const std::string written = io::format_checkpoint(
      {.parameters = cpp.download(), .optimizer = cpp.optimizer_state(), .step = 8}, "run");
  const Point back(tg_checkpoint_load(written.data(), written.size(), "run"));
  const Program third = training(optimizer);
  done(tg_restore(third.get(), tg_checkpoint_parameters(back.get()),
                  tg_checkpoint_optimizer(back.get())));
  step(third, 8), step(whole, 8);
  expect_same(download(third), download(whole));
}

TEST(CTraining, WeightsMoveBetweenLanguagesInFiles) {
  const Program program = training();
  step(program, 0);
  const NamedArrays weights = download(program);
  const Bytes bytes(tg_arrays_save(arrays(weights).get(), R"({"from": "c"})"));
  ASSERT_TRUE(bytes) << tg_error();
  const TensorFile file = parse_safetensors(
      {static_cast<const char*>(tg_bytes_data(bytes.get())), tg_bytes_size(bytes.get())}, "w");
  expect_same(file.tensors, weights);
  EXPECT_EQ(file.metadata.at("from"), "c");
  auto cpp = compile(Mlp{}, options(), loss_of);
  cpp.upload(file.tensors);
  cpp.step(feed_of(batch(1)));
  const std::string back = format_safetensors({cpp.download(), {{"from", "c++"}}, {}}, "w");
  const Arrays read(tg_arrays_load(back.data(), back.size(), "w"));
  ASSERT_TRUE(read) << tg_error();
  EXPECT_STREQ(tg_arrays_metadata(read.get()), R"({"from":"c++"})");
  ASSERT_EQ(tg_upload(program.get(), read.get(), 0), 1) << tg_error();
  expect_same(download(program), cpp.download());
}

// ---- failures

TEST(CTraining, AStepThatIsNotFiniteChangesNothing) {
  const Program program = training();
  step(program, 0);
  const NamedArrays before = download(program);
  NamedArrays bad = batch(1);
  bad.at("x").floats()[3] = NAN;
  const Waiting future(tg_run(program.get(), arrays(bad).get(), 0));
  ASSERT_TRUE(future) << tg_error();
  while (tg_ready(future.get()) == 0) tg_poll();
  EXPECT_EQ(tg_ready(future.get()), -1);
  EXPECT_STREQ(tg_error_kind(), "non_finite");
  EXPECT_STREQ(tg_error(), "step 1: the loss is NaN: the input 'x' contains NaN values");
  expect_same(download(program), before);
  EXPECT_EQ(step(program, 1).text["step"], 2);  // the bad step counts
}

TEST(CTraining, ASkippedStepSaysSo) {
  const Program program = training({{"non_finite", "skip"}, {"clip_grad_norm", 1}});
  NamedArrays bad = batch(1);
  bad.at("x").floats()[3] = INFINITY;
  const Waiting future = done(tg_run(program.get(), arrays(bad).get(), 0));
  const Json text = Json::parse(tg_future_text(future.get()));
  EXPECT_EQ(text["finite"], false);
  EXPECT_TRUE(text["grad_norm"].is_null());
}

// ---- models and graphs

TEST(CModels, AGraphHasACopyOfTheModel) {
  const Model model = mlp();
  const char* const forward = R"({"inputs": [{"name": "x", "shape": [4, 2]}], "device": "cpu"})";
  Graph first(tg_begin_forward(model.get(), forward));
  Graph second(tg_begin_forward(model.get(), forward));
  ASSERT_EQ(tg_model_param(model.get(), "scale", R"({"init": {"kind": "literal"}})",
                           std::vector<float>{5}.data(), 1),
            1)
      << tg_error();
  Graph third(tg_begin_forward(model.get(), forward));
  for (Graph* graph : {&first, &second, &third})
    ASSERT_EQ(tg_output(graph->get(), "y", predict(*graph, 0)), 1) << tg_error();
  const Program one = compiled(std::move(first)), two = compiled(std::move(second)),
                three = compiled(std::move(third));
  expect_same(download(one), download(two));
  EXPECT_EQ(download(two).at("scale").floats()[0], 1);
  EXPECT_EQ(download(three).at("scale").floats()[0], 5);
  ASSERT_EQ(tg_upload(one.get(), arrays({{"scale", floats({1}, {9})}}).get(), 1), 1);
  EXPECT_EQ(download(two).at("scale").floats()[0], 1);
}

TEST(CModels, ParametersHaveOptions) {
  const Model model(tg_model_new());
  const auto add = [&](const char* name, const char* options, std::vector<float> literal = {}) {
    ASSERT_EQ(tg_model_param(model.get(), name, options, literal.empty() ? nullptr : literal.data(),
                             literal.size()),
              1)
        << tg_error();
  };
  add("a", R"({"shape": [2, 2], "init": {"kind": "constant", "value": 3}, "decay": false})");
  add("b", R"({"shape": [3], "init": {"kind": "literal"}, "frozen": true})", {1, 2, 3});
  add("normal", R"({"shape": [4], "init": {"kind": "normal", "deviation": 0.1, "mean": 2}})");
  add("uniform", R"({"shape": [4], "init": {"kind": "uniform", "low": 1, "high": 2}})");
  add("kaiming", R"({"shape": [4, 4], "init": "kaiming"})");
  add("xavier", R"({"shape": [4, 4], "init": {"kind": "xavier", "gain": 2}})");
  add("logs", R"({"shape": [4], "init": {"kind": "log_of_uniform", "low": 1, "high": 16}})");
  add("steps", R"({"shape": [4], "init": {"kind": "step_size", "low": 0.001, "high": 0.1}})");
  add("plain", R"({"shape": [4, 4]})");
  ASSERT_EQ(tg_model_share(model.get(), "tied", "a"), 1) << tg_error();
  const Json params = Json::parse(tg_model_params(model.get()));
  ASSERT_EQ(params.size(), 10u);
  EXPECT_EQ(params[0],
            (Json{{"name", "a"}, {"shape", {2, 2}}, {"decay", false}, {"frozen", false}}));
  EXPECT_EQ(params[1], (Json{{"name", "b"}, {"shape", {3}}, {"decay", false}, {"frozen", true}}));
  EXPECT_EQ(params[9]["same_as"], "a");

  struct Net {
    Param a{{2, 2}, init::constant(3)}, b{{3}, init::literal({1, 2, 3})};
    Param normal{{4}, init::normal(0.1f, 2)}, uniform{{4}, init::uniform(1, 2)};
    Param kaiming{{4, 4}, init::kaiming()}, xavier{{4, 4}, init::xavier(2)};
    Param logs{{4}, init::log_of_uniform(1, 16)}, steps{{4}, init::step_size(0.001f, 0.1f)};
    Param plain{{4, 4}};
  };
  auto own = compile_forward(Net{}, {.seed = 8, .device = "cpu"},
                             [](const Net& net, const Inputs&) { return net.a + net.a; });
  Graph graph(tg_begin_forward(model.get(), R"({"seed": 8, "device": "cpu"})"));
  const int y =
      tg_op(graph.get(), "add", R"({"a": {"param": "a"}, "b": {"param": "tied"}})", "", 0);
  ASSERT_EQ(tg_output(graph.get(), "y", y), 1) << tg_error();
  const Program program = compiled(std::move(graph));
  expect_same(download(program), own.download());
  expect_same(run(program, {}).at("y"), own.run().output(), "y");
}

TEST(CLibrary, DescribesItself) {
  EXPECT_EQ(std::count(tg_version(), tg_version() + std::string(tg_version()).size(), '.'), 2);
  const Json registry = Json::parse(tg_registry());
  EXPECT_GT(registry["ops"].size(), 100u);
  EXPECT_GT(registry["layers"].size(), 12u);
  EXPECT_EQ(registry["stages"].size(), compiler_stages().size());
  EXPECT_EQ(registry["passes"].size(), compiler_passes().size());
  const auto find = [&](const char* list, const char* name) -> const Json& {
    for (const Json& one : registry[list])
      if (one["name"] == name) return one;
    ADD_FAILURE() << name;
    return registry;
  };
  EXPECT_EQ(find("ops", "pad").dump(),
            R"({"name":"pad","family":"movement","sentence":"Adds elements before and after one )"
            R"(axis: a constant, or by reflection, or circularly.","parameters":[{"name":"x",)"
            R"("kind":"tensor"},{"name":"axis","kind":"integer"},{"name":"before","kind":)"
            R"("integer"},{"name":"after","kind":"integer"},{"name":"mode","kind":"word",)"
            R"("words":["constant","reflect","circular"],"default":"constant"},{"name":"value",)"
            R"("kind":"number","default":0.0}],"several":false})");
  EXPECT_EQ(find("ops", "clamp")["parameters"][1]["default"], "-Infinity");
  EXPECT_EQ(find("ops", "layer_norm")["parameters"][3]["default"], 1e-5);
  EXPECT_TRUE(find("ops", "layer_norm")["parameters"][2]["default"].is_null());
  EXPECT_EQ(find("layers", "Linear").dump(),
            R"({"name":"Linear","sentence":"x W + b over the last axis; W is [in, out].",)"
            R"("parameters":[{"name":"in","kind":"integer"},{"name":"out","kind":"integer"},)"
            R"({"name":"bias","kind":"bool","default":true}],"inputs":[{"name":"x","kind":)"
            R"("tensor"}]})");
  const Json devices = Json::parse(tg_devices());
  EXPECT_EQ(devices[0]["name"], "cpu");
  EXPECT_EQ(devices[0]["available"], true);
  EXPECT_EQ(devices.back()["name"], "webgpu");
}

}  // namespace
}  // namespace tensorgrad::c_tests
