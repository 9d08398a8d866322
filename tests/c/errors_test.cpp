// Bad calls of the C interface: the exact texts, and that they change nothing.
#include <fmt/format.h>

#include <functional>

#include "tests/c/calls.h"
#include "tests/support/sanitizers.h"

namespace tensorgrad::c_tests {
namespace {

struct Row {
  const char* name;
  std::string text;
  std::function<bool()> fails;  // the call, and whether it returned its value for a failure
};

void expect_errors(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_TRUE(row.fails()) << row.name;
    EXPECT_EQ(tg_error(), row.text) << row.name;
    EXPECT_STREQ(tg_error_kind(), "user") << row.name;
  }
}

// The names of all passes.
std::string passes() {
  std::string names;
  for (const PassInfo& pass : compiler_passes())
    names += (names.empty() ? "" : ", ") + std::string(pass.name);
  return names;
}

constexpr const char* kOptions =
    R"({"inputs": [{"name": "x", "shape": [2, 3]}, {"name": "ids", "shape": [4], "dtype": "i32"}],
        "device": "cpu", "threads": 1})";

// A model with a parameter and a layer, and a graph of it.
class CErrors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tg_model_param(model.get(), "w", R"({"shape": [3, 2]})", nullptr, 0), 1);
    ASSERT_EQ(tg_model_layer(model.get(), "l1", "Linear", R"({"in": 3, "out": 2})", "a.js", 1), 0);
    graph.reset(tg_begin_forward(model.get(), kOptions));
    ASSERT_TRUE(graph) << tg_error();
  }
  std::function<bool()> op(const char* name, const char* arguments) {
    return [this, name, arguments] {
      return tg_op(graph.get(), name, arguments, "https://a.org/b/train.js", 41) == -1;
    };
  }
  std::function<bool()> layer(const char* arguments, int number = 0) {
    return [this, number, arguments] {
      return tg_layer(graph.get(), number, arguments, "src/train.js", 42) == -1;
    };
  }
  std::function<bool()> forward(const char* options) {
    return [this, options] { return tg_begin_forward(model.get(), options) == nullptr; };
  }
  std::function<bool()> training(const char* options) {
    return [this, options] { return tg_begin_training(model.get(), options) == nullptr; };
  }
  std::function<bool()> param(const char* name, const char* options) {
    return [this, name, options] {
      return tg_model_param(model.get(), name, options, nullptr, 0) == 0;
    };
  }
  // Ends the graph with x w as its output.
  Program program() {
    const int y =
        tg_op(graph.get(), "matmul", R"({"a": {"tensor": 0}, "b": {"param": "w"}})", "train.js", 1);
    EXPECT_EQ(tg_output(graph.get(), "y", y), 1) << tg_error();
    return compiled(std::move(graph));
  }

  Model model{tg_model_new()};
  Graph graph;
};

TEST_F(CErrors, Ops) {
  const std::string before = tg_graph_text(graph.get());
  expect_errors({
      {"unknown op", "sofmax: there is no op of this name\n  hint: 'softmax'?   at train.js:41",
       op("sofmax", R"({"x": {"tensor": 0}})")},
      {"shapes",
       "matmul: inner sizes differ: a is x f32[2,3], b is x f32[2,3] (3 against 2)\n"
       "  hint: swap_axes(b, -1, -2)?   at train.js:41",
       op("matmul", R"({"a": {"tensor": 0}, "b": {"tensor": 0}})")},
      {"shapes of a parameter",
       "add: shapes do not broadcast: a is x f32[2,3], b is w f32[3,2] (2 against 3)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at "
       "train.js:41",
       op("add", R"({"a": {"tensor": 0}, "b": {"param": "w"}})")},
      {"missing", "add: 'b' is missing\n  hint: add(a, b)   at train.js:41",
       op("add", R"({"a": {"tensor": 0}})")},
      {"null is missing", "add: 'b' is missing\n  hint: add(a, b)   at train.js:41",
       op("add", R"({"a": {"tensor": 0}, "b": null})")},
      {"too much",
       "softmax: there is no parameter 'dim'\n  hint: softmax(x, axis = -1)   at train.js:41",
       op("softmax", R"({"x": {"tensor": 0}, "dim": 0})")},
      {"no JSON",
       "add: not JSON: line 1, column 7: expected a value, found \"x}\"\n  at train.js:41",
       op("add", R"({"a": x})")},
      {"no object", "add: not a JSON object: [1]\n  at train.js:41", op("add", "[1]")},
      {"no operand", "neg: 'x' must be a tensor, a parameter or a number: \"t\"\n  at train.js:41",
       op("neg", R"({"x": "t"})")},
      {"another operand",
       "neg: an operand is {\"tensor\": number} or {\"param\": name}: {\"tensr\":0}\n  at "
       "train.js:41",
       op("neg", R"({"x": {"tensr": 0}})")},
      {"no tensor", "neg: there is no tensor 7 in this graph\n  at train.js:41",
       op("neg", R"({"x": {"tensor": 7}})")},
      {"negative tensor", "neg: there is no tensor -1 in this graph\n  at train.js:41",
       op("neg", R"({"x": {"tensor": -1}})")},
      {"no parameter", "neg: the model has no parameter 'l1.w'\n  hint: 'l1.W'?   at train.js:41",
       op("neg", R"({"x": {"param": "l1.w"}})")},
      {"tensors", "concat: 'parts' must be a list of tensors: {\"tensor\":0}\n  at train.js:41",
       op("concat", R"({"parts": {"tensor": 0}})")},
      {"no tensors", "concat: 'parts' must be at least one tensor: []\n  at train.js:41",
       op("concat", R"({"parts": []})")},
      {"number", "leaky_relu: 'slope' must be a number: \"big\"\n  at train.js:41",
       op("leaky_relu", R"({"x": {"tensor": 0}, "slope": "big"})")},
      {"integer", "softmax: 'axis' must be an integer: 0.5\n  at train.js:41",
       op("softmax", R"({"x": {"tensor": 0}, "axis": 0.5})")},
      {"large integer", "softmax: 5000000000 is out of range\n  at train.js:41",
       op("softmax", R"({"x": {"tensor": 0}, "axis": 5000000000})")},
      {"bool", "sum: 'keepdims' must be true or false: 1\n  at train.js:41",
       op("sum", R"({"x": {"tensor": 0}, "keepdims": 1})")},
      {"axes", "sum: 'axes' must be an integer: \"all\"\n  at train.js:41",
       op("sum", R"({"x": {"tensor": 0}, "axes": "all"})")},
      {"text", "capture: 'name' must be a text: 3\n  at train.js:41",
       op("capture", R"({"x": {"tensor": 0}, "name": 3})")},
      {"word", "cast: 'to' must be f32, i32, bool: \"f64\"\n  at train.js:41",
       op("cast", R"({"x": {"tensor": 0}, "to": "f64"})")},
      {"shape", "reshape: 'shape' must be a list of integers: 6\n  at train.js:41",
       op("reshape", R"({"x": {"tensor": 0}, "shape": 6})")},
      {"negative shape", "shape: sizes must not be negative: -3 after [2]\n  at train.js:41",
       op("zeros", R"({"shape": [2, -3]})")},
      {"pair", "max_pool2d: 'kernel' must be a size or [height, width]: [1,2,3]\n  at train.js:41",
       op("max_pool2d", R"({"x": {"tensor": 0}, "kernel": [1, 2, 3]})")},
      {"two ways to split", "split: needs either sections or sizes\n  at train.js:41",
       op("split", R"({"x": {"tensor": 0}, "sections": 2, "sizes": [1, 1]})")},
      {"a duplicate", "add: \"a\" occurs twice\n  at train.js:41",
       op("add", R"({"a": 1, "a": 2, "b": 3})")},
  });
  EXPECT_EQ(tg_tensors(graph.get()), 2);
  EXPECT_EQ(tg_graph_text(graph.get()), before);
  EXPECT_EQ(
      run(program(), {{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {"ids", ints({4}, {0, 0, 0, 0})}})
          .size(),
      1u);
}

TEST_F(CErrors, Layers) {
  const auto make = [this](const char* name, const char* layer, const char* arguments) {
    return [=, this] {
      return tg_model_layer(model.get(), name, layer, arguments, "src/net.js", 7) == -1;
    };
  };
  expect_errors({
      {"unknown", "layer: there is no layer 'linear'\n  hint: 'Linear'?   at net.js:7",
       make("l2", "linear", R"({"in": 3, "out": 2})")},
      {"missing", "Linear: 'out' is missing\n  hint: Linear(in, out, bias = true)   at net.js:7",
       make("l2", "Linear", R"({"in": 3})")},
      {"size", "Linear: sizes must be at least 1: in 3, out 0\n  at net.js:7",
       make("l2", "Linear", R"({"in": 3, "out": 0})")},
      {"tensor", "Linear: 'in' must be an integer: {\"tensor\":0}\n  at net.js:7",
       make("l2", "Linear", R"({"in": {"tensor": 0}, "out": 2})")},
      {"name", "param: the name 'l1.W' is taken",
       make("l1", "Linear", R"({"in": 3, "out": 2, "bias": false})")},
      {"call",
       "matmul (in Linear): inner sizes differ: a is w f32[3,2], b is l1.W f32[3,2] (2 against "
       "3)\n  hint: swap_axes(b, -1, -2)?   in l1, at train.js:42",
       layer(R"({"x": {"param": "w"}})")},
      {"input", "Linear: 'x' is missing\n  hint: Linear(x)   at train.js:42", layer("{}")},
      {"number", "there is no layer 1: there are 1", layer(R"({"x": {"tensor": 0}})", 1)},
  });
  const Json params = Json::parse(tg_model_params(model.get()));
  ASSERT_EQ(params.size(), 3u);
  EXPECT_EQ(params[1]["name"], "l1.W");
}

TEST_F(CErrors, Models) {
  expect_errors({
      {"no name", "param: a parameter needs a name", param("", R"({"shape": [1]})")},
      {"no shape", "param: 'shape' is missing", param("v", "{}")},
      {"shape", "param: 'shape' must be a list: 3", param("v", R"({"shape": 3})")},
      {"size", "param: a size must be an integer: 1.5", param("v", R"({"shape": [1.5]})")},
      {"negative", "shape: sizes must not be negative: -1 after [2]",
       param("v", R"({"shape": [2, -1]})")},
      {"taken", "param: the name 'w' is taken", param("w", R"({"shape": [2]})")},
      {"unknown", "param: unknown name 'size'\n  hint: shape, init, decay, frozen",
       param("v", R"({"size": [2]})")},
      {"flag", "param: 'decay' must be true or false: 0", param("w", R"({"decay": 0})")},
      {"no JSON", "param 'v': not a JSON object: 7", param("v", "7")},
      {"init kind",
       "init: unknown kind 'zero'\n  hint: zeros, ones, constant, normal, uniform, kaiming, "
       "kaiming_uniform, xavier, log_of_uniform, step_size, literal",
       param("v", R"({"shape": [2], "init": "zero"})")},
      {"init value", "init: 'value' is missing",
       param("v", R"({"shape": [2], "init": "constant"})")},
      {"init text", "init: 'gain' must be a number: \"2\"",
       param("v", R"({"shape": [2], "init": {"kind": "kaiming", "gain": "2"}})")},
      {"init name", "init: unknown name 'scale'\n  hint: one of kind, gain",
       param("v", R"({"shape": [2], "init": {"kind": "kaiming", "scale": 2}})")},
      {"share", "param: there is no parameter 'l1.w'\n  hint: 'l1.W'?",
       [&] { return tg_model_share(model.get(), "head", "l1.w") == 0; }},
      {"share name", "param: the name 'w' is taken",
       [&] { return tg_model_share(model.get(), "w", "l1.W") == 0; }},
  });
  EXPECT_EQ(Json::parse(tg_model_params(model.get())).size(), 3u);
}

TEST_F(CErrors, Options) {
  expect_errors({
      {"no JSON", "options: not a JSON object: 1", forward("1")},
      {"unknown", "options: unknown name 'optimiser'\n  hint: 'optimizer'?",
       training(R"({"optimiser": {}})")},
      {"forward has no optimizer",
       "options: unknown name 'optimizer'\n  hint: one of inputs, seed, device, threads, without",
       forward(R"({"optimizer": {"kind": "sgd"}})")},
      {"inputs", "inputs must be a list: {}", forward(R"({"inputs": {}})")},
      {"input", "inputs must be an object: \"x\"", forward(R"({"inputs": ["x"]})")},
      {"shape", "inputs: 'shape' is missing", forward(R"({"inputs": [{"name": "x"}]})")},
      {"sizes", "inputs: 'shape' must be a list: 2",
       forward(R"({"inputs": [{"name": "x", "shape": 2}]})")},
      {"size", "inputs: 'shape' must be an integer: \"n\"",
       forward(R"({"inputs": [{"name": "x", "shape": ["n"]}]})")},
      {"negative size", "shape: sizes must not be negative: -2 after []",
       forward(R"({"inputs": [{"name": "x", "shape": [-2]}]})")},
      {"dtype", "unknown dtype 'f64'\n  hint: f32, i32, bool",
       forward(R"({"inputs": [{"name": "x", "shape": [2], "dtype": "f64"}]})")},
      {"dtype text", "inputs: 'dtype' must be a word: 3",
       forward(R"({"inputs": [{"name": "x", "shape": [2], "dtype": 3}]})")},
      {"twice", "inputs: the name 'x' is given twice",
       forward(R"({"inputs": [{"name": "x", "shape": [2]}, {"name": "x", "shape": [2]}]})")},
      {"device", "device: 'gpu' is unknown\n  hint: 'auto', 'cpu', 'webgpu'",
       forward(R"({"device": "gpu"})")},
      {"device text", "options: 'device' must be a text: 0", forward(R"({"device": 0})")},
      {"seed", "options: 'seed' must be an integer that is not negative: -1",
       forward(R"({"seed": -1})")},
      {"threads", "options: 'threads' must be an integer: 1.5", forward(R"({"threads": 1.5})")},
      {"pass", "compile: there is no pass 'speed' to leave out\n  hint: " + passes(),
       forward(R"({"without": ["speed"]})")},
      {"filter", "options: 'freeze' must be a list: \"w\"", training(R"({"freeze": "w"})")},
      {"filter name", "compile: freeze names no parameter: 'x'\n  hint: 'w'?",
       training(R"({"freeze": ["x"]})")},
      {"bool", "options: 'training' must be true or false: 1",
       [&] {
         const Program made = program();
         return tg_begin_attached(made.get(), R"({"training": 1})") == nullptr;
       }},
      {"optimizer", "optimizer must be an object: \"adam\"", training(R"({"optimizer": "adam"})")},
      {"optimizer kind", "optimizer: unknown kind 'lion'\n  hint: sgd, adam, adamw, none",
       training(R"({"optimizer": {"kind": "lion"}})")},
      {"optimizer field", "optimizer: unknown name 'b1'\n  hint: 'lr'?",
       training(R"({"optimizer": {"kind": "adam", "b1": 0.9}})")},
      {"lr", "lr must be an object: \"fast\"",
       training(R"({"optimizer": {"kind": "adam", "lr": "fast"}})")},
      {"lr kind", "lr: unknown kind 'step'\n  hint: linear, cosine, warmup, staircase, multi_step",
       training(R"({"optimizer": {"kind": "adam", "lr": {"kind": "step"}}})")},
      {"lr field", "lr: 'steps' is missing",
       training(
           R"({"optimizer": {"kind": "adam", "lr": {"kind": "linear", "peak": 1, "last": 0}}})")},
      {"non_finite", "unknown non_finite 'stop'\n  hint: fail, skip, ignore",
       training(R"({"non_finite": "stop"})")},
      {"accumulate", "compile: accumulate must be at least 1: 0", training(R"({"accumulate": 0})")},
  });
}

TEST_F(CErrors, Graphs) {
  const int y = tg_op(graph.get(), "neg", R"({"x": {"tensor": 0}})", "train.js", 1);
  expect_errors({
      {"output", "there is no tensor 3: there are 3",
       [&] { return tg_output(graph.get(), "y", 3) == 0; }},
      {"type", "there is no tensor -1: there are 3",
       [&] { return tg_tensor_type(graph.get(), -1) == nullptr; }},
  });
  EXPECT_STREQ(tg_tensor_type(graph.get(), y), "f32[2,3]");
  tg_graph* const used = graph.get();
  expect_errors({
      {"no output", "compile: the function returned no output",
       [&] { return tg_compile(graph.release()) == nullptr; }},
      {"after that", "graph: this handle was freed, or it is no handle of this kind",
       [&] { return tg_compile(used) == nullptr; }},
      {"an op after that", "graph: this handle was freed, or it is no handle of this kind",
       [&] { return tg_op(used, "neg", R"({"x": {"tensor": 0}})", "train.js", 1) == -1; }},
  });
  tg_graph_free(used);  // ignored
  graph.reset(tg_begin_training(model.get(), kOptions));
  ASSERT_TRUE(graph) << tg_error();
  const int loss = tg_op(graph.get(), "matmul", R"({"a": {"tensor": 0}, "b": {"param": "w"}})",
                         "src/train.js", 12);
  ASSERT_EQ(tg_output(graph.get(), "loss", loss), 1);
  expect_errors({{"the loss",
                  "compile: the loss must be one f32 scalar: it is f32[2,2]\n"
                  "  hint: mean(...) or sum(...) of it?   at train.js:12",
                  [&] { return tg_compile(graph.release()) == nullptr; }}});
  graph.reset(tg_begin_training(model.get(), kOptions));
  ASSERT_EQ(tg_output(graph.get(), "y", 0), 1);
  expect_errors({{"no loss",
                  "compile: none of the outputs is the loss: they are y\n  hint: name one of them "
                  "\"loss\"",
                  [&] { return tg_compile(graph.release()) == nullptr; }}});
}

TEST_F(CErrors, Programs) {
  const Program forward_program = program();
  tg_program* const made = forward_program.get();
  const Arrays good =
      arrays({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {"ids", ints({4}, {0, 0, 0, 0})}});
  const Arrays some = arrays({{"ids", ints({4}, {0, 0, 0, 0})}});
  const Arrays wrong =
      arrays({{"ids", ints({4}, {1, 1, 1, 1})}, {"x", floats({3, 2}, {0, 0, 0, 0, 0, 0})}});
  const Arrays unknown = arrays({{"z", floats({}, {0})}});
  expect_errors({
      {"a missing feed",
       "input: 'x' is missing: it is f32[2,3]\n  hint: feed it, or set_input() once",
       [&] { return tg_run(made, some.get(), 0) == nullptr; }},
      {"a wrong feed", "input: 'x' is f32[2,3], an array of shape [3,2] was fed",
       [&] { return tg_run(made, wrong.get(), 0) == nullptr; }},
      {"an unknown feed", "input: there is no input 'z': the inputs are x, ids\n  hint: 'x'?",
       [&] { return tg_run(made, unknown.get(), 0) == nullptr; }},
      {"no captures",
       "captures: this program has none\n  hint: capture(\"name\", tensor) in the traced function "
       "names one",
       [&] { return tg_run(made, good.get(), 1) == nullptr; }},
      {"a wrong set_inputs", "input: 'x' is f32[2,3], an array of shape [3,2] was fed",
       [&] { return tg_set_inputs(made, wrong.get()) == 0; }},
      {"part", "download: unknown part 'weights'\n  hint: parameters, gradients, optimizer",
       [&] { return tg_download(made, "weights") == nullptr; }},
      {"gradients", "download: this is not a training program",
       [&] { return tg_download(made, "gradients") == nullptr; }},
      {"steps", "steps: this is not a training program", [&] { return tg_steps(made) == -1; }},
      {"updates", "updates: this is not a training program",
       [&] { return tg_updates(made) == -1; }},
      {"reset", "reset: this is not a training program", [&] { return tg_reset(made, "{}") == 0; }},
      {"restart", "restart: this is not a training program",
       [&] { return tg_restart(made, good.get()) == 0; }},
      {"restore", "restore: this is not a training program",
       [&] { return tg_restore(made, good.get(), good.get()) == nullptr; }},
      {"lr", "set_lr: this is not a training program", [&] { return tg_set_lr(made, "1") == 0; }},
      {"upload", "upload: there is no parameter 'z'\n  hint: 'w'?",
       [&] { return tg_upload(made, unknown.get(), 1) == 0; }},
      {"stage",
       "show: there is no stage 'fused': the stages are trace, recognise, differentiate, update, "
       "simplify, materialise, fuse, plan, lower, emit, load",
       [&] { return tg_program_show(made, "fused") == nullptr; }},
  });
  expect_errors({
      {"a profile without a step", "profile: at least one step: 0",
       [&] { return tg_profile(made, good.get(), 0) == nullptr; }},
      {"a profile without an input",
       "input: 'x' is missing: it is f32[2,3]\n  hint: feed it, or set_input() once",
       [&] { return tg_profile(made, nullptr, 1) == nullptr; }},
  });
  // set_inputs set neither of the two.
  EXPECT_EQ(tg_run(made, some.get(), 0), nullptr);
  const Waiting ready = done(tg_run(made, good.get(), 0));
  expect_errors({
      {"captures", "future: its value has no captures",
       [&] { return tg_future_captures(ready.get()) == nullptr; }},
      {"program", "future: its value is no program, or was taken",
       [&] { return tg_future_program(ready.get()) == nullptr; }},
      {"checkpoint", "future: its value is no checkpoint, or was taken",
       [&] { return tg_future_checkpoint(ready.get()) == nullptr; }},
  });
  graph.reset(tg_begin_forward(model.get(), kOptions));
  ASSERT_EQ(tg_output(graph.get(), "y", 0), 1);
  const Waiting compiling(tg_compile(graph.release()));
  if (tg_ready(compiling.get()) == 0)
    expect_errors({{"early", "future: the value is not there yet\n  hint: tg_ready()",
                    [&] { return tg_future_program(compiling.get()) == nullptr; }}});
  while (tg_ready(compiling.get()) == 0) tg_poll();
  expect_errors({{"arrays", "future: its value has no arrays",
                  [&] { return tg_future_arrays(compiling.get()) == nullptr; }}});
}

TEST_F(CErrors, TrainingPrograms) {
  graph.reset(tg_begin_training(
      model.get(), R"({"inputs": [{"name": "x", "shape": [2, 3]}], "device": "cpu"})"));
  const int y = tg_op(graph.get(), "matmul", R"({"a": {"tensor": 0}, "b": {"param": "w"}})", "", 0);
  const int loss =
      tg_op(graph.get(), "mean", fmt::format(R"({{"x": {{"tensor": {}}}}})", y).c_str(), "", 0);
  ASSERT_EQ(tg_output(graph.get(), "loss", loss), 1) << tg_error();
  const Program made = compiled(std::move(graph));
  const NamedArrays before = download(made);
  expect_errors({
      {"reset", "reset: 'seed' draws weights, 'optimizer' keeps them",
       [&] { return tg_reset(made.get(), R"({"seed": 1, "optimizer": true})") == 0; }},
      {"reset name", "reset: unknown name 'weights'\n  hint: one of seed, optimizer",
       [&] { return tg_reset(made.get(), R"({"weights": true})") == 0; }},
      {"lr text", "lr: not JSON: line 1, column 1: expected a value, found the end",
       [&] { return tg_set_lr(made.get(), "") == 0; }},
      {"lr", "lr must be an object: [1]", [&] { return tg_set_lr(made.get(), "[1]") == 0; }},
      {"restart",
       "upload: missing: l1.W, l1.b\n  hint: Upload::partial takes some of the parameters",
       [&] {
         return tg_restart(made.get(), arrays({{"w", before.at("w")}}).get()) == 0;
       }},
      {"restore", "upload_optimizer_state: missing: adam:updates",
       [&] {
         const Arrays none(tg_arrays_new());
         return tg_restore(made.get(), arrays(before).get(), none.get()) == nullptr;
       }},
  });
  expect_same(download(made), before);
}

TEST(CArraysErrors, Texts) {
  const Arrays own(tg_arrays_new());
  const auto add = [&](const char* name, const char* type) {
    return [&own, name, type] { return tg_arrays_add(own.get(), name, type) == nullptr; };
  };
  ASSERT_NE(tg_arrays_add(own.get(), "x", "f32[2]"), nullptr);
  const char bytes[] = "no file";
  expect_errors({
      {"taken", "arrays: the name 'x' is taken", add("x", "f32[]")},
      {"type", "'f32' is not a type\n  hint: f32[2,3], i32[]", add("y", "f32")},
      {"empty type", "'' is not a type\n  hint: f32[2,3], i32[]", add("y", "")},
      {"comma", "'f32[2,]' is not a type\n  hint: f32[2,3], i32[]", add("y", "f32[2,]")},
      {"text", "'f32[n]' is not a type\n  hint: f32[2,3], i32[]", add("y", "f32[n]")},
      {"dtype", "unknown dtype 'f16'\n  hint: f32, i32, bool", add("y", "f16[2]")},
      {"many axes",
       "shape: at most 8 dimensions are supported: [1,1,1,1,1,1,1,1] already has that many",
       add("y", "f32[1,1,1,1,1,1,1,1,1]")},
      {"number", "arrays: there is no number 1: there are 1",
       [&] { return tg_arrays_name(own.get(), 1) == nullptr; }},
      {"negative number", "arrays: there is no number -1: there are 1",
       [&] { return tg_arrays_data(own.get(), -1) == nullptr; }},
      {"find", "arrays: there is no 'y'\n  hint: 'x'?",
       [&] { return tg_arrays_find(own.get(), "y") == -1; }},
      {"no bytes", "safetensors: there are no bytes",
       [&] { return tg_arrays_load(nullptr, 0, "a") == nullptr; }},
      {"metadata", "metadata: 'epoch' must be a text",
       [&] { return tg_arrays_save(own.get(), R"({"epoch": 3})") == nullptr; }},
      {"no checkpoint bytes", "checkpoint: there are no bytes",
       [&] { return tg_checkpoint_load(nullptr, 0, "a") == nullptr; }},
      {"checkpoint info", "checkpoint: 'step' must be an integer: \"one\"",
       [&] { return tg_checkpoint_new(own.get(), nullptr, R"({"step": "one"})") == nullptr; }},
      {"checkpoint name", "checkpoint: unknown name 'steps'\n  hint: 'step'?",
       [&] { return tg_checkpoint_new(own.get(), nullptr, R"({"steps": 1})") == nullptr; }},
  });
  EXPECT_EQ(tg_arrays_load(bytes, sizeof bytes, "weights.safetensors"), nullptr);
  EXPECT_TRUE(std::string(tg_error()).starts_with("weights.safetensors: ")) << tg_error();
  EXPECT_EQ(tg_checkpoint_load(bytes, sizeof bytes, "run.safetensors"), nullptr);
  EXPECT_TRUE(std::string(tg_error()).starts_with("run.safetensors: ")) << tg_error();
  EXPECT_EQ(tg_arrays_count(own.get()), 1);
}

// More than any machine has: an error of this kind instead of an abort.
TEST(CMemory, ExhaustedMemoryIsAnError) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer ends the program";
  const Arrays own(tg_arrays_new());
  EXPECT_EQ(tg_arrays_add(own.get(), "x", "f32[1000000,1000000,1000000]"), nullptr);
  EXPECT_STREQ(tg_error_kind(), "out_of_memory");
  EXPECT_STREQ(tg_error(),
               "memory is exhausted\n  hint: free programs and arrays, or use smaller ones");
  EXPECT_EQ(tg_arrays_count(own.get()), 0);
  EXPECT_NE(tg_arrays_add(own.get(), "x", "f32[4]"), nullptr);
}

}  // namespace
}  // namespace tensorgrad::c_tests
