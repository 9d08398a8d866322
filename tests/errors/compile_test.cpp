// The text of every error of compile(), compile_forward() and attach().
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "codegen/cpu/simd.h"
#include "tests/errors/expect_error.h"
#include "tests/support/sanitizers.h"

namespace tensorgrad::errors {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Mlp {
  Linear l1{2, 3}, l2{3, 1};
};

const std::vector<InputSpec> kInputs = {{"x", {4, 2}}, {"targets", {4}, i32}};

Tensor squares(const Mlp& m, const Inputs& in) { return mean(square(m.l2(m.l1(in["x"])))); }

using M = const Mlp&;
using In = const Inputs&;
using Function = std::function<Outputs(const Mlp& m, const Inputs& in)>;

std::function<void()> compiling(const TrainingOptions& options,
                                const Function& function = squares) {
  return [=] {
    TrainingOptions all = options;
    if (all.inputs.empty()) all.inputs = kInputs;
    all.threads = all.threads == 0 ? 1 : all.threads;
    compile(Mlp{}, all, function);
  };
}

std::function<void()> tracing(const Function& function) { return compiling({}, function); }

// A row's call stands on the line of its __LINE__.
// clang-format off

TEST(CompileErrors, Inputs) {
  const auto with_inputs = [](const std::vector<InputSpec>& inputs) {
    return compiling({.inputs = inputs});
  };
  expect_errors({
      {"unknown",
       "input: there is no input 'tagrets': the inputs are x, targets\n  hint: 'targets'?   at @",
       __LINE__, tracing([](M, In in) { return in["tagrets"]; })},
      {"unknown and far",
       "input: there is no input 'attention_mask': the inputs are x, targets\n  at @",
       __LINE__, tracing([](M, In in) { return in["attention_mask"]; })},
      {"none at all", "input: there is no input 'x': the inputs are none\n  at @",
       __LINE__, [] { compile_forward(Mlp{}, {.threads = 1}, [](M, In in) { return in["x"]; }); }},
      {"no name",
       "inputs: '' is not a name for an input: it must not be empty nor start with '$'", 0,
       with_inputs({{"", {1}}})},
      {"our name",
       "inputs: '$seed' is not a name for an input: it must not be empty nor start with '$'", 0,
       with_inputs({{"$seed", {1}}})},
      {"twice",
       "inputs: the name 'x' is given twice",
       0, with_inputs({{"x", {4, 2}}, {"y", {1}}, {"x", {1}}})},
      {"rank", "shape: at most 8 dimensions are supported: [1,1,1,1,1,1,1,1] already has that many\n  at @",
       __LINE__, [] { const InputSpec spec{"x", {1, 1, 1, 1, 1, 1, 1, 1, 1}}; }},
      {"negative",
       "shape: sizes must not be negative: -4 after []\n  at @",
       __LINE__, [] { const InputSpec spec{"x", {-4, 2}}; }},
      {"no place",
       "shape: position 3 for a new axis is out of range: the shape is [2,2]\n  at @",
       __LINE__, [] { Shape({2, 2}).insert(3, 1); }},
      {"no axis",
       "shape: axis -3 does not exist: the shape is [2,2]\n  at @",
       __LINE__, [] { Shape({2, 2}).erase(-3); }},
      {"too large",
       "shape: more than 2^60 elements: [2,1152921504606846976] with another axis of 1\n  at @",
       __LINE__, [] { Shape shape{2, 1}; shape[1] = std::int64_t{1} << 60; shape.push_back(1); }},
  });
}

std::function<void()> with_variable(const char* name, const char* value) {
  return [=] {
    setenv(name, value, 1);
    struct Unset {
      const char* name;
      ~Unset() { unsetenv(name); }
    } unset{name};
    compile(Mlp{}, {.inputs = kInputs}, squares);
  };
}

TEST(CompileErrors, PassesAndThreads) {
  const std::string known = "attention, fold, algebra, join, views, cse, products, dce, fuse, inline, merge, "
                            "side_by_side, ride, overlap, in_place, reuse";
  expect_errors({
      {"no such pass", "compile: there is no pass 'magic' to leave out\n  hint: " + known, 0,
       compiling({.without = {"fuse", "magic"}}, squares)},
      {"no such pass in the environment", "compile: there is no pass 'fusion' to leave out\n  hint: " + known, 0,
       with_variable("TENSORGRAD_WITHOUT", "cse,fusion")},
      {"threads", "TENSORGRAD_THREADS: 'two' is not a number between 1 and 1024", 0,
       with_variable("TENSORGRAD_THREADS", "two")},
      {"no threads", "TENSORGRAD_THREADS: '0' is not a number between 1 and 1024", 0,
       with_variable("TENSORGRAD_THREADS", "0")},
      {"device in the environment", "TENSORGRAD_DEVICE: 'gpu' is unknown\n  hint: 'auto', 'cpu', 'webgpu'", 0,
       with_variable("TENSORGRAD_DEVICE", "gpu")},
      {"tuning, on a CPU too", "TENSORGRAD_TUNE: 'nonsense' is neither 'on' nor 'off'", 0,
       with_variable("TENSORGRAD_TUNE", "nonsense")},
  });
}

TEST(CompileErrors, VectorInstructions) {
  expect_errors({
      {"vector instructions",
       fmt::format("TENSORGRAD_SIMD: 'AVX9' is not available\n  hint: this machine and build have {}",
                   fmt::join(cpu::simd_targets(), ", ")),
       0, with_variable("TENSORGRAD_SIMD", "AVX9")},
  });
}

TEST(CompileErrors, Outputs) {
  using Named = std::vector<std::pair<std::string, Tensor>>;
  Tensor kept;
  expect_errors({
      {"nothing", "compile: the function returned no output", 0,
       tracing([](M, In) { return Outputs(Named{}); })},
      {"our name", "compile: the output's name '$x' starts with '$'", 0,
       tracing([](M, In in) { return Outputs{{"$x", in["x"]}}; })},
      {"empty tensor", "compile: the output 'loss' is not a tensor of this trace", 0,
       tracing([](M, In) { return Tensor{}; })},
      {"tensor of another trace", "compile: the output 'h' is not a tensor of this trace", 0,
       [&] {
         compiling({}, [&](M m, In in) { return kept = squares(m, in); })();
         compiling({}, [&](M m, In in) {
           return Outputs{{"loss", squares(m, in)}, {"h", kept}};
         })();
       }},
      {"two of a name", "compile: two outputs are named 'h'", 0,
       tracing([](M, In in) { return Outputs{{"h", in["x"]}, {"h", in["x"]}}; })},
      {"no loss among several",
       "compile: none of the outputs is the loss: they are a, b\n"
       "  hint: name one of them \"loss\"", 0,
       tracing([](M m, In in) { return Outputs{{"a", squares(m, in)}, {"b", in["x"]}}; })},
  });
}

TEST(CompileErrors, Loss) {
  expect_errors({
      {"not a number",
       "compile: the loss must be one f32 scalar: it is f32[4,1]\n"
       "  hint: mean(...) or sum(...) of it?   at @",
       __LINE__, tracing([](M m, In in) { return square(m.l2(m.l1(in["x"]))); })},
      {"size 1 is not enough",
       "compile: the loss must be one f32 scalar: it is f32[1]\n"
       "  hint: mean(...) or sum(...) of it?   at @",
       __LINE__, tracing([](M m, In in) { return sum(m.l2(m.l1(in["x"])), 0); })},
      {"of a layer",
       "compile: the loss must be one f32 scalar: it is f32[4,3]\n"
       "  hint: mean(...) or sum(...) of it?   in l1, at @",
       __LINE__, tracing([](M m, In in) { return m.l1(in["x"]); })},
      {"not real", "compile: the loss must be one f32 scalar: it is i32[]\n  at @",
       __LINE__, tracing([](M, In in) { return sum(in["targets"]); })},
      {"an input",
       "compile: the loss must be one f32 scalar: it is f32[4,2]\n"
       "  hint: mean(...) or sum(...) of it?", 0,
       tracing([](M, In in) { return in["x"]; })},
  });
}

TEST(CompileErrors, LossThatDependsOnNothing) {
  const std::string text =
      "compile: the loss does not depend on any trained parameter\n"
      "  hint: is there a stop_gradient, an integer op or a frozen parameter in between?   at @";
  expect_errors({
      {"only inputs", text,
       __LINE__, tracing([](M, In in) { return mean(in["x"]); })},
      {"stopped", text,
       __LINE__, tracing([](M m, In in) { return mean(stop_gradient(m.l1(in["x"]))); })},
      {"compared", text,
       __LINE__, tracing([](M m, In in) { return mean(cast(m.l1(in["x"]) > 0, f32)); })},
      {"frozen", text,
       __LINE__, compiling({.freeze = {"l1.*"}}, [](M m, In in) { return mean(m.l1(in["x"])); })},
  });
  // One path is enough, and other parameters need not be used.
  compiling({}, [](M m, In in) {
    const Tensor h = m.l1(in["x"]);
    return mean(stop_gradient(h) * h);
  })();
}

TEST(CompileErrors, Options) {
  expect_errors({
      {"accumulate", "compile: accumulate must be at least 1: 0", 0, compiling({.accumulate = 0})},
      {"clip",
       "compile: clip_grad_norm must not be negative: -1", 0, compiling({.clip_grad_norm = -1})},
      {"clip NaN",
       "compile: clip_grad_norm must not be negative: nan",
       0, compiling({.clip_grad_norm = kNan})},
      {"freeze",
       "compile: freeze names no parameter: 'l1.w'\n  hint: 'l1.W'?",
       0, compiling({.freeze = {"l1.W", "l1.w"}})},
      {"freeze, far",
       "compile: freeze names no parameter: 'encoder.*'\n  hint: one of l1.W, l1.b, l2.W, l2.b",
       0, compiling({.freeze = {"encoder.*"}})},
      {"normalize_grads", "compile: normalize_grads names no parameter: 'l3.W'\n  hint: 'l1.W'?", 0,
       compiling({.normalize_grads = {"l3.W"}})},
      {"train_only", "compile: train_only names no parameter: 'l2.bia'\n  hint: 'l2.b'?", 0,
       compiling({.train_only = NameFilter{"l2.bia"}})},
      {"decay",
       "compile: decay names no parameter: 'l?.g'\n  hint: 'l1.W'?",
       0, compiling({.decay = NameFilter{"l?.g"}})},
      {"all frozen", "compile: all parameters are frozen", 0, compiling({.freeze = {"*"}})},
      {"none to train",
       "compile: all parameters are frozen",
       0, compiling({.train_only = NameFilter{}})},
      {"device",
       "device: 'cuda' is unknown\n  hint: 'auto', 'cpu', 'webgpu'", 0, compiling({.device = "cuda"})},
      {"threads",
       "threads: -1 is not between 0 (one per core) and 1024", 0, compiling({.threads = -1})},
      {"many threads",
       "threads: 1025 is not between 0 (one per core) and 1024", 0, compiling({.threads = 1025})},
      {"device of a forward pass", "device: '' is unknown\n  hint: 'auto', 'cpu', 'webgpu'", 0,
       [] { compile_forward(Mlp{}, {.device = ""}, [](M m, In) { return neg(m.l1.W); }); }},
  });
}

TEST(CompileErrors, Optimizers) {
  expect_errors({
      {"momentum",
       "Sgd: momentum must not be negative: -0.5",
       0, compiling({.optimizer = Sgd{.momentum = -0.5f}})},
      {"sgd decay",
       "Sgd: weight_decay must not be negative: nan",
       0, compiling({.optimizer = Sgd{.weight_decay = kNan}})},
      {"nesterov",
       "Sgd: nesterov needs a momentum\n  hint: .momentum = 0.9f",
       0, compiling({.optimizer = Sgd{.nesterov = true}})},
      {"beta1",
       "Adam: beta1 must be at least 0 and below 1: 1",
       0, compiling({.optimizer = Adam{.beta1 = 1}})},
      {"beta2",
       "AdamW: beta2 must be at least 0 and below 1: -0.1",
       0, compiling({.optimizer = AdamW{.beta2 = -0.1f}})},
      {"eps", "Adam: eps must not be negative: -1", 0, compiling({.optimizer = Adam{.eps = -1}})},
      {"adamw decay",
       "AdamW: weight_decay must not be negative: -1",
       0, compiling({.optimizer = AdamW{.weight_decay = -1}})},
      {"linear", "linear: steps must be at least 1: 0", 0, [] { linear(1, 0, 0); }},
      {"cosine", "cosine: steps must be at least 1: -5", 0, [] { cosine(1, 0, -5); }},
      {"warmup", "warmup: steps must be at least 1: 0", 0, [] { warmup(0, 1.0); }},
      {"staircase", "staircase: every must be at least 1: 0", 0, [] { staircase(1, 0.5, 0); }},
  });
}

struct Literal {
  Param w{{2, 2}, init::literal({1, 2, 3})};
};
struct NoParameters {
  float rate = 1;
};

TEST(CompileErrors, Parameters) {
  expect_errors({
      {"literal", "init: w is [2,2] and needs 4 numbers, the literal has 3", 0,
       [] {
         compile_forward(Literal{}, {.threads = 1},
                         [](const Literal& m, const Inputs&) { return neg(m.w); });
       }},
      {"no parameters",
       "compile: the model has no parameters to train\n  hint: compile_forward?", 0,
       [] {
         compile(NoParameters{}, {.inputs = kInputs, .threads = 1},
                 [](const NoParameters& m, const Inputs& in) { return mean(in["x"]) * m.rate; });
       }},
      {"of another model",
       "matmul (in Linear): this parameter (l1.W) is not part of the model being compiled\n"
       "  hint: use the parameters of the model that the function receives   at @",
       __LINE__ + 3, [] {
         auto other = compile(Mlp{}, {.inputs = kInputs, .threads = 1}, squares);
         compile(Mlp{}, {.inputs = kInputs, .threads = 1}, [&](M m, In in) {
           return mean(m.l2(other.model().l1(in["x"])));
         });
       }},
      {"not compiled",
       "matmul (in Linear): this parameter (f32[2,3]) is not part of the model being compiled\n"
       "  hint: use the parameters of the model that the function receives   at @",
       __LINE__ + 2, tracing([](M m, In in) {
         const Linear fresh(2, 3);
         return mean(m.l2(fresh(in["x"])));
       })},
  });
}

TEST(CompileErrors, AttachChecksLikeCompile) {
  const InputSpec x12{"x", {1, 2}}, x13{"x", {1, 3}};
  auto train = compile(Mlp{}, {.inputs = kInputs, .threads = 1}, squares);
  const std::string before = train.fingerprint();
  expect_errors({
      {"input", "input: there is no input 'y': the inputs are x\n  hint: 'x'?   at @",
       __LINE__, [&] { train.attach({.inputs = {x12}}, [](M, In in) { return in["y"]; }); }},
      {"twice", "inputs: the name 'x' is given twice", 0,
       [&] {
         train.attach({.inputs = {x12, x12}}, [](M, In in) { return in["x"]; });
       }},
      {"shape",
       "matmul (in Linear): inner sizes differ: a is x f32[1,3], b is l1.W f32[2,3] (3 against 2)\n"
       "  hint: swap_axes(b, -1, -2)?   in l1, at @",
       __LINE__, [&] { train.attach({.inputs = {x13}}, [](M m, In in) { return m.l1(in["x"]); }); }},
  });
  EXPECT_EQ(train.fingerprint(), before);
  auto infer = train.attach({.inputs = {x12}}, [](M m, In in) { return m.l1(in["x"]); });
  EXPECT_EQ(infer.run({{"x", std::vector<float>{1, 2}}}).output().shape(), (Shape{1, 3}));
}

// The function's own exceptions pass through, and the thread is usable afterwards.
TEST(CompileErrors, ExceptionsOfTheFunctionPassThrough) {
  const auto failing = tracing([](M, In) -> Outputs { throw std::out_of_range("mine"); });
  EXPECT_THROW(failing(), std::out_of_range);
  compiling({})();
}

struct Vast {
  Param w{{std::int64_t{1} << 50}, init::zeros()};
};

TEST(CompileErrors, MoreMemoryThanThereIs) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own new ends the program";
  const auto vast = [] {
    compile_forward(Vast{}, {.threads = 1}, [](const Vast& m, const Inputs&) { return sum(m.w); });
  };
  EXPECT_EQ(text_of<DeviceError>(vast),
            "cpu: out of memory: 4294967296.0 MiB for parameters\n"
            "  largest: 4294967296.0 MiB for w f32[1125899906842624]\n"
            "  hint: a smaller model, or a device with more room");
}

// The tensors that are alive at once, the largest first, with the user's names, and the total that
// the program needs.
TEST(CompileErrors, MoreMemoryThanThereIsForActivations) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own new ends the program";
  constexpr std::int64_t kRows = std::int64_t{1} << 40;
  int line = 0;
  const auto vast = [&] {
    compile_forward(Mlp{}, {.inputs = {{"x", {4, 2}}}, .threads = 1}, [&](const Mlp& m, const Inputs& in) {
      line = __LINE__ + 2;
      const Tensor rows = broadcast_to(reshape(m.l1(in["x"]), {1, 4, 3}), {kRows, 4, 3});
      return sum(cumsum(rows, 1) * cumsum(rows, 2));
    });
  };
  const std::string text = text_of<OutOfMemoryError>(vast);
  const std::string here = "compile_test.cpp:" + std::to_string(line) + "\n";
  EXPECT_EQ(text,
            "cpu: out of memory: 100663296.0 MiB for activations\n"
            "  largest: 50331648.0 MiB for f32[1099511627776,4,3] of cumsum, at " + here +
            "           50331648.0 MiB for f32[1099511627776,4,3] of cumsum, at " + here +
            "  the program needs 100663296.0 MiB: activations 100663296.0 MiB\n"
            "  hint: a smaller batch, or a device with more room");
}

}  // namespace
}  // namespace tensorgrad::errors
