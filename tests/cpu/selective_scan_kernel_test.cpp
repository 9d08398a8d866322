// The selective scan and its gradient on the CPU against plain loops in double, for sizes at the
// edges of blocks of channels and of states.
#include "tests/cpu/each_target.h"
#include "tests/cpu/sequence_kernel.h"

namespace tensorgrad::cpu {
namespace {

struct Case {
  std::int64_t B, L, E, N, chunk;
  bool zoh;
  Lies lies = Lies::in_order;
};

struct Plain {
  const Case& c;
  std::vector<double> u, delta, A_log, B, C, D, g, y, states, du, ddelta, dB, dC, dA;

  static double& at(std::vector<double>& x, std::int64_t i) {
    return x[static_cast<std::size_t>(i)];
  }

  void run() {
    const std::int64_t kept = c.L > 0 ? (c.L + c.chunk - 1) / c.chunk - 1 : 0;
    const auto zeros = [](std::int64_t n) {
      return std::vector<double>(static_cast<std::size_t>(n));
    };
    y = du = ddelta = zeros(c.B * c.L * c.E);
    dB = dC = zeros(c.B * c.L * c.N);
    states = zeros(c.B * kept * c.E * c.N);
    dA = zeros(c.B * c.E * c.N);
    for (std::int64_t b = 0; b < c.B; ++b)
      for (std::int64_t e = 0; e < c.E; ++e) {
        for (std::int64_t t = 0; t < c.L; ++t) {
          const std::int64_t i = (b * c.L + t) * c.E + e;
          at(y, i) += at(D, e) * at(u, i);
          at(du, i) += at(D, e) * at(g, i);
        }
        for (std::int64_t n = 0; n < c.N; ++n) state(b, e, n, kept);
      }
    for (std::size_t i = 0; i < ddelta.size(); ++i) ddelta[i] /= 1 + std::exp(-delta[i]);
  }

  // h = a h + w B u, where a = exp(dl A) and w is dl, or (a - 1) / A.
  void state(std::int64_t b, std::int64_t e, std::int64_t n, std::int64_t kept) {
    const double A = -std::exp(at(A_log, e * c.N + n));
    std::vector<double> h(static_cast<std::size_t>(c.L + 1));
    const auto wide = [&](std::int64_t t) { return (b * c.L + t) * c.E + e; };
    const auto narrow = [&](std::int64_t t) { return (b * c.L + t) * c.N + n; };
    const auto dl = [&](std::int64_t t) { return std::log1p(std::exp(at(delta, wide(t)))); };
    const auto weight = [&](std::int64_t t) { return c.zoh ? std::expm1(dl(t) * A) / A : dl(t); };
    for (std::int64_t t = 0; t < c.L; ++t) {
      if (t > 0 && t % c.chunk == 0)
        at(states, ((b * kept + t / c.chunk - 1) * c.E + e) * c.N + n) = at(h, t);
      at(h, t + 1) = std::exp(dl(t) * A) * at(h, t) + weight(t) * at(B, narrow(t)) * at(u, wide(t));
      at(y, wide(t)) += at(C, narrow(t)) * at(h, t + 1);
    }
    double later = 0;
    for (std::int64_t t = c.L - 1; t >= 0; --t) {
      const double a = std::exp(dl(t) * A), G = at(C, narrow(t)) * at(g, wide(t)) + later,
                   Bu = at(B, narrow(t)) * at(u, wide(t));
      at(dC, narrow(t)) += at(g, wide(t)) * at(h, t + 1);
      at(dB, narrow(t)) += G * weight(t) * at(u, wide(t));
      at(du, wide(t)) += G * weight(t) * at(B, narrow(t));
      at(ddelta, wide(t)) += G * (at(h, t) * A * a + Bu * (c.zoh ? a : 1));
      at(dA, (b * c.E + e) * c.N + n) +=
          G * (at(h, t) * dl(t) * a + (c.zoh ? Bu * (dl(t) * a - weight(t)) / A : 0));
      later = a * G;
    }
  }
};

void check_here(const Case& c) {
  SCOPED_TRACE(testing::Message() << "B " << c.B << " L " << c.L << " E " << c.E << " N " << c.N
                                  << " chunk " << c.chunk << " zoh " << c.zoh << " lies "
                                  << static_cast<int>(c.lies));
  const ir::SelectiveScanShape s{
      .B = c.B, .L = c.L, .E = c.E, .N = c.N, .chunk = c.chunk, .zoh = c.zoh};
  const Shape wide{c.B, c.L, c.E}, narrow{c.B, c.L, c.N};
  Plain plain{c, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  KernelTest forward;
  forward.set<ir::SelectiveScanKernel>(s);
  plain.u = forward.add(wide, c.lies, -1, 1);
  plain.delta = forward.add(wide, c.lies, -6, 3);
  plain.A_log = forward.add({c.E, c.N}, c.lies, -3, 3);
  plain.B = forward.add(narrow, c.lies, -1, 1);
  plain.C = forward.add(narrow, c.lies, -1, 1);
  plain.D = forward.add({c.E}, Lies::in_order, -1, 1);
  KernelTest backward = forward;
  plain.g.assign(plain.u.size(), 0);
  for (std::size_t i = 0; i < plain.g.size(); ++i)
    plain.g[i] = std::sin(static_cast<double>(i) * 0.73);
  plain.run();

  const std::vector<float> y = forward.run(s.result_elements());
  EXPECT_LT(worst(y.data(), plain.y), 2e-6) << "y";
  EXPECT_LT(worst(y.data() + s.states(), plain.states), 2e-6) << "states";

  backward.set<ir::SelectiveScanGradientKernel>(s);
  backward.put({c.B, s.kept(), c.E, c.N}, Lies::in_order, plain.states);
  backward.put(wide, c.lies, plain.g);
  const std::vector<float> got = backward.run(s.gradient_elements());
  EXPECT_LT(worst(got.data(), plain.du), 3e-6) << "du";
  EXPECT_LT(worst(got.data() + s.ddelta(), plain.ddelta), 3e-6) << "ddelta";
  EXPECT_LT(worst(got.data() + s.dB(), plain.dB), 3e-6) << "dB";
  EXPECT_LT(worst(got.data() + s.dC(), plain.dC), 3e-6) << "dC";
  EXPECT_LT(worst(got.data() + s.dA(), plain.dA), 1e-5) << "dA";
}

void check(const Case& c) {
  on_each_target([&] { check_here(c); });
}

TEST(SelectiveScanKernel, OfAnyNumberOfStates) {
  for (const bool zoh : {false, true})
    for (const std::int64_t N : {1, 3, 4, 5, 8, 9, 16, 21}) check({2, 37, 20, N, 16, zoh});
}

TEST(SelectiveScanKernel, OfAnyNumberOfChannels) {
  for (const bool zoh : {false, true})
    for (const std::int64_t E : {1, 3, 4, 15, 16, 17, 63, 64, 65, 130})
      check({1, 18, E, 12, 7, zoh});
}

TEST(SelectiveScanKernel, OfOperandsAnywhere) {
  for (const Lies lies : {Lies::turned, Lies::spread}) check({2, 21, 70, 9, 8, false, lies});
}

TEST(SelectiveScanKernel, OfNothing) {
  check({0, 5, 4, 3, 2, false});
  check({2, 0, 4, 3, 2, false});
  check({2, 5, 0, 3, 2, false});
  check({2, 5, 4, 0, 2, false});
}

// Extreme steps and rates: a is 0 or 1, and NaN propagates.
void check_far_out(double delta, double A_log) {
  constexpr std::int64_t L = 4, E = 20, N = 8;
  KernelTest test;
  const ir::SelectiveScanShape s{.B = 1, .L = L, .E = E, .N = N, .chunk = 16, .zoh = false};
  test.set<ir::SelectiveScanKernel>(s);
  std::vector<double> deltas(L * E, delta);
  deltas[E + 3] = std::nan("");
  test.put({1, L, E}, Lies::in_order, std::vector<double>(L * E, 1.0));
  test.put({1, L, E}, Lies::in_order, deltas);
  test.put({E, N}, Lies::in_order, std::vector<double>(E * N, A_log));
  for (int i = 0; i < 2; ++i) test.put({1, L, N}, Lies::in_order, std::vector<double>(L * N, 1.0));
  test.put({E}, Lies::in_order, std::vector<double>(E, 0.0));
  const std::vector<float> y = test.run(s.result_elements());
  const double dl = std::log1p(std::exp(-std::abs(delta))) + std::max(delta, 0.0),
               a = std::exp(-dl * std::exp(A_log));
  double h = 0;
  for (std::int64_t t = 0; t < L; ++t) {
    h = a * h + dl;
    EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(t * E + 3)]), t >= 1)
        << delta << " " << A_log << " " << t;
    const double wanted = h * N;
    EXPECT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * E)]), wanted,
                std::abs(wanted) * 1e-5 + 1e-37)
        << delta << " " << A_log << " " << t;
  }
}

TEST(SelectiveScanKernel, FarOut) {
  on_each_target([] {
    for (const double delta : {-200.0, -90.0, -80.0, 90.0, 1e30})
      for (const double A_log : {-60.0, 0.0, 60.0}) check_far_out(delta, A_log);
  });
}

}  // namespace
}  // namespace tensorgrad::cpu
