// Attention and its gradient on the CPU against plain loops in double, for sizes at the edges of
// blocks.
#include "tests/cpu/each_target.h"
#include "tests/cpu/sequence_kernel.h"

namespace tensorgrad::cpu {
namespace {

struct Case {
  std::int64_t B, H, G, T, S, D, V;
  bool causal;
  Lies lies = Lies::heads_inside;
  int start = -1000;  // -1000: not cached
};

// The plain loops. q, g [B, H, T, .], k, v [B, G, S, .].
struct Plain {
  const Case& c;
  std::vector<double> q, k, v, g, out, lse, dq, dk, dv;

  std::int64_t visible(std::int64_t t) const {
    const std::int64_t first = c.start == -1000 ? c.S - c.T : c.start;
    return c.causal ? std::clamp<std::int64_t>(first + t + 1, 0, c.S) : c.S;
  }
  static double& at(std::vector<double>& x, std::int64_t i) {
    return x[static_cast<std::size_t>(i)];
  }

  void run(double scale) {
    out.assign(static_cast<std::size_t>(c.B * c.T * c.H * c.V), 0);
    lse.assign(static_cast<std::size_t>(c.B * c.H * c.T), 0);
    dq.assign(static_cast<std::size_t>(c.B * c.T * c.H * c.D), 0);
    dk.assign(static_cast<std::size_t>(c.B * c.S * c.G * c.D), 0);
    dv.assign(static_cast<std::size_t>(c.B * c.S * c.G * c.V), 0);
    for (std::int64_t b = 0; b < c.B; ++b)
      for (std::int64_t h = 0; h < c.H; ++h)
        for (std::int64_t t = 0; t < c.T; ++t) row(b, h, t, scale);
  }

  // Results are [B, T, H, .], gradients of keys [B, S, G, .].
  void row(std::int64_t b, std::int64_t h, std::int64_t t, double scale) {
    const std::int64_t n = visible(t), group = h / (c.H / c.G), query = (b * c.H + h) * c.T + t,
                       result = (b * c.T + t) * c.H + h;
    const auto key = [&](std::int64_t s) { return (b * c.G + group) * c.S + s; };
    const auto gradient = [&](std::int64_t s) { return (b * c.S + s) * c.G + group; };
    std::vector<double> w(static_cast<std::size_t>(n)), dw(static_cast<std::size_t>(n));
    double top = -std::numeric_limits<double>::infinity(), sum = 0, mean = 0;
    for (std::int64_t s = 0; s < n; ++s) {
      for (std::int64_t d = 0; d < c.D; ++d)
        at(w, s) += scale * at(q, query * c.D + d) * at(k, key(s) * c.D + d);
      top = std::max(top, at(w, s));
    }
    for (double& x : w) sum += x = std::exp(x - top);
    if (n > 0) at(lse, query) = top + std::log(sum);
    for (std::int64_t s = 0; s < n; ++s) {
      at(w, s) /= sum;
      for (std::int64_t d = 0; d < c.V; ++d) {
        at(out, result * c.V + d) += at(w, s) * at(v, key(s) * c.V + d);
        at(dw, s) += at(g, query * c.V + d) * at(v, key(s) * c.V + d);
        at(dv, gradient(s) * c.V + d) += at(w, s) * at(g, query * c.V + d);
      }
      mean += at(w, s) * at(dw, s);
    }
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t d = 0; d < c.D; ++d) {
        const double slope = at(w, s) * (at(dw, s) - mean) * scale;
        at(dq, result * c.D + d) += slope * at(k, key(s) * c.D + d);
        at(dk, gradient(s) * c.D + d) += slope * at(q, query * c.D + d);
      }
  }
};

void check_here(const Case& c) {
  SCOPED_TRACE(testing::Message() << "B " << c.B << " H " << c.H << " G " << c.G << " T " << c.T
                                  << " S " << c.S << " D " << c.D << " V " << c.V << " causal "
                                  << c.causal << " lies " << static_cast<int>(c.lies) << " start "
                                  << c.start);
  const double scale = 0.7 / std::sqrt(static_cast<double>(c.D) + 1);
  ir::AttentionShape s{.B = c.B,
                       .H = c.H,
                       .G = c.G,
                       .T = c.T,
                       .S = c.S,
                       .D = c.D,
                       .V = c.V,
                       .causal = c.causal,
                       .cached = c.start != -1000,
                       .scale = scale};
  Plain plain{c, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  KernelTest forward;
  plain.q = forward.add({c.B, c.H, c.T, c.D}, c.lies, -3, 3);
  plain.k = forward.add({c.B, c.G, c.S, c.D}, c.lies, -3, 3);
  plain.v = forward.add({c.B, c.G, c.S, c.V}, c.lies, -3, 3);
  KernelTest backward = forward;
  plain.g.assign(static_cast<std::size_t>(c.B * c.H * c.T * c.V), 0);
  for (std::size_t i = 0; i < plain.g.size(); ++i)
    plain.g[i] = std::sin(static_cast<double>(i) * 0.37);
  plain.run(scale);

  forward.set<ir::AttentionKernel>(s);
  if (s.cached) forward.put_int(c.start);
  const std::vector<float> out = forward.run(s.result_elements());
  EXPECT_LT(worst(out.data(), plain.out), 2e-6) << "out";
  EXPECT_LT(worst(out.data() + s.lse(), plain.lse), 1e-6) << "lse";

  backward.set<ir::AttentionGradientKernel>(s);
  std::vector<double> by_head(plain.out.size());
  for (std::int64_t b = 0, i = 0; b < c.B; ++b)
    for (std::int64_t h = 0; h < c.H; ++h)
      for (std::int64_t t = 0; t < c.T; ++t)
        for (std::int64_t d = 0; d < c.V; ++d)
          Plain::at(by_head, i++) = Plain::at(plain.out, ((b * c.T + t) * c.H + h) * c.V + d);
  backward.put({c.B, c.H, c.T, c.V}, c.lies, by_head);
  backward.put({c.B, c.H, c.T}, Lies::in_order, plain.lse);
  backward.put({c.B, c.H, c.T, c.V}, c.lies, plain.g);
  if (s.cached) backward.put_int(c.start);
  const std::vector<float> got = backward.run(s.gradient_elements());
  const auto compare = [&](const char* name, ir::PackedPart part, std::int64_t rows,
                           std::int64_t size, const std::vector<double>& wanted) {
    std::vector<float> part_of(wanted.size());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < size; ++i)
        part_of[static_cast<std::size_t>(r * size + i)] =
            got[static_cast<std::size_t>(part.offset + r * part.row + i)];
    EXPECT_LT(worst(part_of.data(), wanted), 5e-6) << name;
  };
  compare("dq", s.dq(), c.B * c.T, c.H * c.D, plain.dq);
  compare("dk", s.dk(), c.B * c.S, c.G * c.D, plain.dk);
  compare("dv", s.dv(), c.B * c.S, c.G * c.V, plain.dv);
}

void check(const Case& c) {
  on_each_target([&] { check_here(c); });
}

TEST(AttentionKernel, OfSizesAroundBlocks) {
  for (const bool causal : {false, true})
    for (const std::int64_t T : {1, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 131}) {
      check({2, 2, 2, T, T, 16, 16, causal});
      check({1, 3, 3, T, T + 5, 13, 9, causal});
    }
}

TEST(AttentionKernel, OfHeadsOfAnySize) {
  for (const std::int64_t D : {1, 4, 8, 12, 24, 32, 40, 64, 72})
    for (const std::int64_t V : {1, 8, 20, 32, 64, 72}) check({1, 2, 2, 37, 37, D, V, true});
}

TEST(AttentionKernel, OfOperandsAnywhere) {
  for (const Lies lies : {Lies::in_order, Lies::heads_inside, Lies::turned, Lies::spread}) {
    check({2, 2, 2, 8, 8, 16, 16, true, lies});
    check({2, 2, 2, 45, 45, 16, 24, true, lies});
    check({1, 2, 2, 20, 70, 11, 5, false, lies});
  }
}

TEST(AttentionKernel, OfHeadsThatShareKeys) {
  check({2, 4, 2, 8, 8, 16, 16, true});
  check({2, 6, 2, 40, 40, 16, 16, true});
  check({1, 4, 1, 35, 130, 8, 24, false});
  check({8, 8, 2, 33, 33, 8, 8, true});  // many groups: not split
}

// Few groups with many keys: split into parts.
TEST(AttentionKernel, OfManyKeys) {
  check({1, 2, 2, 300, 300, 16, 16, true});
  check({1, 1, 1, 5, 700, 16, 16, true});
  check({1, 4, 2, 129, 517, 8, 8, false});
}

TEST(AttentionKernel, OfMoreQueriesThanKeys) {
  check({2, 2, 2, 40, 10, 8, 8, true});  // the first 30 see nothing
  check({2, 2, 2, 40, 10, 8, 8, false});
}

TEST(AttentionKernel, OfACache) {
  for (const int start : {-50, -1, 0, 3, 60, 63, 64, 100, std::numeric_limits<int>::max()}) {
    check({2, 2, 1, 1, 70, 16, 16, true, Lies::heads_inside, start});
    check({1, 2, 2, 33, 100, 16, 16, true, Lies::heads_inside, start});
  }
}

TEST(AttentionKernel, OfNothing) {
  check({0, 2, 2, 8, 8, 8, 8, true});
  check({2, 2, 2, 0, 8, 8, 8, true});
  check({2, 2, 2, 8, 0, 8, 8, false});
  check({2, 2, 2, 8, 8, 8, 0, true});
}

// A key that a query does not see does not influence it, whatever its score is; a score of -inf has
// weight 0, and NaN propagates. (A NaN or infinite value is multiplied by a weight of zero, as in
// written-out attention, so it may reach queries that do not see it.)
void check_bad_key(double bad, std::int64_t where) {
  constexpr std::int64_t T = 70, D = 8;
  const ir::AttentionShape s{
      .B = 1, .H = 1, .G = 1, .T = T, .S = T, .D = D, .V = D, .causal = true, .scale = 1};
  KernelTest test;
  test.set<ir::AttentionKernel>(s);
  std::vector<double> ones(T * D, 1.0), k(T * D, 1.0), v(T * D);
  for (std::int64_t i = 0; i < T * D; ++i)
    v[static_cast<std::size_t>(i)] = static_cast<double>(i / D);
  k[static_cast<std::size_t>(where * D)] = bad;
  for (const auto* x : {&ones, &k, &v}) test.put({1, 1, T, D}, Lies::in_order, *x);
  const std::vector<float> out = test.run(s.result_elements());
  for (std::int64_t t = 0; t < T; ++t) {
    const float x = out[static_cast<std::size_t>(t * D)];
    const auto n = static_cast<double>(t + 1), total = n * (n - 1) / 2;
    if (t < where)
      EXPECT_NEAR(static_cast<double>(x), total / n, 1e-5 * n) << t << " before " << where;
    else if (bad < 0 && t > 0)
      EXPECT_NEAR(static_cast<double>(x), (total - static_cast<double>(where)) / (n - 1), 1e-5 * n)
          << t;
    else
      EXPECT_TRUE(std::isnan(x)) << t << " sees " << where << " of " << bad;
  }
}

TEST(AttentionKernel, OfWhatIsNoNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  on_each_target([] {
    for (const double bad : {std::nan(""), kInfinity, -kInfinity})
      for (const std::int64_t where : {0, 20, 33, 66}) check_bad_key(bad, where);
  });
}

}  // namespace
}  // namespace tensorgrad::cpu
