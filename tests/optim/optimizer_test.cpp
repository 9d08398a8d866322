// Optimizers against plain double-precision loops that follow PyTorch's formulas
// (torch.optim.SGD, Adam, AdamW; torch.nn.utils.clip_grad_norm_).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::optim_tests {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats numbers(std::size_t count, std::uint32_t seed) {
  Floats out;
  std::uint32_t x = seed * 2654435761u + 12345u;
  for (std::size_t i = 0; i < count; ++i) {
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    out.push_back(static_cast<float>(x >> 8) / 8388608.0f - 1.0f);
  }
  return out;
}

// One parameter in double precision with its optimizer state.
struct Slot {
  Doubles p, g, m, v;
  bool decay = false;
};
using Slots = std::map<std::string, Slot>;

double norm_of(const Slots& slots) {
  double squares = 0;
  for (const auto& [name, slot] : slots)
    for (const double g : slot.g) squares += g * g;
  return std::sqrt(squares);
}

double clip(Slots& slots, double max_norm) {
  const double norm = norm_of(slots), coefficient = std::min(1.0, max_norm / (norm + 1e-6));
  for (auto& [name, slot] : slots)
    for (double& g : slot.g) g *= coefficient;
  return norm;
}

void update(Slots& slots, const Sgd& sgd, double lr, int t) {
  const double momentum = sgd.momentum;
  for (auto& [name, s] : slots)
    for (std::size_t i = 0; i < s.p.size(); ++i) {
      double d = s.g[i] + (s.decay ? static_cast<double>(sgd.weight_decay) * s.p[i] : 0);
      if (momentum != 0) {
        s.m[i] = t == 1 ? d : momentum * s.m[i] + d;
        d = sgd.nesterov ? d + momentum * s.m[i] : s.m[i];
      }
      s.p[i] -= lr * d;
    }
}

void update_adam(Slots& slots, double b1, double b2, double eps, double decay, double lr, int t) {
  for (auto& [name, s] : slots)
    for (std::size_t i = 0; i < s.p.size(); ++i) {
      if (s.decay) s.p[i] *= 1 - lr * decay;
      s.m[i] = b1 * s.m[i] + (1 - b1) * s.g[i];
      s.v[i] = b2 * s.v[i] + (1 - b2) * s.g[i] * s.g[i];
      const double denominator = std::sqrt(s.v[i]) / std::sqrt(1 - std::pow(b2, t)) + eps;
      s.p[i] -= lr / (1 - std::pow(b1, t)) * s.m[i] / denominator;
    }
}
void update(Slots& slots, const Adam& a, double lr, int t) {
  update_adam(slots, static_cast<double>(a.beta1), static_cast<double>(a.beta2),
              static_cast<double>(a.eps), 0, lr, t);
}
void update(Slots& slots, const AdamW& a, double lr, int t) {
  update_adam(slots, static_cast<double>(a.beta1), static_cast<double>(a.beta2),
              static_cast<double>(a.eps), static_cast<double>(a.weight_decay), lr, t);
}

// A two-layer network [4, 3] -> tanh [4, 5] -> [4, 2]; W1 and W2 decay, the biases do not.
struct Net {
  Linear l1{3, 5}, l2{5, 2};
};

// The mean square error and its gradient by hand, in double precision.
double backward(Slots& s, const Floats& x, const Floats& y) {
  Slot &w1 = s.at("l1.W"), &b1 = s.at("l1.b"), &w2 = s.at("l2.W"), &b2 = s.at("l2.b");
  for (auto& [name, slot] : s) slot.g.assign(slot.p.size(), 0);
  double loss = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    double h[5], dh[5] = {};
    for (std::size_t j = 0; j < 5; ++j) {
      double a = b1.p[j];
      for (std::size_t i = 0; i < 3; ++i) a += static_cast<double>(x[3 * r + i]) * w1.p[5 * i + j];
      h[j] = std::tanh(a);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      double o = b2.p[k];
      for (std::size_t j = 0; j < 5; ++j) o += h[j] * w2.p[2 * j + k];
      const double error = o - static_cast<double>(y[2 * r + k]);
      loss += error * error / 8;
      const double d = 2 * error / 8;
      b2.g[k] += d;
      for (std::size_t j = 0; j < 5; ++j) w2.g[2 * j + k] += h[j] * d, dh[j] += w2.p[2 * j + k] * d;
    }
    for (std::size_t j = 0; j < 5; ++j) {
      const double d = dh[j] * (1 - h[j] * h[j]);
      b1.g[j] += d;
      for (std::size_t i = 0; i < 3; ++i) w1.g[5 * i + j] += static_cast<double>(x[3 * r + i]) * d;
    }
  }
  return loss;
}

void update(Slots&, const NoOptimizer&, double, int) {}

struct Case {
  const char* name;
  Optimizer optimizer;
  float clip = 0;
  std::optional<NameFilter> decay = {};
};

struct RateOf {
  Schedule operator()(const NoOptimizer&) const { return 0; }
  template <class O>
  Schedule operator()(const O& own) const {
    return own.lr;
  }
};
Schedule rate_of(const Optimizer& optimizer) { return std::visit(RateOf{}, optimizer); }

constexpr int kSteps = 25;

void expect_like_pytorch(const Case& c) {
  SCOPED_TRACE(c.name);
  auto train = compile(
      Net{},
      {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
       .optimizer = c.optimizer,
       .clip_grad_norm = c.clip,
       .decay = c.decay,
       .threads = 1},
      [](const Net& m, const Inputs& in) { return mse_loss(m.l2(tanh(m.l1(in["x"]))), in["y"]); });
  Slots slots;
  for (const ParamInfo& info : train.parameters()) {
    const Array array = train.download().at(info.name);
    const Doubles p(array.floats().begin(), array.floats().end());
    slots[info.name] = {p, p, Doubles(p.size()), Doubles(p.size()),
                        c.decay ? info.decay : info.shape.rank() == 2};
  }
  const Slots start = slots;
  const Schedule rate = rate_of(c.optimizer);
  bool clipped = false;
  for (int t = 1; t <= kSteps; ++t) {
    const Floats x = numbers(12, static_cast<std::uint32_t>(t)),
                 y = numbers(8, static_cast<std::uint32_t>(t) + 500);
    const Result step = train.step({{"x", x}, {"y", y}});
    EXPECT_NEAR(static_cast<double>(step.loss()), backward(slots, x, y), 2e-5) << "step " << t;
    if (c.clip > 0) {
      const double norm = clip(slots, static_cast<double>(c.clip));
      clipped = clipped || norm > static_cast<double>(c.clip);
      EXPECT_NEAR(static_cast<double>(step.grad_norm()), norm, 1e-5) << "step " << t;
    }
    std::visit([&](const auto& own) { update(slots, own, rate.at(t), t); }, c.optimizer);
  }
  EXPECT_EQ(clipped, c.clip > 0);
  const NamedArrays end = train.download();
  double moved = 0;
  for (const auto& [name, slot] : slots)
    for (std::size_t i = 0; i < slot.p.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(end.at(name).floats()[i]), slot.p[i],
                  1e-5 * std::max(1.0, std::abs(slot.p[i])))
          << name << " " << i;
      moved = std::max(moved, std::abs(slot.p[i] - start.at(name).p[i]));
    }
  EXPECT_GT(moved, 0.01);  // otherwise agreement would mean nothing
}

TEST(Optimizers, LikePyTorchOnANetwork) {
  for (const Case& c : std::vector<Case>{
           {"sgd", Sgd{.lr = 0.1}},
           {"sgd, momentum", Sgd{.lr = 0.05, .momentum = 0.9f}},
           {"sgd, nesterov", Sgd{.lr = 0.05, .momentum = 0.9f, .nesterov = true}},
           {"sgd, decay", Sgd{.lr = 0.1, .weight_decay = 0.1f}},
           {"sgd, everything",
            Sgd{.lr = 0.05, .momentum = 0.8f, .nesterov = true, .weight_decay = 0.05f}, 0.3f},
           {"sgd, clipped", Sgd{.lr = 0.1}, 0.2f},
           {"adam", Adam{.lr = 0.01}},
           {"adam, betas", Adam{.lr = 0.01, .beta1 = 0.5f, .beta2 = 0.9f, .eps = 1e-3f}},
           {"adam, no momentum", Adam{.lr = 0.01, .beta1 = 0}},
           {"adam, clipped", Adam{.lr = 0.01}, 0.2f},
           {"adamw", AdamW{.lr = 0.01, .weight_decay = 0.1f}},
           {"adamw, clipped", AdamW{.lr = 0.01, .weight_decay = 0.2f}, 0.2f},
           {"adamw, no decay", AdamW{.lr = 0.01, .weight_decay = 0}},
           {"adamw, decay of biases", AdamW{.lr = 0.01, .weight_decay = 0.3f}, 0,
            NameFilter{"*.b"}},
           {"adamw, schedule",
            AdamW{.lr = warmup(5, cosine(0.02, 0.001, 15)), .weight_decay = 0.1f}},
           {"sgd, schedule", Sgd{.lr = staircase(0.2, 0.5, 4), .momentum = 0.9f}},
       })
    expect_like_pytorch(c);
}

// Gradients over eight orders of magnitude, some of them zero: a_t (w - c_t), with new a and c in
// each step.
struct Bowl {
  Param w{{16}, init::normal(1)};
};

TEST(Optimizers, LikePyTorchOverManyMagnitudes) {
  const std::vector<std::pair<const char*, Optimizer>> cases = {
      {"sgd", Sgd{.lr = 1e-3, .momentum = 0.9f}},
      {"adam", Adam{.lr = 0.01}},
      {"adamw", AdamW{.lr = 0.01}}};
  for (const auto& [name, optimizer] : cases) {
    SCOPED_TRACE(name);
    auto train = compile(
        Bowl{}, {.inputs = {{"a", {16}}, {"c", {16}}}, .optimizer = optimizer, .threads = 1},
        [](const Bowl& m, const Inputs& in) { return sum(in["a"] * square(m.w - in["c"])) * 0.5; });
    Slots slots;
    const Array w = train.download().at("w");
    const Doubles start(w.floats().begin(), w.floats().end());
    slots["w"] = {start, start, Doubles(16), Doubles(16), false};
    for (int t = 1; t <= 40; ++t) {
      Floats a = numbers(16, static_cast<std::uint32_t>(t)),
             c = numbers(16, static_cast<std::uint32_t>(t) + 77);
      for (std::size_t i = 0; i < 16; ++i)
        a[i] = (i % 5 == 4 && t % 2)
                   ? 0
                   : std::abs(a[i]) * std::pow(10.0f, static_cast<float>(i % 8) - 5);
      train.step({{"a", a}, {"c", c}});
      Slot& s = slots.at("w");
      for (std::size_t i = 0; i < 16; ++i)
        s.g[i] = static_cast<double>(a[i]) * (s.p[i] - static_cast<double>(c[i]));
      const double lr = rate_of(optimizer).at(t);
      std::visit([&](const auto& own) { update(slots, own, lr, t); }, optimizer);
    }
    const Array end = train.download().at("w");
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(static_cast<double>(end.floats()[i]), slots.at("w").p[i],
                  2e-5 * std::max(1.0, std::abs(slots.at("w").p[i])))
          << i;
  }
}

// The state has the values of the formulas too.
TEST(Optimizers, StateHasTheFormulasValues) {
  auto train = compile(
      Bowl{}, {.inputs = {{"a", {16}}, {"c", {16}}}, .optimizer = Adam{}, .threads = 1},
      [](const Bowl& m, const Inputs& in) { return sum(in["a"] * square(m.w - in["c"])) * 0.5; });
  constexpr double kBeta1 = 0.9f, kBeta2 = 0.999f;  // as floats: 1 - 0.999f is 0.00100005
  Doubles m(16), v(16);
  for (std::uint32_t t = 1; t <= 3; ++t) {
    train.step({{"a", numbers(16, t)}, {"c", numbers(16, t + 9)}});
    const Array g = train.gradients().at("w");
    for (std::size_t i = 0; i < 16; ++i) {
      const double own = static_cast<double>(g.floats()[i]);
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * own, v[i] = kBeta2 * v[i] + (1 - kBeta2) * own * own;
    }
  }
  const NamedArrays state = train.optimizer_state();
  EXPECT_EQ(state.at("adam:updates").item(), 3);
  EXPECT_EQ(state.at("step").item(), 3);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(static_cast<double>(state.at("m:w").floats()[i]), m[i], 1e-6);
    EXPECT_NEAR(static_cast<double>(state.at("v:w").floats()[i]), v[i], 1e-6 * (1e-3 + v[i]));
  }
}

// The bias correction must neither cancel at the first update nor drift at late ones.
TEST(Optimizers, AdamsFirstAndLateUpdates) {
  struct One {
    Param w{{1}, init::zeros()};
  };
  auto train =
      compile(One{}, {.inputs = {{"g", {1}}}, .optimizer = Adam{.lr = 1, .eps = 0}, .threads = 1},
              [](const One& m, const Inputs& in) { return sum(m.w * in["g"]); });
  train.step({{"g", 1e-3f}});  // m^/sqrt(v^) is exactly 1
  EXPECT_NEAR(train.download().at("w").item(), -1, 1e-6);
  NamedArrays state = train.optimizer_state();
  const double t = 20000, g = 1e-3;
  state.at("adam:updates") = Array({}, std::vector<std::int32_t>{static_cast<std::int32_t>(t) - 1});
  train.upload_optimizer_state(state);
  train.upload({{"w", Array({1}, Floats{0})}});
  train.step({{"g", 1e-3f}});
  const double m = 0.9 * 0.1 * g + 0.1 * g, v = (0.999 * 0.001 + 0.001) * g * g;
  const double expected = -(m / (1 - std::pow(0.9, t))) / std::sqrt(v / (1 - std::pow(0.999, t)));
  EXPECT_NEAR(train.download().at("w").item(), expected, 1e-5 * std::abs(expected));
}

TEST(Clipping, LeavesSmallGradientsAlone) {
  const auto after = [](float clip) {
    auto train = compile(Net{},
                         {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
                          .optimizer = Sgd{.lr = 0.1},
                          .clip_grad_norm = clip,
                          .threads = 1},
                         [](const Net& m, const Inputs& in) {
                           return mse_loss(m.l2(tanh(m.l1(in["x"]))), in["y"]);
                         });
    train.step({{"x", numbers(12, 1)}, {"y", numbers(8, 2)}});
    return train.fingerprint();
  };
  EXPECT_EQ(after(1000), after(0));
  EXPECT_NE(after(0.01f), after(0));
}

}  // namespace
}  // namespace tensorgrad::optim_tests
