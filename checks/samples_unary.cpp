// Elementwise ops of one operand: one line each, spread over shapes and views.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct Unary {
  const char* op;
  Tensor (*function)(Operand);
  double low = -3, high = 3;
  std::vector<double> avoid = {};
  double tolerance = 1e-6;
};

const std::vector<Unary>& unary_ops() {
  static const std::vector<Unary> all{
      {"neg", neg},
      {"abs", abs, -3, 3, {0}},
      {"sign", sign, -3, 3, {0}},
      {"square", square},
      {"sqrt", sqrt, 0.1, 9},
      {"rsqrt", rsqrt, 0.2, 9},
      {"exp", exp},
      {"expm1", expm1},
      {"log", log, 0.1, 9},
      {"log1p", log1p, -0.8, 9},
      {"sin", sin, -9, 9},
      {"cos", cos, -9, 9},
      {"tanh", tanh},
      {"sigmoid", sigmoid, -9, 9},
      {"erf", erf},
      {"relu", relu, -3, 3, {0}},
      {"leaky_relu", [](Operand x) { return leaky_relu(x); }, -3, 3, {0}},
      {"gelu", gelu, -9, 9},
      {"gelu_tanh", gelu_tanh, -9, 9},
      {"silu", silu, -9, 9},
      {"softplus", softplus, -9, 9, {0}},  // smooth, but implemented with abs and maximum
      {"clamp", [](Operand x) { return clamp(x, -1.5f, 0.75f); }, -3, 3, {-1.5, 0.75}},
      {"stop_gradient", stop_gradient},
  };
  return all;
}

// The same op on operands of many kinds.
void add_rows(const Unary& unary, Samples& rows) {
  const auto f = unary.function;
  const auto operand = [&](const Shape& shape) {
    return real(shape, unary.low, unary.high).away_from(unary.avoid);
  };
  const auto add = [&](const char* variant, const Shape& shape,
                       std::function<Tensor(const Tensors&)> function) {
    rows.push_back({unary.op,
                    variant,
                    {operand(shape)},
                    std::move(function),
                    unary.tolerance,
                    std::string(unary.op) != "stop_gradient"});
  };
  add("rank_0", {}, [f](In x) { return f(x[0]); });
  add("size_1_axes", {1, 3, 1}, [f](In x) { return f(x[0]); });
  add("empty", {2, 0, 3}, [f](In x) { return f(x[0]); });
  add("many_blocks", {4100}, [f](In x) { return f(x[0]); });
  add("of_transposed", {5, 7}, [f](In x) { return f(permute(x[0], {1, 0})); });
  add("of_narrowed_flipped", {4, 9}, [f](In x) { return f(narrow(flip(x[0], 1), 1, 2, 5)); });
  add("of_padded", {3, 4}, [f](In x) { return f(pad(x[0], 1, 2, 1, PadMode::constant, 1)); });
  add("of_broadcast", {3, 1}, [f](In x) { return f(broadcast_to(x[0], {2, 3, 4})); });
}

}  // namespace

Samples unary_samples() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kMin = std::numeric_limits<std::int32_t>::min();
  Samples rows;
  for (const Unary& unary : unary_ops()) add_rows(unary, rows);
  for (const Unary& unary : unary_ops())
    rows.push_back({unary.op, "of_constant", {}, [f = unary.function](In) { return f(0.5f); }});

  const Arg extremes = given({8}, {0, -0.0, kInf, -kInf, kNan, 1e30, -1e30, 1e-30});
  const char* defined_everywhere[] = {"neg",   "abs",      "sign",  "square",     "sqrt", "exp",
                                      "log",   "tanh",     "erf",   "leaky_relu", "relu", "sigmoid",
                                      "expm1", "softplus", "clamp", "log1p",      "rsqrt"};
  for (const Unary& unary : unary_ops())
    for (const char* op : defined_everywhere)
      if (std::string(op) == unary.op)
        rows.push_back({unary.op,
                        "of_extremes",
                        {extremes},
                        [f = unary.function](In x) { return f(x[0]); },
                        1e-6,
                        false});

  // Accurate where the plain formula is not.
  const Arg tiny = real({50}, -1e-4, 1e-4);
  rows.push_back({"expm1", "near_0", {tiny}, [](In x) { return expm1(x[0]) * 1e4f; }});
  rows.push_back({"log1p", "near_0", {tiny}, [](In x) { return log1p(x[0]) * 1e4f; }});
  rows.push_back({"tanh", "near_0", {tiny}, [](In x) { return tanh(x[0]) * 1e4f; }});
  rows.push_back({"erf", "near_0", {tiny}, [](In x) { return erf(x[0]) * 1e4f; }});
  rows.push_back({"sin", "near_0", {tiny}, [](In x) { return sin(x[0]) * 1e4f; }});
  rows.push_back({"sin", "of_large", {real({300}, -30000, 30000)}, [](In x) { return sin(x[0]); }});
  rows.push_back({"cos", "of_large", {real({300}, -30000, 30000)}, [](In x) { return cos(x[0]); }});
  rows.push_back({"exp", "wide", {real({300}, -80, 80)}, [](In x) { return exp(x[0]); }});
  rows.push_back({"log", "wide", {real({300}, 1e-6, 1e6)}, [](In x) { return log(x[0]); }});

  const Arg whole = ints({4, 3}, -9, 9);
  const Arg edges = given({4}, {kMin, -kMin - 1, 0, -1}, i32);
  rows.push_back({"neg", "i32", {whole}, [](In x) { return neg(x[0]); }});
  rows.push_back({"abs", "i32", {whole}, [](In x) { return abs(x[0]); }});
  rows.push_back({"sign", "i32", {whole}, [](In x) { return sign(x[0]); }});
  rows.push_back({"square", "i32", {whole}, [](In x) { return square(x[0]); }});
  rows.push_back({"neg", "i32_wraps", {edges}, [](In x) { return neg(x[0]); }});
  rows.push_back({"abs", "i32_wraps", {edges}, [](In x) { return abs(x[0]); }});
  rows.push_back({"square", "i32_wraps", {edges}, [](In x) { return square(x[0]); }});

  rows.push_back({"operator-", "unary", {real({2, 3})}, [](In x) { return -x[0]; }});
  rows.push_back({"leaky_relu", "slope", {real({40}).away_from({0})}, [](In x) {
                    return leaky_relu(x[0], 0.3f);
                  }});
  rows.push_back({"clamp", "one_sided", {real({40}).away_from({0.5})}, [](In x) {
                    return clamp(x[0], static_cast<float>(-kInf), 0.5f);
                  }});
  rows.push_back(
      {"clamp", "bounds_crossed", {real({40})}, [](In x) { return clamp(x[0], 1, -1); }});

  // A chain longer than one fused group may be (32 nodes), so that it is split.
  rows.push_back({"tanh", "long_chain", {real({3, 100})}, [](In x) {
                    Tensor t = x[0];
                    for (int i = 0; i < 50; ++i) t = tanh(t) + x[0] * 0.1f;
                    return t;
                  }});
  return rows;
}

}  // namespace tensorgrad::checks
