// Mamba and Mamba-2 against plain loops; initial parameters, decay, and training some of the
// parameters.
#include <algorithm>

#include "tests/nn/sequence_models.h"

namespace tensorgrad::nn_tests {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

// rows of g.size() numbers
Doubles rms_norm(const Doubles& g, const Doubles& x, double eps) {
  const std::size_t n = g.size();
  Doubles y(x.size());
  for (std::size_t r = 0; r < x.size() / n; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i)
      squares += x[r * n + i] * x[r * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      y[r * n + i] = x[r * n + i] / std::sqrt(squares + eps) * g[i];
  }
  return y;
}

// Columns first .. first + count - 1 of rows of `width`.
Doubles part(const Doubles& x, std::size_t width, std::size_t first, std::size_t count) {
  Doubles out;
  for (std::size_t r = 0; r < x.size() / width; ++r)
    for (std::size_t i = first; i < first + count; ++i) out.push_back(x[r * width + i]);
  return out;
}

// silu(conv(x)) of x [B, T, C]
Doubles activated_conv(const Weights& w, const Doubles& x, std::size_t B, std::size_t T) {
  const Doubles weight = w.at("conv.W"), bias = w.at("conv.b");
  const std::size_t C = bias.size(), K = weight.size() / C;
  Doubles y(x.size());
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t c = 0; c < C; ++c) {
        double sum = bias[c];
        for (std::size_t k = 0; k < K; ++k)
          if (t + k + 1 >= K) sum += weight[c * K + k] * x[(b * T + t + k + 1 - K) * C + c];
        y[(b * T + t) * C + c] = silu(sum);
      }
  return y;
}

Doubles product(const Doubles& a, const Doubles& b) {
  Doubles out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}

Doubles mapped(Doubles x, double (*f)(double)) {
  for (double& v : x) v = f(v);
  return x;
}

Doubles with_residual(Doubles y, const Doubles& x) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += x[i];
  return y;
}

Doubles mamba_block(const Weights& w, const Doubles& x, std::size_t B, std::size_t T, double eps,
                    bool zoh) {
  const Doubles A_log = w.at("A_log"), D = w.at("D");
  const std::size_t E = D.size(), N = A_log.size() / E, R = w.size("dt_proj.W", 0);
  const Doubles projected = linear(w, "in_proj", rms_norm(w.at("norm.g"), x, eps));
  const Doubles u = activated_conv(w, part(projected, 2 * E, 0, E), B, T),
                z = part(projected, 2 * E, E, E);
  const Doubles of_u = linear(w, "x_proj", u);
  const Doubles delta = linear(w, "dt_proj", part(of_u, R + 2 * N, 0, R));
  const Doubles b = part(of_u, R + 2 * N, R, N), c = part(of_u, R + 2 * N, R + N, N);
  Doubles y(u.size());
  for (std::size_t row = 0; row < B; ++row)
    for (std::size_t e = 0; e < E; ++e) {
      Doubles h(N, 0.0);
      for (std::size_t t = 0; t < T; ++t) {
        const std::size_t at = row * T + t;
        const double dl = softplus(delta[at * E + e]), now = u[at * E + e];
        double sum = D[e] * now;
        for (std::size_t n = 0; n < N; ++n) {
          const double A = -std::exp(A_log[e * N + n]);
          h[n] =
              std::exp(dl * A) * h[n] + (zoh ? std::expm1(dl * A) / A : dl) * b[at * N + n] * now;
          sum += c[at * N + n] * h[n];
        }
        y[at * E + e] = sum;
      }
    }
  return with_residual(linear(w, "out_proj", product(y, mapped(z, silu))), x);
}

TEST(MambaBlocks, MambaMatchesPlainLoops) {
  constexpr std::size_t B = 2, T = 9;
  for (const Discretisation rule : {Discretisation::euler, Discretisation::zoh})
    for (const std::int64_t K : {1, 4}) {
      auto run = forward(
          MambaBlock(
              {.dim = 6, .state = 5, .conv = K, .expand = 3, .discretisation = rule, .eps = 1e-3f}),
          {B, T, 6});
      const Weights w = shuffle(run);
      EXPECT_EQ(w.size("in_proj.W", 1), 36u);
      EXPECT_EQ(w.size("dt_proj.W", 0), 1u);  // 6/16, rounded up
      const Floats x = numbers(B * T * 6);
      expect_near(
          run.run({{"x", x}}).output().floats(),
          mamba_block(w, doubles(x), B, T, static_cast<double>(1e-3f), rule == Discretisation::zoh),
          5e-6);
    }
}

Doubles mamba2_block(const Weights& w, const Doubles& x, std::size_t B, std::size_t T,
                     std::size_t P, std::size_t G, std::size_t N, double eps) {
  const Doubles A_log = w.at("A_log"), D = w.at("D"), bias = w.at("dt_bias");
  const std::size_t H = D.size(), E = H * P, C = E + 2 * G * N, width = E + C + H;
  const Doubles projected = linear(w, "in_proj", rms_norm(w.at("norm.g"), x, eps));
  const Doubles z = part(projected, width, 0, E), dt = part(projected, width, E + C, H);
  const Doubles all = activated_conv(w, part(projected, width, E, C), B, T);
  Doubles y(B * T * E);
  for (std::size_t row = 0; row < B; ++row)
    for (std::size_t head = 0; head < H; ++head) {
      const std::size_t group = head / (H / G);
      Doubles h(N * P, 0.0);
      for (std::size_t t = 0; t < T; ++t) {
        const std::size_t at = row * T + t;
        const double dl = softplus(dt[at * H + head] + bias[head]),
                     a = std::exp(-std::exp(A_log[head]) * dl);
        for (std::size_t i = 0; i < P; ++i) {
          const double now = all[at * C + head * P + i];
          double sum = D[head] * now;
          for (std::size_t n = 0; n < N; ++n) {
            h[n * P + i] = a * h[n * P + i] + dl * all[at * C + E + group * N + n] * now;
            sum += all[at * C + E + G * N + group * N + n] * h[n * P + i];
          }
          y[at * E + head * P + i] = sum;
        }
      }
    }
  return with_residual(
      linear(w, "out_proj", rms_norm(w.at("out_norm.g"), product(y, mapped(z, silu)), eps)), x);
}

TEST(MambaBlocks, Mamba2MatchesPlainLoops) {
  constexpr std::size_t B = 2, T = 9;
  for (const int groups : {1, 2, 4})
    for (const std::int64_t chunk : {4, 64}) {
      auto run = forward(Mamba2Block({.dim = 6,
                                      .state = 5,
                                      .conv = 3,
                                      .expand = 2,
                                      .head_size = 3,
                                      .groups = groups,
                                      .chunk = chunk,
                                      .eps = 1e-3f}),
                         {B, T, 6});
      const Weights w = shuffle(run);
      const Floats x = numbers(B * T * 6);
      expect_near(run.run({{"x", x}}).output().floats(),
                  mamba2_block(w, doubles(x), B, T, 3, static_cast<std::size_t>(groups), 5,
                               static_cast<double>(1e-3f)),
                  1e-5);
    }
}

std::vector<std::string> names_of(const ProgramHandle& program) {
  std::vector<std::string> names;
  for (const ParamInfo& info : program.parameters()) names.push_back(info.name + info.shape.text());
  return names;
}

TEST(MambaModels, ParameterNames) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(names_of(forward(Mamba({.vocab = 5, .layers = 1, .dim = 4, .state = 3}), {1, 2}, i32)),
            (Texts{"tok_emb[5,4]", "layers.0.norm.g[4]", "layers.0.in_proj.W[4,16]",
                   "layers.0.conv.W[8,4]", "layers.0.conv.b[8]", "layers.0.x_proj.W[8,7]",
                   "layers.0.dt_proj.W[1,8]", "layers.0.dt_proj.b[8]", "layers.0.A_log[8,3]",
                   "layers.0.D[8]", "layers.0.out_proj.W[8,4]", "norm.g[4]"}));
  EXPECT_EQ(
      names_of(forward(Mamba2({.vocab = 5, .layers = 1, .dim = 4, .state = 3, .head_size = 2}),
                       {1, 2}, i32)),
      (Texts{"tok_emb[5,4]", "layers.0.norm.g[4]", "layers.0.in_proj.W[4,26]",
             "layers.0.conv.W[14,4]", "layers.0.conv.b[14]", "layers.0.dt_bias[4]",
             "layers.0.A_log[4]", "layers.0.D[4]", "layers.0.out_norm.g[8]",
             "layers.0.out_proj.W[8,4]", "norm.g[4]"}));
  const Texts mixed = names_of(forward(LanguageModel({.vocab = 5,
                                                      .dim = 4,
                                                      .layers = "attention mamba mamba2",
                                                      .mamba2 = {.head_size = 2},
                                                      .heads = 2}),
                                       {1, 2}, i32));
  EXPECT_EQ(mixed.size(), 1u + 12 + 10 + 9 + 1);
  EXPECT_EQ(mixed[1], "layers.0.attention.ln1.g[4]");
  EXPECT_EQ(mixed[13], "layers.1.mamba.norm.g[4]");
  EXPECT_EQ(mixed[23], "layers.2.mamba2.norm.g[4]");
}

TEST(MambaModels, ATransformerWithRotaryPositionsHasNoOthers) {
  for (const std::string& name : names_of(forward(
           Transformer({.vocab = 5, .dim = 4, .layers = 1, .heads = 2, .rope_base = 10000.0f}),
           {1, 2}, i32)))
    EXPECT_EQ(name.find("pos_emb"), std::string::npos);
}

TEST(MambaModels, Decay) {
  struct All {
    Mamba mamba{{.vocab = 5, .layers = 1, .dim = 4}};
    Mamba2 mamba2{{.vocab = 5, .layers = 1, .dim = 4, .head_size = 2}};
    LanguageModel mixed{{.vocab = 5,
                         .dim = 4,
                         .layers = "mamba mamba2 attention",
                         .mamba2 = {.head_size = 2},
                         .heads = 2}};
  };
  auto run = compile_forward(All{}, {.device = "cpu", .threads = 1},
                             [](const All& m, const Inputs&) { return neg(m.mamba.norm.g); });
  int on = 0, off = 0;
  for (const ParamInfo& info : run.parameters()) {
    const std::string last = info.name.substr(info.name.rfind('.') + 1);
    EXPECT_EQ(info.decay, last == "W" || last == "tok_emb")
        << info.name;  // not: norms, biases, A_log, D, dt_bias
    ++(info.decay ? on : off);
  }
  EXPECT_EQ(on, 6 + 4 + (1 + 5 + 3 + 6));
  EXPECT_EQ(off, 6 + 7 + (5 + 6 + 6 + 1));
}

TEST(MambaModels, Start) {
  auto run = forward(Mamba({.vocab = 50, .layers = 4, .dim = 96, .state = 5}), {1, 2}, i32);
  const Weights w{run.download()};
  const std::size_t E = 192;
  const Doubles A_log = w.at("layers.1.A_log");
  for (std::size_t i = 0; i < E * 5; ++i)
    ASSERT_EQ(A_log[i],
              static_cast<double>(static_cast<float>(std::log(1.0 + static_cast<double>(i % 5)))));
  for (const double d : w.at("layers.1.D")) ASSERT_EQ(d, 1);
  const auto bound_of = [&](const char* name) {
    double bound = 0;
    for (const double v : w.at(name)) bound = std::max(bound, std::abs(v));
    return bound;
  };
  EXPECT_NEAR(bound_of("layers.1.dt_proj.W"), 1 / std::sqrt(6.0), 0.01);  // 96/16 inputs
  EXPECT_NEAR(bound_of("layers.1.conv.W"), 0.5, 0.01);                    // 4 taps
  EXPECT_NEAR(bound_of("layers.1.in_proj.W"), 1 / std::sqrt(96.0), 0.001);
  EXPECT_NEAR(bound_of("layers.1.out_proj.W"), 1 / std::sqrt(192.0) / 2,
              0.001);  // less by the root of 4 layers
  EXPECT_NE(w.at("layers.1.dt_proj.b"), w.at("layers.2.dt_proj.b"));
}

// Log-uniform from 0.001 to 0.1.
void expect_step_sizes(const Doubles& bias) {
  double mean = 0, low = 1e9, high = 0;
  for (const double b : bias) {
    const double step = softplus(b);
    low = std::min(low, step), high = std::max(high, step),
    mean += std::log(step) / static_cast<double>(bias.size());
  }
  EXPECT_GE(low, 1e-3 * (1 - 1e-4));
  EXPECT_LE(high, 1e-1 * (1 + 1e-4));
  EXPECT_LT(low, 1.2e-3);
  EXPECT_GT(high, 0.85e-1);
  EXPECT_NEAR(mean, std::log(1e-2),
              5 * std::log(100.0) / std::sqrt(12.0 * static_cast<double>(bias.size())));
}

TEST(MambaModels, StepSizesStartBetweenAThousandthAndATenth) {
  const Weights one{forward(MambaBlock({.dim = 256, .state = 1}), {1, 1, 256}).download()};
  expect_step_sizes(one.at("dt_proj.b"));
  const MambaBlock decays({.dim = 4, .state = 1}, {.dt_bias = {.decay = true}});
  EXPECT_TRUE(decays.dt_proj.b->decays());
  EXPECT_EQ(decays.dt_proj.b->init().kind, Init::Kind::step_size);
  const Weights two{
      forward(Mamba2Block({.dim = 256, .state = 1, .head_size = 1}), {1, 1, 256}).download()};
  expect_step_sizes(two.at("dt_bias"));
  double low = 1e9, high = 0;
  for (const double log_rate : two.at("A_log"))
    low = std::min(low, std::exp(log_rate)), high = std::max(high, std::exp(log_rate));
  EXPECT_NEAR(low, 1, 0.15);
  EXPECT_NEAR(high, 16, 0.15);
}

// Frozen parameters need no backward pass, have no gradient, and keep their bits.
TEST(MambaModels, TrainingSomeParametersOnly) {
  const std::vector<InputSpec> inputs{{"tokens", {2, 6}, i32}, {"targets", {2, 6}, i32}};
  const auto loss = [](const Mamba& m, const Inputs& in) {
    return cross_entropy(m(in["tokens"]), in["targets"]);
  };
  const MambaConfig config{.vocab = kVocab, .layers = 2, .dim = 8, .state = 4};
  auto all = compile(Mamba(config), {.inputs = inputs, .device = "cpu"}, loss);
  auto some =
      compile(Mamba(config),
              {.inputs = inputs, .train_only = NameFilter{"*.x_proj.W"}, .device = "cpu"}, loss);
  auto last = compile(
      Mamba(config),
      {.inputs = inputs, .train_only = NameFilter{"layers.1.x_proj.W"}, .device = "cpu"}, loss);
  EXPECT_LT(some.counts().kernels, all.counts().kernels);
  EXPECT_LT(last.counts().kernels,
            some.counts().kernels - 4);  // no backward pass through the first block
  EXPECT_LT(some.counts().operations, all.counts().operations);
  const auto backward = [](const ProgramHandle& program, const std::string& op) {
    int count = 0;
    for (const PlannedKernel& kernel : program.plan())
      count +=
          kernel.phase == "backward" && std::count(kernel.ops.begin(), kernel.ops.end(), op) > 0;
    return count;
  };
  EXPECT_EQ(backward(all, "selective_scan_gradient"), 2);
  EXPECT_EQ(backward(last, "selective_scan_gradient"), 1);
  EXPECT_EQ(backward(last, "segment_sum"), 0);  // no gradient of the embedding

  const NamedArrays before = some.download();
  const Ints tokens_now = tokens(12, kVocab), targets = tokens(12, kVocab, 2);
  for (int i = 0; i < 3; ++i) some.step({{"tokens", tokens_now}, {"targets", targets}});
  std::vector<std::string> names;
  for (const auto& [name, gradient] : some.gradients()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.x_proj.W", "layers.1.x_proj.W"}));
  for (const auto& [name, array] : some.download()) {
    const Doubles now = doubles(array.floats()), then = doubles(before.at(name).floats());
    if (name.find("x_proj.W") == std::string::npos)
      EXPECT_EQ(now, then) << name;
    else
      EXPECT_NE(now, then) << name;
  }
}

}  // namespace
}  // namespace tensorgrad::nn_tests
