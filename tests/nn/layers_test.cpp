// Layers and the transformer against plain loops.
#include <type_traits>

#include "tests/nn/plain.h"

namespace tensorgrad::nn_tests {
namespace {

// Parameter names without the prefix of a model.
Weights inside(const Weights& weights, const std::string& name) {
  Weights out;
  for (const auto& [own, array] : weights.arrays) out.arrays[name + "." + own] = array;
  return out;
}

TEST(Layers, Linear) {
  for (const bool bias : {true, false})
    for (const Shape& shape : {Shape{4, 3}, Shape{2, 5, 3}, Shape{3}, Shape{2, 2, 2, 3}}) {
      auto run = forward(Linear(3, 5, bias), shape);
      const Weights w = inside(shuffle(run), "l");
      EXPECT_EQ(w.has("l.b"), bias);
      const Floats x = numbers(static_cast<std::size_t>(shape.count()));
      const Array y = run.run({{"x", x}}).output();
      Shape expected = shape;
      expected[-1] = 5;
      EXPECT_EQ(y.shape(), expected);
      expect_near(y.floats(), linear(w, "l", doubles(x)), 1e-6);
    }
}

// Empty braces are the default options, not a bias that is false or an eps of 0.
TEST(Layers, EmptyBracesAreTheDefaultOptions) {
  EXPECT_TRUE(Linear(2, 3, {}).b.has_value());
  EXPECT_EQ(LayerNorm(4, {}).eps, 1e-5f);
  EXPECT_TRUE(LayerNorm(4, {}).b.has_value());
  EXPECT_EQ(RMSNorm(4, {}).eps, 1e-5f);
  const Conv2d conv(3, 8, 3, {});
  EXPECT_TRUE(conv.b.has_value());
  EXPECT_EQ(conv.options.stride.h, 1);
  EXPECT_FALSE(Conv2d(3, 8, 3, {}, false).b.has_value());
  EXPECT_EQ(FeedForward(2, 4, {}).activation, Activation::gelu);
  EXPECT_EQ(SelfAttention(4, 2, {}).groups, 2);
  EXPECT_EQ(TransformerBlock(4, 2, {}).mlp.activation, Activation::gelu);
  // Other values are neither a bias nor groups.
  static_assert(!std::is_constructible_v<Linear, int, int, int>);
  static_assert(!std::is_constructible_v<SelfAttention, int, int, int>);
}

TEST(Layers, LayerNorm) {
  for (const float eps : {1e-5f, 0.5f})
    for (const Shape& shape : {Shape{4, 6}, Shape{2, 3, 6}}) {
      auto run = forward(LayerNorm(6, eps), shape);
      const Weights w = inside(shuffle(run), "n");
      Floats x = numbers(static_cast<std::size_t>(shape.count()));
      for (float& v : x) v = 3 * v + 5;
      expect_near(run.run({{"x", x}}).output().floats(),
                  layer_norm(w, "n", doubles(x), static_cast<double>(eps)), 1e-5);
    }
}

// Without a bias: as with one of zeros.
TEST(Layers, LayerNormWithoutBias) {
  auto run = forward(LayerNorm(6, {.eps = 0.5f, .bias = false}), {4, 6});
  ASSERT_EQ(run.parameters().size(), 1u);
  Weights w = inside(shuffle(run), "n");
  w.arrays["n.b"] = Array({6}, Floats(6, 0.0f));
  const Floats x = numbers(24);
  expect_near(run.run({{"x", x}}).output().floats(), layer_norm(w, "n", doubles(x), 0.5), 1e-5);
}

TEST(Layers, RMSNorm) {
  for (const float eps : {1e-5f, 0.5f}) {
    auto run = forward(RMSNorm(6, eps), {2, 3, 6});
    const Doubles g = shuffle(run).at("g");
    const Floats x = numbers(36);
    Doubles expected;
    for (std::size_t r = 0; r < 6; ++r) {
      double squares = 0;
      for (std::size_t i = 0; i < 6; ++i)
        squares += std::pow(static_cast<double>(x[6 * r + i]), 2) / 6;
      for (std::size_t i = 0; i < 6; ++i)
        expected.push_back(static_cast<double>(x[6 * r + i]) /
                           std::sqrt(squares + static_cast<double>(eps)) * g[i]);
    }
    expect_near(run.run({{"x", x}}).output().floats(), expected, 1e-6);
  }
}

TEST(Layers, Embedding) {
  auto run = forward(Embedding(7, 3), {2, 4}, i32);
  const Doubles table = shuffle(run).at("W");
  const Ints ids = {0, 6, 3, 3, 1, 0, 5, 2};
  Doubles expected;
  for (const int id : ids)
    for (std::size_t d = 0; d < 3; ++d)
      expected.push_back(table[static_cast<std::size_t>(id) * 3 + d]);
  const Array rows = run.run({{"x", ids}}).output();
  EXPECT_EQ(rows.shape(), (Shape{2, 4, 3}));
  expect_near(rows.floats(), expected, 0);
}

TEST(Layers, Conv2d) {
  struct Case {
    std::int64_t in, out;
    Pair kernel;
    Conv2dOptions options;
  };
  for (const Case& c :
       std::vector<Case>{{3, 4, 3, {}},
                         {3, 4, {2, 3}, {.stride = {2, 1}, .padding = {1, 2}}},
                         {4, 6, 3, {.padding = 1, .groups = 2}},
                         {4, 4, 3, {.stride = 2, .padding = 2, .dilation = 2, .groups = 4}},
                         {2, 3, 1, {}}})
    for (const bool bias : {true, false}) {
      const Shape shape{2, c.in, 6, 7};
      auto run = forward(Conv2d(c.in, c.out, c.kernel, c.options, bias), shape);
      const Weights w = shuffle(run);
      const Floats x = numbers(static_cast<std::size_t>(shape.count()));
      expect_near(run.run({{"x", x}}).output().floats(),
                  conv2d(doubles(x), shape, w.at("W"), w.arrays.at("W").shape(), c.options,
                         bias ? w.at("b") : Doubles{}),
                  1e-6);
    }
}

TEST(Layers, SelfAttention) {
  struct Case {
    int heads, groups;
  };
  for (const Case& c : {Case{1, 0}, Case{4, 0}, Case{4, 4}, Case{4, 2}, Case{4, 1}}) {
    auto run = forward(SelfAttention(8, c.heads, {.groups = c.groups}), {2, 5, 8});
    const Weights w = inside(shuffle(run), "a");
    const std::size_t groups = static_cast<std::size_t>(c.groups ? c.groups : c.heads);
    EXPECT_EQ(w.size("a.k.W", 1), 8 / static_cast<std::size_t>(c.heads) * groups);
    const Floats x = numbers(80);
    expect_near(run.run({{"x", x}}).output().floats(),
                self_attention(w, "a", doubles(x), 2, 5, static_cast<std::size_t>(c.heads), groups),
                2e-6);
    auto biased =
        forward(SelfAttention(8, c.heads, {.groups = c.groups, .biases = true}), {2, 5, 8});
    const Weights u = inside(shuffle(biased), "a");
    EXPECT_TRUE(u.has("a.q.b") && u.has("a.k.b") && u.has("a.v.b") && u.has("a.o.b"));
    expect_near(biased.run({{"x", x}}).output().floats(),
                self_attention(u, "a", doubles(x), 2, 5, static_cast<std::size_t>(c.heads), groups),
                2e-6);
    auto turned =
        forward(SelfAttention(8, c.heads, {.groups = c.groups, .rope_base = 50.0f}), {2, 5, 8});
    const Weights v = inside(shuffle(turned), "a");
    expect_near(
        turned.run({{"x", x}}).output().floats(),
        self_attention(v, "a", doubles(x), 2, 5, static_cast<std::size_t>(c.heads), groups, 50),
        2e-6);
  }
}

TEST(Layers, Conv1d) {
  for (const std::int64_t K : {1, 2, 4}) {
    auto run = forward(Conv1d(3, K), {2, 5, 3});
    const Weights w = shuffle(run);
    const Doubles W = w.at("W"), b = w.at("b");
    const Floats x = numbers(30);
    Doubles expected;
    for (std::size_t row = 0; row < 2; ++row)
      for (int t = 0; t < 5; ++t)
        for (std::size_t c = 0; c < 3; ++c) {
          double sum = b[c];
          for (int k = 0; k < K; ++k)
            if (const int from = t - static_cast<int>(K) + 1 + k; from >= 0)
              sum += W[c * static_cast<std::size_t>(K) + static_cast<std::size_t>(k)] *
                     static_cast<double>(x[(row * 5 + static_cast<std::size_t>(from)) * 3 + c]);
          expected.push_back(sum);
        }
    expect_near(run.run({{"x", x}}).output().floats(), expected, 1e-6);
  }
}

constexpr Activation kActivations[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                       Activation::silu, Activation::tanh};

TEST(Layers, FeedForward) {
  for (const Activation activation : kActivations) {
    auto run = forward(FeedForward(3, 7, activation), {4, 3});
    const Weights w = inside(shuffle(run), "f");
    const Floats x = numbers(12);
    expect_near(run.run({{"x", x}}).output().floats(), feed_forward(w, "f", doubles(x), activation),
                2e-6);
  }
}

TEST(Layers, TransformerBlock) {
  for (const Activation activation : kActivations) {
    auto run =
        forward(TransformerBlock(8, 2, {.norm = {.eps = 1e-3f}, .mlp = {.activation = activation}}),
                {2, 5, 8});
    const Weights w = inside(shuffle(run), "b");
    EXPECT_EQ(w.size("b.mlp.up.W", 1), 32u);
    const Floats x = numbers(80);
    expect_near(run.run({{"x", x}}).output().floats(),
                block(w, "b", doubles(x), 2, 5, 2, activation, static_cast<double>(1e-3f)), 5e-6);
  }
}

const TransformerConfig kSmall{.vocab = 11, .dim = 8, .context = 6, .layers = 2, .heads = 2};

TEST(TransformerLm, LogitsMatchPlainLoops) {
  constexpr std::size_t B = 2, T = 5, D = 8, V = 11;
  auto run = forward(Transformer(kSmall), {B, T}, i32);
  const Weights w = shuffle(run);
  const Ints ids = tokens(B * T, V);
  const Doubles table = w.at("tok_emb"), positions = w.at("pos_emb");
  Doubles x;
  for (std::size_t r = 0; r < B * T; ++r)
    for (std::size_t d = 0; d < D; ++d)
      x.push_back(table[static_cast<std::size_t>(ids[r]) * D + d] + positions[r % T * D + d]);
  for (const char* layer : {"layers.0", "layers.1"})
    x = block(w, layer, x, B, T, 2, Activation::gelu, static_cast<double>(1e-5f));
  x = layer_norm(w, "lnf", x, static_cast<double>(1e-5f));
  Doubles logits;
  for (std::size_t r = 0; r < B * T; ++r)
    for (std::size_t v = 0; v < V; ++v) {
      double sum = 0;
      for (std::size_t d = 0; d < D; ++d) sum += x[r * D + d] * table[v * D + d];
      logits.push_back(sum);
    }
  const Array got = run.run({{"x", ids}}).output();
  EXPECT_EQ(got.shape(), (Shape{B, T, V}));
  expect_near(got.floats(), logits, 1e-5);
}

TEST(TransformerLm, ParameterNames) {
  std::vector<std::string> names;
  for (const ParamInfo& info :
       forward(Transformer({.vocab = 5, .dim = 4, .context = 3, .layers = 1, .heads = 2}), {1, 2},
               i32)
           .parameters())
    names.push_back(info.name + info.shape.text());
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "tok_emb[5,4]", "pos_emb[3,4]", "layers.0.ln1.g[4]", "layers.0.ln1.b[4]",
                "layers.0.attn.q.W[4,4]", "layers.0.attn.k.W[4,4]", "layers.0.attn.v.W[4,4]",
                "layers.0.attn.o.W[4,4]", "layers.0.ln2.g[4]", "layers.0.ln2.b[4]",
                "layers.0.mlp.up.W[4,16]", "layers.0.mlp.up.b[16]", "layers.0.mlp.down.W[16,4]",
                "layers.0.mlp.down.b[4]", "lnf.g[4]", "lnf.b[4]"}));
}

// Changing a token leaves the logits before it as they were, bit for bit.
TEST(TransformerLm, IsCausal) {
  constexpr std::size_t B = 2, T = 6, V = 11;
  auto run = forward(Transformer(kSmall), {B, T}, i32);
  shuffle(run);
  const Ints ids = tokens(B * T, V);
  const Array before = run.run({{"x", ids}}).output();
  for (std::size_t changed = 0; changed < T; ++changed) {
    Ints other = ids;
    other[T + changed] = (other[T + changed] + 1) % static_cast<int>(V);  // in the second row only
    const Array after = run.run({{"x", other}}).output();
    for (std::size_t i = 0; i < B * T * V; ++i) {
      if (i / V >= T + changed) break;
      EXPECT_EQ(before.floats()[i], after.floats()[i])
          << "position " << i / V << ", changed " << changed;
    }
    bool differs = false;
    for (std::size_t v = 0; v < V; ++v)
      differs = differs ||
                before.floats()[(T + changed) * V + v] != after.floats()[(T + changed) * V + v];
    EXPECT_TRUE(differs) << changed;
  }
}

// A shorter sequence gives the logits of the longer one's beginning.
TEST(TransformerLm, ShorterSequencesAgree) {
  auto run = forward(Transformer(kSmall), {1, 6}, i32);
  shuffle(run);
  const Ints ids = tokens(6, 11);
  const Array whole = run.run({{"x", ids}}).output();
  for (std::int64_t T = 1; T < 6; ++T) {
    auto shorter = run.attach({.inputs = {{"x", {1, T}, i32}}},
                              [](const Transformer& m, const Inputs& in) { return m(in["x"]); });
    const Array part =
        shorter.run({{"x", std::span(ids).first(static_cast<std::size_t>(T))}}).output();
    expect_near(part.floats(), doubles(whole.floats().first(static_cast<std::size_t>(T) * 11)),
                1e-6);
  }
}

TEST(TransformerLm, TheTiedHeadGetsBothGradients) {
  auto train = compile(Transformer({.vocab = 4, .dim = 4, .context = 3, .layers = 1, .heads = 1}),
                       {.inputs = {{"ids", {1, 3}, i32}, {"next", {1, 3}, i32}}, .threads = 1},
                       [](const Transformer& m, const Inputs& in) {
                         return cross_entropy(m(in["ids"]), in["next"]);
                       });
  train.step({{"ids", Ints{0, 1, 0}}, {"next", Ints{1, 0, 1}}});
  const Array g = train.gradients().at("tok_emb");
  for (std::size_t row :
       {2u, 3u}) {  // never read as a token: its gradient comes from the head alone
    double largest = 0;
    for (std::size_t d = 0; d < 4; ++d)
      largest = std::max(largest, std::abs(static_cast<double>(g.floats()[4 * row + d])));
    EXPECT_GT(largest, 1e-4) << row;
  }
}

TEST(Losses, MaskedCrossEntropy) {
  struct Nothing {
    float unused = 0;
  };
  const Floats logits = numbers(24), mask = {1, 0, 1, 1, 0, 0};
  const Ints targets = {0, 3, 2, 1, 1, 2}, flags = {1, 0, 1, 1, 0, 0};
  double sum = 0;
  for (std::size_t r = 0; r < 6; ++r) {
    double total = 0;
    for (std::size_t v = 0; v < 4; ++v) total += std::exp(static_cast<double>(logits[4 * r + v]));
    if (mask[r] > 0)
      sum += std::log(total) -
             static_cast<double>(logits[4 * r + static_cast<std::size_t>(targets[r])]);
  }
  for (const DType dtype : {f32, i32, boolean}) {
    auto run = compile_forward(
        Nothing{},
        {.inputs = {{"x", {2, 3, 4}}, {"t", {2, 3}, i32}, {"mask", {2, 3}, dtype}}, .threads = 1},
        [](const Nothing&, const Inputs& in) {
          return masked_cross_entropy(in["x"], in["t"], in["mask"]);
        });
    const FeedValue fed = dtype == f32 ? FeedValue(mask) : FeedValue(flags);
    EXPECT_NEAR(run.run({{"x", logits}, {"t", targets}, {"mask", fed}}).output().item(), sum / 3,
                1e-6)
        << tensorgrad::name(dtype);
  }
}

}  // namespace
}  // namespace tensorgrad::nn_tests
