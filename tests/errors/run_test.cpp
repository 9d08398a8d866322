// The text of every error about inputs and results. A bad call changes nothing: neither parameters
// nor optimizer state nor the step count.
#include <cmath>
#include <limits>

#include "tests/errors/expect_error.h"
#include "tests/errors/snapshot.h"

namespace tensorgrad::errors {
namespace {

struct Tiny {
  Linear l1{2, 3}, l2{3, 1};
  Param tied = l1.W.shared();
};

const std::vector<InputSpec> kInputs = {
    {"x", {4, 2}}, {"ids", {4}, i32}, {"mask", {4}, boolean}, {"scale", {}}};

Outputs loss_of(const Tiny& m, const Inputs& in) {
  const Tensor h = capture("h", m.l1(in["x"]) * cast(unsqueeze(in["mask"], 1), f32));
  const Tensor y = m.l2(tanh(h));
  return {{"loss", mean(square(y)) * in["scale"]}, {"y", y}, {"ids", in["ids"] + 1}};
}

Outputs only_y(const Tiny& m, const Inputs& in) { return m.l2(m.l1(in["x"])); }

using Ints = std::vector<std::int32_t>;

const std::vector<float> kX = {1, -2, 3, -4, 5, -6, 7, -8};
const Ints kIds = {0, 1, 2, 3}, kMask = {1, 0, 1, 1};

Feed good() { return {{"x", kX}, {"ids", kIds}, {"mask", kMask}, {"scale", 1.0f}}; }

// The good feed with one value replaced or added.
Feed with(const std::string& name, FeedValue value) {
  Feed feed;
  const Feed usual = good();
  bool known = false;
  for (const auto& [own, numbers] : usual.items()) {
    feed.set(own, own == name ? value : numbers);
    known = known || own == name;
  }
  if (!known) feed.set(name, value);
  return feed;
}

Training<Tiny> trained(int steps = 3) {
  auto train = compile(Tiny{}, {.inputs = kInputs, .clip_grad_norm = 1, .threads = 1}, loss_of);
  for (int i = 0; i < steps; ++i) train.step(good());
  return train;
}

// Like expect_errors. Afterwards everything is as before, and the next step is the one that would
// have come.
void expect_harmless(Training<Tiny>& train, const std::vector<Row>& rows,
                     const char* file = __builtin_FILE()) {
  auto twin = trained(static_cast<int>(train.steps()));
  const Snapshot before = snapshot(train);
  for (const Row& row : rows) {
    expect_errors({row}, file);
    EXPECT_EQ(snapshot(train), before) << row.name;
  }
  EXPECT_EQ(train.step(good()).loss(), twin.step(good()).loss());
  EXPECT_EQ(snapshot(train), snapshot(twin));
}

TEST(RunErrors, Feed) {
  auto train = trained();
  const std::vector<float> seven(7);
  const Ints eight(8);
  const auto feeding = [&](const Feed& feed) { return [&train, feed] { train.step(feed); }; };
  const Array twos({4}, Ints{0, 1, 2, 1}), turned({2, 4}, std::vector<float>(8));
  Feed twice = good();
  twice.set("x", kX);
  expect_harmless(
      train,
      {
          {"unknown",
           "input: there is no input 'iids': the inputs are x, ids, mask, scale\n  hint: 'ids'?", 0,
           feeding(with("iids", kIds))},
          {"unknown and far",
           "input: there is no input 'attention_mask': the inputs are x, ids, mask, scale", 0,
           feeding(with("attention_mask", kIds))},
          {"missing", "input: 'ids' is missing: it is i32[4]\n  hint: feed it, or set_input() once",
           0, feeding({{"x", kX}, {"mask", kMask}, {"scale", 1.0f}})},
          {"nothing",
           "input: 'x' is missing: it is f32[4,2]\n"
           "  hint: feed it, or set_input() once",
           0, feeding({})},
          {"size", "input: 'x' is f32[4,2] and needs 8 values, 7 were fed", 0,
           feeding(with("x", seven))},
          {"a number for many", "input: 'x' is f32[4,2] and needs 8 values, 1 were fed", 0,
           feeding(with("x", 1.0f))},
          {"many for a number", "input: 'scale' is f32[] and needs 1 values, 8 were fed", 0,
           feeding(with("scale", kX))},
          {"integers", "input: 'x' is f32[4,2], i32 values were fed", 0, feeding(with("x", eight))},
          {"an integer", "input: 'scale' is f32[], i32 values were fed", 0,
           feeding(with("scale", 1))},
          {"reals for integers", "input: 'ids' is i32[4], f32 values were fed", 0,
           feeding(with("ids", kX))},
          {"reals for bools", "input: 'mask' is bool[4], f32 values were fed", 0,
           feeding(with("mask", kX))},
          {"not a bool", "input: 'mask' is bool and must be 0 or 1: 2 was fed", 0,
           feeding(with("mask", twos))},
          {"shape", "input: 'x' is f32[4,2], an array of shape [2,4] was fed", 0,
           feeding(with("x", turned))},
          {"twice", "input: 'x' is fed twice", 0, feeding(twice)},
          {"held, unknown",
           "input: there is no input 'X': the inputs are x, ids, mask, scale\n  hint: 'x'?", 0,
           [&] { train.set_input("X", kX); }},
          {"held, size", "input: 'x' is f32[4,2] and needs 8 values, 7 were fed", 0,
           [&] { train.set_input("x", seven); }},
          {"held, type", "input: 'ids' is i32[4], f32 values were fed", 0,
           [&] { train.set_input("ids", kX); }},
      });
}

TEST(RunErrors, FeedOfAForwardPass) {
  auto train = trained();
  auto infer = train.attach({.inputs = {{"x", {1, 2}}}}, only_y);
  expect_harmless(train, {
                             {"size", "input: 'x' is f32[1,2] and needs 2 values, 8 were fed", 0,
                              [&] {
                                infer.run({{"x", kX}});
                              }},
                             {"an input of the other graph",
                              "input: there is no input 'ids': the inputs are x", 0,
                              [&] {
                                infer.run({{"x", std::vector<float>(2)}, {"ids", kIds}});
                              }},
                             {"missing",
                              "input: 'x' is missing: it is f32[1,2]\n"
                              "  hint: feed it, or set_input() once",
                              0, [&] { infer.run(); }},
                         });
}

TEST(RunErrors, Upload) {
  auto train = trained();
  const Array w({2, 3}, std::vector<float>(6, 9)), b({3}, std::vector<float>(3, 9));
  NamedArrays all = train.download();
  for (auto& [name, array] : all)
    for (float& value : array.floats()) value = 9;
  const auto changed = [&](const std::string& name, const Array& array) {
    NamedArrays values = all;
    values[name] = array;
    return values;
  };
  NamedArrays without = all;
  without.erase("l1.b"), without.erase("l2.W");
  const auto uploading = [&](const NamedArrays& values, Upload mode = Upload::strict) {
    return [&train, values, mode] { train.upload(values, mode); };
  };
  expect_harmless(
      train,
      {
          {"unknown", "upload: there is no parameter 'l1.w'\n  hint: 'l1.W'?", 0,
           uploading(changed("l1.w", w))},
          {"unknown and far",
           "upload: there is no parameter 'encoder.weight'\n  hint: one of l1.W, l1.b, l2.W, l2.b",
           0, uploading(changed("encoder.weight", w))},
          {"unknown, partial", "upload: there is no parameter 'l1.w'\n  hint: 'l1.W'?", 0,
           uploading({{"l1.W", w}, {"l1.w", w}}, Upload::partial)},
          {"tied",
           "upload: there is no parameter 'tied'\n"
           "  hint: it is tied to 'l1.W'",
           0, uploading(changed("tied", w))},
          {"missing",
           "upload: missing: l1.b, l2.W\n  hint: Upload::partial takes some of the "
           "parameters",
           0, uploading(without)},
          {"nothing",
           "upload: missing: l1.W, l1.b, l2.W, l2.b\n"
           "  hint: Upload::partial takes some of the parameters",
           0, uploading({})},
          {"shape", "upload: 'l2.b' is f32[1], the array is f32[3]", 0,
           uploading(changed("l2.b", b))},
          {"shape of the same size", "upload: 'l1.W' is f32[2,3], the array is f32[3,2]", 0,
           uploading(changed("l1.W", Array({3, 2}, std::vector<float>(6))))},
          {"shape, partial", "upload: 'l2.b' is f32[1], the array is f32[3]", 0,
           uploading({{"l1.W", w}, {"l2.b", b}}, Upload::partial)},
          {"type", "upload: 'l1.b' is f32[3], the array is i32[3]", 0,
           uploading(changed("l1.b", Array({3}, Ints{1, 2, 3})))},
          {"empty array", "upload: 'l1.b' is f32[3], the array is f32[]", 0,
           uploading(changed("l1.b", Array()))},
      });
}

TEST(RunErrors, OptimizerState) {
  auto train = trained();
  NamedArrays all = train.optimizer_state();
  for (auto& [name, array] : all)
    if (array.dtype() == f32)
      for (float& value : array.floats()) value = 9;
  const auto changed = [&](const std::string& name, const Array& array) {
    NamedArrays values = all;
    values[name] = array;
    return values;
  };
  NamedArrays without = all;
  without.erase("m:l1.W");
  const auto uploading = [&](const NamedArrays& values) {
    return [&train, values] { train.upload_optimizer_state(values); };
  };
  expect_harmless(
      train,
      {
          {"missing", "upload_optimizer_state: missing: m:l1.W", 0, uploading(without)},
          {"unknown", "upload_optimizer_state: there is no state 'momentum:l1.W'", 0,
           uploading(changed("momentum:l1.W", Array({2, 3}, std::vector<float>(6))))},
          {"shape", "upload_optimizer_state: 'v:l1.b' is f32[3], the array is f32[1]", 0,
           uploading(changed("v:l1.b", Array({1}, std::vector<float>(1))))},
          {"type", "upload_optimizer_state: 'step' is i32[], the array is f32[]", 0,
           uploading(changed("step", Array()))},
          {"negative step", "upload_optimizer_state: 'step' counts steps and is not negative: -1",
           0, uploading(changed("step", Array({}, Ints{-1})))},
          {"start of the schedule",
           "upload_optimizer_state: 'lr_start' counts updates, of which there were at most 3: 4", 0,
           uploading(changed("lr_start", Array({}, Ints{4})))},
      });
}

// Parameters and state together: if either is bad, neither changes.
TEST(RunErrors, Restore) {
  auto train = trained();
  NamedArrays parameters = train.download(), state = train.optimizer_state();
  for (NamedArrays* values : {&parameters, &state})
    for (auto& [name, array] : *values)
      if (array.dtype() == f32)
        for (float& value : array.floats()) value = 9;
  NamedArrays fewer = parameters, less = state;
  fewer.erase("l1.b"), less.erase("m:l1.W");
  expect_harmless(
      train, {
                 {"bad state", "upload_optimizer_state: missing: m:l1.W", 0,
                  [&] { train.restore(parameters, less); }},
                 {"bad parameters",
                  "upload: missing: l1.b\n  hint: Upload::partial takes some of the parameters", 0,
                  [&] { train.restore(fewer, state); }},
             });
}

TEST(RunErrors, Rates) {
  auto train = trained();
  const double rate = train.lr();
  std::vector<Row> rows;
  for (const auto& [value, text] :
       {std::pair{-0.5, "-0.5"}, std::pair{std::nan(""), "nan"}, std::pair{1e300, "1e+300"}})
    rows.push_back({text,
                    std::string("step: the learning rate of update 4 is ") + text +
                        "\n  hint: rates must be finite and not negative",
                    0, [&train, rate, v = value] {
                      train.set_lr(v);
                      try {
                        train.step(good());
                      } catch (...) {
                        train.set_lr(rate);
                        throw;
                      }
                    }});
  expect_harmless(train, rows);
}

TEST(RunErrors, Profile) {
  auto forward =
      compile_forward(std::vector<Param>{}, {.inputs = {{"x", {1}}}, .threads = 1},
                      [](const std::vector<Param>&, const Inputs& in) { return in["x"] * 2.0f; });
  expect_errors({{"no steps", "profile: at least one step: 0", 0, [&] { forward.profile(0); }}});
}

TEST(RunErrors, Results) {
  auto train = trained();
  auto infer = train.attach({.inputs = {{"x", {4, 2}}}}, only_y);
  auto unclipped = compile(Tiny{}, {.inputs = kInputs, .threads = 1}, loss_of);
  const Result step = train.step(good()), run = infer.run({{"x", kX}}),
               plain = unclipped.step(good());
  const Result captured = train.step(good(), {.captures = true});
  expect_errors({
      {"loss of a run", "loss: this program has no loss\n  hint: output()", 0, [&] { run.loss(); }},
      {"several outputs",
       "output: there are several outputs: ids, loss, y\n"
       "  hint: result[\"ids\"]",
       0, [&] { step.output(); }},
      {"unknown output", "output: there is no output 'z': the outputs are ids, loss, y", 0,
       [&] { step["z"]; }},
      {"output of a run", "output: there is no output 'y': the outputs are out", 0,
       [&] { run["y"]; }},
      {"captures not asked for",
       "captures: they were not requested\n"
       "  hint: step(feed, {.captures = true}) or run(feed, {.captures = true})",
       0, [&] { step.captures(); }},
      {"capture not asked for",
       "captures: they were not requested\n"
       "  hint: step(feed, {.captures = true}) or run(feed, {.captures = true})",
       0, [&] { step.capture("h"); }},
      {"unknown capture", "capture: there is no capture 'g': the captures are h", 0,
       [&] { captured.capture("g"); }},
      {"no captures",
       "captures: this program has none\n"
       "  hint: capture(\"name\", tensor) in the traced function names one",
       0,
       [&] {
         infer.run({{"x", kX}}, {.captures = true});
       }},
      {"norm",
       "grad_norm: only steps that clip gradients compute their norm\n"
       "  hint: .clip_grad_norm",
       0, [&] { plain.grad_norm(); }},
      {"stage",
       "show: there is no stage 'wgsl': the stages are trace, recognise, differentiate, update, "
       "simplify, materialise, fuse, plan, lower, emit, load",
       0, [&] { train.show("wgsl"); }},
      {"stage of a forward pass", "show: a forward program has no stage 'differentiate'", 0,
       [&] { infer.show("differentiate"); }},
      {"update of a forward pass", "show: a forward program has no stage 'update'", 0,
       [&] { infer.show("update"); }},
  });
}

TEST(RunErrors, MovedPrograms) {
  auto train = trained();
  auto infer = train.attach({.inputs = {{"x", {4, 2}}}}, only_y);
  const Training<Tiny> train_now = std::move(train);
  const Forward<Tiny> infer_now = std::move(infer);
  const auto same = [](const Tiny&, const Inputs& in) { return in["x"]; };
  std::vector<Row> rows;
  const auto moved = [&](const char* name, std::function<void()> call) {
    rows.push_back(
        {name,
         std::string(name).substr(0, std::string(name).find(' ')) + ": this program was moved from",
         0, std::move(call)});
  };
  moved("step", [&] { train.step(good()); });
  moved("gradients", [&] { train.gradients(); });
  moved("optimizer_state", [&] { train.optimizer_state(); });
  moved("upload_optimizer_state", [&] { train.upload_optimizer_state({}); });
  moved("restore", [&] { train.restore({}, {}); });
  moved("reset", [&] { train.reset(); });
  moved("reset_optimizer", [&] { train.reset_optimizer(); });
  moved("inputs", [&] { train.inputs(); });
  moved("outputs", [&] { train.outputs(); });
  moved("captures", [&] { train.captures(); });
  moved("set_lr", [&] { train.set_lr(1); });
  moved("lr", [&] { train.lr(); });
  moved("steps", [&] { train.steps(); });
  moved("wait", [&] { train.wait(); });
  moved("attach", [&] { train.attach({}, same); });
  moved("model", [&] { train.model(); });
  moved("set_input", [&] { train.set_input("x", kX); });
  moved("parameters", [&] { train.parameters(); });
  moved("download", [&] { train.download(); });
  moved("upload", [&] { train.upload({}); });
  moved("fingerprint", [&] { train.fingerprint(); });
  moved("counts", [&] { train.counts(); });
  moved("compile_ms", [&] { train.compile_ms(); });
  moved("device", [&] { train.device(); });
  moved("threads", [&] { train.threads(); });
  moved("show", [&] { train.show("trace"); });
  moved("run", [&] { infer.run(); });
  moved("attach of a forward pass", [&] { infer.attach({}, same); });
  moved("model of a forward pass", [&] { infer.model(); });
  moved("counts of a forward pass", [&] { infer.counts(); });
  expect_errors(rows);
  EXPECT_EQ(train_now.steps(), 3);
  EXPECT_EQ(infer_now.parameters().size(), 4u);
}

TEST(RunErrors, TheDeviceThatOnlyShowsShaders) {
  auto train = compile(Tiny{}, {.inputs = kInputs, .device = "wgsl"}, loss_of);
  EXPECT_NE(train.show("emit").find("@compute"), std::string::npos);
  EXPECT_EQ(text_of<DeviceError>([&] { train.step(good()); }),
            "wgsl: this device only shows shaders: it cannot run them");
}

TEST(RunErrors, MovedResults) {
  auto train = trained();
  Result gone = train.step(good());
  const Result kept = std::move(gone);
  std::vector<Row> rows;
  const auto moved = [&](const char* name, const char* op, std::function<void()> call) {
    rows.push_back({name, std::string(op) + ": this result was moved from", 0, std::move(call)});
  };
  moved("loss", "loss", [&] { gone.loss(); });
  moved("output", "output", [&] { gone.output(); });
  moved("[]", "output", [&] { gone["y"]; });
  moved("captures", "captures", [&] { gone.captures(); });
  moved("capture", "captures", [&] { gone.capture("h"); });
  moved("grad_norm", "grad_norm", [&] { gone.grad_norm(); });
  moved("finite", "finite", [&] { gone.finite(); });
  moved("wait", "wait", [&] { gone.wait(); });
  expect_errors(rows);
  EXPECT_TRUE(kept.finite());
}

TEST(RunErrors, Arrays) {
  expect_errors({
      {"size", "Array: the shape [2,3] has 6 elements, 5 were given", 0,
       [] {
         Array({2, 3}, std::vector<float>(5));
       }},
      {"size of integers", "Array: the shape [2] has 2 elements, 3 were given", 0,
       [] {
         Array({2}, Ints{1, 2, 3});
       }},
      {"type", "Array: integers cannot fill an f32 array", 0, [] { Array({1}, Ints{1}, f32); }},
      {"floats", "Array: floats() of an array of i32\n  hint: ints()", 0,
       [] {
         const Array numbers({1}, Ints{1});
         numbers.floats();
       }},
      {"floats to write", "Array: floats() of an array of bool\n  hint: ints()", 0,
       [] { Array({1}, Ints{1}, boolean).floats(); }},
      {"ints", "Array: ints() of an array of f32\n  hint: floats()", 0, [] { Array().ints(); }},
      {"item", "Array: item() of an array of 3 elements: [3]", 0,
       [] {
         Array({3}, Ints{1, 2, 3}).item();
       }},
      {"item of none", "Array: item() of an array of 0 elements: [0]", 0,
       [] { Array({0}, std::vector<float>{}).item(); }},
  });
  EXPECT_EQ(Array().item(), 0);
  EXPECT_EQ(Array().floats().size(), 1u);
}

}  // namespace
}  // namespace tensorgrad::errors
