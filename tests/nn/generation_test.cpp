// Language models as sequences: causal, independent rows of a batch, and the same results token by
// token as all at once.
#include <algorithm>
#include <cstdio>

#include "tensorgrad/safetensors.h"
#include "tests/nn/sequence_models.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::nn_tests {
namespace {

constexpr std::int64_t kBatch = 2, kTime = 10, kCapacity = 12;

Forward<AnyModel> whole(const std::string& name, std::int64_t B, std::int64_t T,
                        const std::string& device = "cpu") {
  return compile_forward(make_model(name), {.inputs = {{"tokens", {B, T}, i32}}, .device = device},
                         [](const AnyModel& m, const Inputs& in) { return m(in["tokens"]); });
}

// Runs T tokens at a time, with the state.
Forward<AnyModel> stepping(Forward<AnyModel>& program, std::int64_t B, std::int64_t T,
                           std::int64_t capacity = kCapacity) {
  return program.attach(
      {.inputs = with_state(program.model().state(B, capacity), {{"tokens", {B, T}, i32}})},
      [](const AnyModel& m, const Inputs& in) -> Outputs { return m.step(in["tokens"], in); });
}

// Columns first .. first + count - 1 of ids [B, T].
Ints columns(const Ints& ids, std::int64_t B, std::int64_t first, std::int64_t count) {
  const auto T = static_cast<std::int64_t>(ids.size()) / B;
  Ints out;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = first; t < first + count; ++t)
      out.push_back(ids[static_cast<std::size_t>(b * T + t)]);
  return out;
}

double largest(std::span<const float> v) {
  double out = 0;
  for (const float x : v) out = std::max(out, std::abs(static_cast<double>(x)));
  return out;
}

// Compares the logits [B, T, V] from position `first` on with those of a piece [B, count, V].
void expect_part(const Array& all, const Array& piece, std::int64_t first, double tolerance) {
  const std::int64_t B = all.shape()[0], T = all.shape()[1], V = all.shape()[2],
                     count = piece.shape()[1];
  ASSERT_EQ(piece.shape(), (Shape{B, count, V}));
  const double allowed = tolerance * largest(all.floats());
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t v = 0; v < V; ++v)
        ASSERT_NEAR(piece.floats()[static_cast<std::size_t>((b * count + t) * V + v)],
                    all.floats()[static_cast<std::size_t>((b * T + first + t) * V + v)], allowed)
            << "row " << b << ", position " << first + t << ", token " << v;
}

// Runs pieces of `T` tokens in sequence, and compares with all at once on the CPU.
void expect_steps_agree(const std::string& name, std::int64_t T, const std::string& device,
                        double tolerance) {
  auto all = whole(name, kBatch, kTime);
  const Weights weights = shuffle(all);
  const Ints ids = tokens(kBatch * kTime, kVocab);
  const Array logits = all.run({{"tokens", ids}}).output();
  auto there = whole(name, kBatch, kTime, device);
  there.upload(weights.arrays);
  expect_part(logits, there.run({{"tokens", ids}}).output(), 0, tolerance);
  auto next = stepping(there, kBatch, T);
  const StateSpec state = all.model().state(kBatch, kCapacity);
  NamedArrays memory = zero_state(state);
  for (std::int64_t t = 0; t < kTime; t += T) {
    const Ints now = columns(ids, kBatch, t, T);
    const Result result = next.run(feed_state(memory, {{"tokens", now}}));
    expect_part(logits, result["logits"], t, tolerance);
    memory = state_after(result, state);
  }
}

class Sequences : public testing::TestWithParam<std::string> {};

TEST_P(Sequences, TokenByTokenIsTheSameAsAllAtOnce) {
  expect_steps_agree(GetParam(), 1, "cpu", 1e-5);
}
TEST_P(Sequences, PiecesAreTheSameAsAllAtOnce) { expect_steps_agree(GetParam(), 5, "cpu", 1e-5); }

// Changing a token leaves the logits before it as they were, bit for bit.
TEST_P(Sequences, AreCausal) {
  auto run = whole(GetParam(), kBatch, kTime);
  shuffle(run);
  const Ints ids = tokens(kBatch * kTime, kVocab);
  const Array before = run.run({{"tokens", ids}}).output();
  for (const std::size_t changed : {std::size_t{kTime - 1}, std::size_t{4}, std::size_t{0}}) {
    Ints other = ids;
    int& id = other[kTime + changed];  // of the second row
    id = (id + 1) % kVocab;
    const Array after = run.run({{"tokens", other}}).output();
    const std::size_t same = (kTime + changed) * kVocab;
    for (std::size_t i = 0; i < same; ++i)
      ASSERT_EQ(before.floats()[i], after.floats()[i])
          << "changed " << changed << ", element " << i;
    bool differs = false;
    for (std::size_t v = 0; v < kVocab; ++v)
      differs = differs || before.floats()[same + v] != after.floats()[same + v];
    EXPECT_TRUE(differs) << changed;
  }
}

TEST_P(Sequences, RowsOfABatchDoNotMeet) {
  auto three = whole(GetParam(), 3, kTime);
  const Weights weights = shuffle(three);
  const Ints ids = tokens(3 * kTime, kVocab);
  const Array together = three.run({{"tokens", ids}}).output();
  auto one = whole(GetParam(), 1, kTime);
  one.upload(weights.arrays);
  for (std::size_t b = 0; b < 3; ++b) {
    const Array alone = one.run({{"tokens", std::span(ids).subspan(b * kTime, kTime)}}).output();
    const auto row = together.floats().subspan(b * kTime * kVocab, kTime * kVocab);
    expect_near(alone.floats(), doubles(row), 2e-6);
  }
}

// The state is plain arrays: saved, loaded, and continued in two ways.
TEST_P(Sequences, TheStateCanBeSavedAndUsedTwice) {
  auto all = whole(GetParam(), 1, kTime);
  shuffle(all);
  auto next = stepping(all, 1, 1);
  const StateSpec state = all.model().state(1, kCapacity);
  const auto go_on = [&](NamedArrays memory, const Ints& ids) {
    Floats last;
    for (const int id : ids) {
      const Ints now{id};
      const Result result = next.run(feed_state(memory, {{"tokens", now}}));
      const Array& logits = result["logits"];
      last.assign(logits.floats().begin(), logits.floats().end());
      memory = state_after(result, state);
    }
    return std::make_pair(last, memory);
  };
  const NamedArrays half = go_on(zero_state(state), {1, 2, 3, 4}).second;
  const std::string path = testing::TempDir() + "state_" + GetParam() + ".safetensors";
  write_safetensors(path, {half, {}});
  const NamedArrays read = read_safetensors(path).tensors;
  std::remove(path.c_str());
  const Floats one = go_on(half, {5, 6}).first, other = go_on(half, {7, 8}).first;
  EXPECT_EQ(go_on(read, {5, 6}).first, one);
  EXPECT_EQ(go_on(zero_state(state), {1, 2, 3, 4, 5, 6}).first, one);
  EXPECT_NE(one, other);
}

INSTANTIATE_TEST_SUITE_P(, Sequences, testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

// A software driver compiles for half a minute per case.
class ReleaseGpuSequences : public GpuTest, public testing::WithParamInterface<std::string> {};
TEST_P(ReleaseGpuSequences, TokenByTokenIsTheSameAsAllAtOnce) {
  expect_steps_agree(GetParam(), 1, "webgpu", 1e-4);
}
INSTANTIATE_TEST_SUITE_P(, ReleaseGpuSequences, testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

class GpuSequences : public GpuTest {};
TEST_F(GpuSequences, TokenByTokenIsTheSameAsAllAtOnce) {
  expect_steps_agree("Mamba", 1, "webgpu", 1e-4);
}

// ---- what a state is made of

std::vector<std::string> described(const StateSpec& state) {
  std::vector<std::string> out;
  for (const InputSpec& spec : state)
    out.push_back(spec.name + " " + tensorgrad::name(spec.dtype) + spec.shape.text());
  return out;
}

TEST(State, NamesAndShapes) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(described(make_model("Mamba").state(3, 99)),
            (Texts{"layers.0.window f32[3,2,16]", "layers.0.h f32[3,16,4]",
                   "layers.1.window f32[3,2,16]", "layers.1.h f32[3,16,4]"}));
  EXPECT_EQ(described(make_model("MambaZoh").state(3, 99))[0],
            "layers.0.window f32[3,0,8]");  // one tap remembers nothing
  EXPECT_EQ(described(make_model("Mamba2").state(3, 99)),
            (Texts{"layers.0.window f32[3,3,32]", "layers.0.h f32[3,4,4,4]",
                   "layers.1.window f32[3,3,32]", "layers.1.h f32[3,4,4,4]"}));
  EXPECT_EQ(
      described(make_model("RotaryTransformer").state(3, 9)),
      (Texts{"layers.0.keys f32[3,1,9,4]", "layers.0.values f32[3,1,9,4]",
             "layers.1.keys f32[3,1,9,4]", "layers.1.values f32[3,1,9,4]", "position i32[]"}));
  EXPECT_EQ(described(make_model("Transformer").state(3, 0))[0],
            "layers.0.keys f32[3,2,12,4]");  // the context
  EXPECT_EQ(described(make_model("Mixed").state(2, 9)),
            (Texts{"layers.0.window f32[2,2,16]", "layers.0.h f32[2,16,4]",
                   "layers.1.keys f32[2,1,9,4]", "layers.1.values f32[2,1,9,4]",
                   "layers.2.window f32[2,3,32]", "layers.2.h f32[2,4,4,4]", "position i32[]"}));
}

TEST(State, StartsWithZeros) {
  const NamedArrays memory = zero_state({{"a", {2, 3}}, {"n", {}, i32}});
  EXPECT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory.at("a").shape(), (Shape{2, 3}));
  EXPECT_EQ(largest(memory.at("a").floats()), 0);
  EXPECT_EQ(memory.at("n").ints()[0], 0);
}

// The cost of a token does not depend on its position: the plan of a step has no length in it.
TEST(State, ATokenOfMambaCostsTheSameForEveryText) {
  auto short_text = whole("Mamba", 1, 2), long_text = whole("Mamba", 1, 10);
  const Counts a = stepping(short_text, 1, 1, 2).counts(),
               b = stepping(long_text, 1, 1, 4096).counts();
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.operations, b.operations);
  EXPECT_EQ(a.bytes_moved, b.bytes_moved);
  EXPECT_EQ(a.arena_bytes, b.arena_bytes);
}

// The cache has room for three positions. The fourth is refused, and the state still has three.
class FullCache : public testing::TestWithParam<std::string> {};

TEST_P(FullCache, IsAnError) {
  auto all = whole(GetParam(), 1, 3);
  auto next = stepping(all, 1, 1, 3);
  const StateSpec state = all.model().state(1, 3);
  NamedArrays memory = zero_state(state);
  const Ints id{1};
  for (int i = 0; i < 3; ++i)
    memory = state_after(next.run(feed_state(memory, {{"tokens", id}})), state);
  EXPECT_EQ(memory.at("position").ints()[0], 3);
  try {
    next.run(feed_state(memory, {{"tokens", id}})).wait();
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("id 3 is out of range: ids are 0 to 2\n  at sequence_models.h:"),
              std::string::npos)
        << error.what();
  }
  memory.at("position") = Array({}, Ints{2});
  EXPECT_NO_THROW(next.run(feed_state(memory, {{"tokens", id}})).wait());
  auto two = stepping(all, 1, 2, 3);
  EXPECT_THROW(two.run(feed_state(memory, {{"tokens", Ints{1, 1}}})).wait(), UserError);
}

// A layer alone, too: its caller gives the position.
TEST(FullCacheOfALayer, IsAnError) {
  const SelfAttention layer(4, 2);
  auto run = compile_forward(layer,
                             {.inputs = {{"x", {1, 1, 4}},
                                         {"keys", {1, 2, 3, 2}},
                                         {"values", {1, 2, 3, 2}},
                                         {"at", {}, i32}},
                              .device = "cpu"},
                             [](const SelfAttention& m, const Inputs& in) {
                               KeyValues cache{in["keys"], in["values"]};
                               return m.step(in["x"], cache, in["at"]);
                             });
  const std::vector<float> x(4, 1.0f), cache(12, 0.5f);
  const auto at = [&](int position) {
    return run.run({{"x", x}, {"keys", cache}, {"values", cache}, {"at", position}}).output();
  };
  EXPECT_EQ(at(2).shape(), (Shape{1, 1, 4}));
  for (const int position : {3, -1}) {
    try {
      at(position);
      ADD_FAILURE() << position << " is no error";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what())
                    .find("id " + std::to_string(position) + " is out of range: ids are 0 to 2"),
                std::string::npos)
          << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, FullCache, testing::Values("Transformer", "RotaryTransformer", "Mixed"),
                         [](const auto& test) { return test.param; });

// ---- one position at a time, against the scans

struct None {};

// The outputs "steps" and "scan" of the program are the same.
void expect_same(Forward<None>& both, const std::vector<InputSpec>& inputs) {
  Feed feed;
  std::vector<Floats> values;
  for (const InputSpec& spec : inputs)
    values.push_back(numbers(static_cast<std::size_t>(spec.shape.count()),
                             static_cast<std::uint32_t>(values.size() + 1)));
  for (std::size_t i = 0; i < inputs.size(); ++i) feed.set(inputs[i].name, values[i]);
  const Result result = both.run(feed);
  const Array steps = result["steps"], scan = result["scan"];
  EXPECT_GT(largest(scan.floats()), 0.5);
  for (std::size_t i = 0; i < scan.floats().size(); ++i)
    ASSERT_NEAR(steps.floats()[i], scan.floats()[i], 1e-5 * largest(scan.floats()));
}

TEST(Steps, SelectiveScanStepIsSelectiveScan) {
  constexpr std::int64_t B = 2, L = 7, E = 5, N = 3;
  for (const Discretisation rule : {Discretisation::euler, Discretisation::zoh}) {
    const std::vector<InputSpec> inputs{{"u", {B, L, E}}, {"delta", {B, L, E}}, {"A_log", {E, N}},
                                        {"B", {B, L, N}}, {"C", {B, L, N}},     {"D", {E}}};
    auto both = compile_forward(
        None{}, {.inputs = inputs, .device = "cpu"}, [=](const None&, const Inputs& in) -> Outputs {
          const auto at = [&](const char* name, std::int64_t t) {
            return squeeze(narrow(in[name], 1, t, 1), 1);
          };
          Tensor h = zeros({B, E, N});
          std::vector<Tensor> y;
          for (std::int64_t t = 0; t < L; ++t)
            y.push_back(selective_scan_step(h, at("u", t), at("delta", t), in["A_log"], at("B", t),
                                            at("C", t), in["D"], rule));
          return {{"steps", stack(y, 1)},
                  {"scan", selective_scan(in["u"], in["delta"], in["A_log"], in["B"], in["C"],
                                          in["D"], {.discretisation = rule})}};
        });
    expect_same(both, inputs);
  }
}

TEST(Steps, SsdStepIsSsd) {
  constexpr std::int64_t B = 2, L = 7, H = 4, P = 3, G = 2, N = 5;
  const std::vector<InputSpec> inputs{{"x", {B, L, H, P}}, {"dt", {B, L, H}},   {"A_log", {H}},
                                      {"B", {B, L, G, N}}, {"C", {B, L, G, N}}, {"D", {H}}};
  auto both = compile_forward(
      None{}, {.inputs = inputs, .device = "cpu"}, [=](const None&, const Inputs& in) -> Outputs {
        const auto at = [&](const char* name, std::int64_t t) {
          return squeeze(narrow(in[name], 1, t, 1), 1);
        };
        Tensor h = zeros({B, H, N, P});
        std::vector<Tensor> y;
        for (std::int64_t t = 0; t < L; ++t)
          y.push_back(
              ssd_step(h, at("x", t), at("dt", t), in["A_log"], at("B", t), at("C", t), in["D"]));
        return {
            {"steps", stack(y, 1)},
            {"scan", ssd(in["x"], in["dt"], in["A_log"], in["B"], in["C"], in["D"], {.chunk = 3})}};
      });
  expect_same(both, inputs);
}

}  // namespace
}  // namespace tensorgrad::nn_tests
