// Initial parameters: distributions and their bounds, keys, and which of them decay.
#include <algorithm>
#include <memory>

#include "tests/nn/plain.h"

namespace tensorgrad::nn_tests {
namespace {

struct One {
  Param w;
};

Floats start_of(const Shape& shape, const Init& init, std::uint32_t seed = 0) {
  auto run = compile_forward(One{Param(shape, init)}, {.seed = seed, .threads = 1},
                             [](const One& m, const Inputs&) { return neg(m.w); });
  const Array w = run.download().at("w");
  return {w.floats().begin(), w.floats().end()};
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e300, high = -1e300, kurtosis = 0;
};

Moments moments(const Floats& v) {
  Moments out;
  const auto n = static_cast<double>(v.size());
  for (const float x : v) {
    const double d = static_cast<double>(x);
    out.mean += d / n, out.low = std::min(out.low, d), out.high = std::max(out.high, d);
  }
  double second = 0, fourth = 0;
  for (const float x : v) {
    const double d = static_cast<double>(x) - out.mean;
    second += d * d / n, fourth += d * d * d * d / n;
  }
  out.deviation = std::sqrt(second);
  out.kurtosis = fourth / (second * second);
  return out;
}

// 3 for a normal distribution, 1.8 for a uniform one.
void expect_normal(const Floats& v, double deviation, double mean = 0) {
  const Moments m = moments(v);
  const double noise = 5 * deviation / std::sqrt(static_cast<double>(v.size()));
  EXPECT_NEAR(m.mean, mean, noise);
  EXPECT_NEAR(m.deviation, deviation, noise);
  EXPECT_NEAR(m.kurtosis, 3, 0.25);
  EXPECT_GT(m.high - mean, 3 * deviation);
}

void expect_uniform(const Floats& v, double low, double high) {
  const Moments m = moments(v);
  EXPECT_GE(m.low, low);
  EXPECT_LE(m.high, high);
  EXPECT_NEAR(m.low, low, 0.005 * (high - low));
  EXPECT_NEAR(m.high, high, 0.005 * (high - low));
  EXPECT_NEAR(m.mean, (low + high) / 2, 0.02 * (high - low));
  EXPECT_NEAR(m.kurtosis, 1.8, 0.1);
}

const Shape kMatrix{64, 256}, kConv{48, 20, 5, 4};  // inputs 64 and 20*5*4, outputs 256 and 48*5*4

TEST(Init, Constants) {
  EXPECT_EQ(start_of({3}, init::zeros()), Floats(3, 0.0f));
  EXPECT_EQ(start_of({3}, init::ones()), Floats(3, 1.0f));
  EXPECT_EQ(start_of({3}, init::constant(-0.25f)), Floats(3, -0.25f));
  EXPECT_EQ(start_of({2, 2}, init::literal({1, 2, 3, 4})), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(start_of({}, init::literal({5})), Floats{5});
}

TEST(Init, Distributions) {
  expect_normal(start_of({20000}, init::normal(0.02f)), 0.02);
  expect_normal(start_of({20000}, init::normal(2, 10)), 2, 10);
  expect_uniform(start_of({20000}, init::uniform(-3, 1)), -3, 1);
}

// The deviation is gain / sqrt(inputs); a matrix is [in, out], a convolution [out, in, kH, kW].
TEST(Init, Fans) {
  expect_normal(start_of(kMatrix, init::kaiming()), std::sqrt(2.0 / 64));
  expect_normal(start_of(kConv, init::kaiming()), std::sqrt(2.0 / 400));
  expect_normal(start_of(kConv, init::kaiming(1)), std::sqrt(1.0 / 400));
  expect_uniform(start_of(kMatrix, init::kaiming_uniform()), -1.0 / 8, 1.0 / 8);
  expect_uniform(start_of(kConv, init::kaiming_uniform()), -1.0 / 20, 1.0 / 20);
  expect_uniform(start_of(kConv, init::kaiming_uniform(2)), -1.0 / 10, 1.0 / 10);
  const double matrix = std::sqrt(6.0 / (64 + 256)), conv = std::sqrt(6.0 / (400 + 960));
  expect_uniform(start_of(kMatrix, init::xavier()), -matrix, matrix);
  expect_uniform(start_of(kConv, init::xavier()), -conv, conv);
  expect_uniform(start_of(kMatrix, init::xavier(0.5f)), -matrix / 2, matrix / 2);
}

// No two layers start with the same values, and the same seed always gives the same values.
TEST(Init, DependsOnSeedAndNameAlone) {
  EXPECT_EQ(start_of({8}, init::normal(1), 3), start_of({8}, init::normal(1), 3));
  EXPECT_NE(start_of({8}, init::normal(1), 3), start_of({8}, init::normal(1), 4));
  struct Before {
    Linear l1{4, 4}, l2{4, 4};
  };
  struct After {  // a field before, one between, another order
    Linear l0{9, 9};
    Linear l2{4, 4};
    Embedding words{5, 3};
    Linear l1{4, 4};
  };
  auto before = compile_forward(Before{}, {.threads = 1},
                                [](const Before& m, const Inputs&) { return neg(m.l1.W); });
  auto after = compile_forward(After{}, {.threads = 1},
                               [](const After& m, const Inputs&) { return neg(m.l1.W); });
  const NamedArrays old = before.download(), now = after.download();
  for (const auto& [name, array] : old)
    expect_near(now.at(name).floats(), doubles(array.floats()), 0);
  EXPECT_NE(doubles(old.at("l1.W").floats()), doubles(old.at("l2.W").floats()));
  EXPECT_NE(doubles(old.at("l1.b").floats()), doubles(old.at("l2.b").floats()));
}

TEST(Init, ByAFunctionOfTheIndex) {
  std::vector<std::int64_t> asked;
  const Init counted = init::function([&](std::int64_t i) {
    asked.push_back(i);
    return static_cast<float>(10 * i) - 7;
  });
  EXPECT_EQ(start_of({2, 3}, counted), (Floats{-7, 3, 13, 23, 33, 43}));
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(start_of({}, counted), Floats{-7});
}

// compile() calls the function, because its captures may be gone when the first step needs the
// weights.
TEST(Init, AFunctionIsCalledByCompile) {
  struct Model {
    Param w;
  };
  auto offset = std::make_unique<float>(3.0f);
  auto train = compile(Model{Param({2}, init::function([&](std::int64_t i) {
                                     return *offset + static_cast<float>(i);
                                   }))},
                       {.threads = 1}, [](const Model& m, const Inputs&) { return sum(m.w); });
  *offset = 100;
  EXPECT_EQ(train.download().at("w").floats(), (Floats{3, 4}));
  train.step().wait();
  train.reset();
  EXPECT_EQ(train.download().at("w").floats(), (Floats{3, 4}));
}

// A block of a deep model starts with smaller residual projections, whatever their initialisation
// is.
TEST(Init, ResidualProjectionsStartSmaller) {
  const auto scaled = [](const Init& start) {
    const ParamOptions own{.init = start, .decay = false};
    TransformerBlock block(2, 1, {.attention = {.W = own}, .mlp = {.down = {.W = own}}});
    block.scale_residual_start(0.5f);
    EXPECT_FALSE(block.attn.o.W.decays());
    EXPECT_FALSE(block.mlp.down.W.decays());
    return block.attn.o.W;
  };
  EXPECT_EQ(scaled(init::zeros()).init().kind, Init::Kind::zeros);
  EXPECT_EQ(scaled(init::constant(3)).init().a, 1.5f);
  const Init ones = scaled(init::ones()).init(), normal = scaled(init::normal(0.02f, 4)).init(),
             kaiming = scaled(init::kaiming_uniform()).init();
  EXPECT_EQ(ones.kind, Init::Kind::constant);
  EXPECT_EQ(ones.a, 0.5f);
  EXPECT_EQ(normal.kind, Init::Kind::normal);
  EXPECT_EQ(normal.a, 2.0f);
  EXPECT_EQ(normal.b, 0.01f);
  EXPECT_TRUE(kaiming.scale_by_fan);
  EXPECT_EQ(kaiming.b, 0.5f);
  EXPECT_EQ(scaled(init::literal({1, 2, 3, 4})).init().values, (Floats{0.5f, 1, 1.5f, 2}));
  EXPECT_EQ(scaled(init::function([](std::int64_t i) { return static_cast<float>(i); }))
                .init()
                .function(6),
            3.0f);
}

// Matrices start as in torch.nn.Linear, the rest at 0.
TEST(Init, OfAParamThatSaysNothing) {
  struct Model {
    Param matrix{{64, 256}}, kernel{{48, 20, 5, 4}}, vector{{9}}, scalar{{}};
  };
  const NamedArrays start =
      compile_forward(Model{}, {.threads = 1}, [](const Model& m, const Inputs&) {
        return neg(m.scalar);
      }).download();
  const auto floats = [&](const char* name) {
    return Floats(start.at(name).floats().begin(), start.at(name).floats().end());
  };
  expect_uniform(floats("matrix"), -1.0 / 8, 1.0 / 8);
  expect_uniform(floats("kernel"), -1.0 / 20, 1.0 / 20);
  EXPECT_EQ(floats("vector"), Floats(9, 0.0f));
  EXPECT_EQ(floats("scalar"), Floats(1, 0.0f));
}

// Every parameter of every layer can have another initialisation and decay.
TEST(Init, OptionsOfTheLayers) {
  const ParamOptions one{.init = init::constant(1), .decay = false},
      two{.init = init::constant(2), .decay = true};
  struct Model {
    Linear linear;
    LayerNorm norm;
    RMSNorm rms;
    Embedding table;
    Conv1d conv1;
    Conv2d conv2;
    SelfAttention attention;
    FeedForward mlp;
    TransformerBlock block;
    MambaBlock mamba;
    Mamba2Block mamba2;
  };
  const Model model{
      .linear = Linear(2, 3, {.W = one, .b = two}),
      .norm = LayerNorm(3, {.g = two, .b = one}),
      .rms = RMSNorm(3, {.g = two}),
      .table = Embedding(4, 2, {.W = one}),
      .conv1 = Conv1d(3, 2, {.W = one, .b = two}),
      .conv2 = Conv2d(2, 2, 3, {.conv = {.padding = 1}, .W = one, .b = two}),
      .attention = SelfAttention(4, 2, {.biases = true, .W = one, .b = two}),
      .mlp = FeedForward(2, 5, {.up = {.W = one, .b = two}, .down = {.W = one, .b = two}}),
      .block = TransformerBlock(
          2, 1,
          {.hidden = 3,
           .norm = {.g = two, .b = one},
           .attention = {.W = one},
           .mlp = {.up = {.bias = false, .W = one}, .down = {.W = one, .b = two}}}),
      .mamba = MambaBlock({.dim = 4, .state = 2}, {.norm = two,
                                                   .in_proj = one,
                                                   .conv_W = one,
                                                   .conv_b = two,
                                                   .x_proj = one,
                                                   .dt_proj = one,
                                                   .dt_bias = two,
                                                   .A_log = two,
                                                   .D = two,
                                                   .out_proj = one}),
      .mamba2 = Mamba2Block({.dim = 4, .state = 2, .head_size = 2}, {.norm = two,
                                                                     .in_proj = one,
                                                                     .conv_W = one,
                                                                     .conv_b = two,
                                                                     .dt_bias = two,
                                                                     .A_log = two,
                                                                     .D = two,
                                                                     .out_norm = two,
                                                                     .out_proj = one})};
  auto run = compile_forward(model, {.threads = 1},
                             [](const Model& m, const Inputs&) { return neg(m.norm.g); });
  const NamedArrays start = run.download();
  EXPECT_EQ(start.at("block.mlp.up.W").shape(), (Shape{2, 3}));
  EXPECT_EQ(start.count("block.mlp.up.b"), 0u);
  EXPECT_EQ(run.parameters().size(), 52u);
  for (const ParamInfo& info : run.parameters()) {
    const bool is_norm = info.name.find("ln") != std::string::npos ||
                         info.name.starts_with("norm") || info.name.starts_with("rms");
    const bool is_one = info.name.ends_with(is_norm ? ".b" : ".W");
    EXPECT_EQ(info.decay, !is_one) << info.name;
    EXPECT_EQ(start.at(info.name).floats()[0], is_one ? 1 : 2) << info.name;
  }
}

// PyTorch's defaults: torch.nn.Linear and Conv2d are uniform in +-1/sqrt(inputs), biases too.
TEST(Init, DefaultsOfTheLayers) {
  struct Model {
    Linear linear{64, 256};
    Conv2d conv{20, 48, {5, 4}};
    Conv2d grouped{32, 64, 5, {.groups = 2}};
    Embedding embedding{100, 200};
    LayerNorm norm{5};
    RMSNorm rms{5};
    SelfAttention attention{64, 4}, biased{64, 4, {.groups = 2, .biases = true}};
    Transformer lm{{.vocab = 100, .dim = 64, .context = 50, .layers = 1, .heads = 4}};
  };
  const Weights w{compile_forward(Model{}, {.threads = 1}, [](const Model& m, const Inputs&) {
                    return neg(m.norm.g);
                  }).download()};
  const auto floats = [&](const char* name) {
    return Floats(w.arrays.at(name).floats().begin(), w.arrays.at(name).floats().end());
  };
  expect_uniform(floats("linear.W"), -1.0 / 8, 1.0 / 8);
  const Moments bias = moments(floats("linear.b"));
  EXPECT_LE(std::max(bias.high, -bias.low), 1.0 / 8);
  EXPECT_NEAR(bias.deviation, 1.0 / 8 / std::sqrt(3.0), 0.01);
  expect_uniform(floats("conv.W"), -1.0 / 20, 1.0 / 20);
  EXPECT_LE(moments(floats("conv.b")).high, 1.0 / 20);
  EXPECT_GT(moments(floats("conv.b")).high, 0.5 / 20);
  expect_uniform(floats("grouped.W"), -1.0 / 20, 1.0 / 20);  // 16 channels a group, 25 places
  expect_normal(floats("embedding.W"), 0.02);
  EXPECT_EQ(floats("norm.g"), Floats(5, 1.0f));
  EXPECT_EQ(floats("norm.b"), Floats(5, 0.0f));
  EXPECT_EQ(floats("rms.g"), Floats(5, 1.0f));
  expect_uniform(floats("attention.q.W"), -1.0 / 8, 1.0 / 8);
  EXPECT_FALSE(w.has("attention.q.b"));
  EXPECT_EQ(floats("biased.q.b"), Floats(64, 0.0f));
  EXPECT_EQ(floats("biased.v.b"), Floats(32, 0.0f));
  expect_normal(floats("lm.tok_emb"), 0.05);
  expect_normal(floats("lm.pos_emb"), 0.02);
  // Projections into the residual stream are smaller, by the square root of their number: two.
  expect_uniform(floats("lm.layers.0.attn.q.W"), -1.0 / 8, 1.0 / 8);
  expect_uniform(floats("lm.layers.0.attn.o.W"), -std::sqrt(0.5) / 8, std::sqrt(0.5) / 8);
  expect_uniform(floats("lm.layers.0.mlp.down.W"), -std::sqrt(0.5) / 16, std::sqrt(0.5) / 16);
}

// On for matrices and embeddings, off for biases and norms.
TEST(Decay, Flags) {
  struct Model {
    Linear linear{2, 2};
    Conv2d conv{2, 2, 3};
    Embedding embedding{4, 2};
    LayerNorm norm{2};
    RMSNorm rms{2};
    SelfAttention attention{2, 1};
    FeedForward mlp{2, 2, Activation::relu};
    TransformerBlock block{2, 1};
    Transformer lm{{.vocab = 4, .dim = 2, .context = 2, .layers = 1, .heads = 1}};
    Param scalar{{}, init::zeros()}, vector{{2}, init::zeros()}, matrix{{2, 2}, init::zeros()},
        cube{{2, 2, 2}, init::zeros()};
    Param forced = Param({2}, init::zeros()).decay(true),
          spared = Param({2, 2}, init::zeros()).decay(false);
  };
  auto run = compile_forward(Model{}, {.threads = 1},
                             [](const Model& m, const Inputs&) { return neg(m.scalar); });
  int on = 0, off = 0;
  for (const ParamInfo& info : run.parameters()) {
    const std::string last = info.name.substr(info.name.rfind('.') + 1);
    const bool expected = last == "W" || last == "tok_emb" || last == "pos_emb" ||
                          last == "matrix" || last == "cube" || last == "forced";
    EXPECT_EQ(info.decay, expected) << info.name;
    (info.decay ? on : off)++;
  }
  EXPECT_EQ(on, 26);
  EXPECT_EQ(off, 24);
}

}  // namespace
}  // namespace tensorgrad::nn_tests
