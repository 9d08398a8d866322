// ssd against its recurrence, written as plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checks/sample_graph.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad {
namespace {

struct Problem {
  std::int64_t B, L, H, P, G, N;
  std::vector<float> x, dt, A_log, b, c, D;
};

Problem draw_problem(std::int64_t B, std::int64_t L, std::int64_t H, std::int64_t P, std::int64_t G,
                     std::int64_t N) {
  const auto floats = [](const char* name, std::int64_t count, double low, double high) {
    const std::vector<double> drawn =
        checks::draw(checks::real({count}, low, high), checks::seed_of(name));
    return std::vector<float>(drawn.begin(), drawn.end());
  };
  return {B,
          L,
          H,
          P,
          G,
          N,
          floats("x", B * L * H * P, -2, 2),
          floats("dt", B * L * H, -6, 1),
          floats("A_log", H, 0, 2.7),
          floats("B", B * L * G * N, -1, 1),
          floats("C", B * L * G * N, -1, 1),
          floats("D", H, -1, 1)};
}

// h = a h + dl B x^T, y = C^T h + D x, position by position.
std::vector<double> recurrence(const Problem& p) {
  std::vector<double> y(p.x.size());
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t b = 0; b < p.B; ++b)
    for (std::int64_t head = 0; head < p.H; ++head) {
      std::vector<double> h(at(p.N * p.P), 0.0);
      for (std::int64_t l = 0; l < p.L; ++l) {
        const std::int64_t place = (b * p.L + l) * p.H + head,
                           group = (b * p.L + l) * p.G + head * p.G / p.H;
        const double dl = std::log1p(std::exp(static_cast<double>(p.dt[at(place)])));
        const double a = std::exp(-std::exp(static_cast<double>(p.A_log[at(head)])) * dl);
        for (std::int64_t i = 0; i < p.P; ++i) {
          const double x = p.x[at(place * p.P + i)];
          double sum = p.D[at(head)] * x;
          for (std::int64_t n = 0; n < p.N; ++n) {
            double& state = h[at(n * p.P + i)];
            state = a * state + dl * p.b[at(group * p.N + n)] * x;
            sum += p.c[at(group * p.N + n)] * state;
          }
          y[at(place * p.P + i)] = sum;
        }
      }
    }
  return y;
}

std::vector<float> chunked(const Problem& p, std::int64_t chunk) {
  struct None {};
  const Shape b{p.B, p.L, p.G, p.N};
  auto program = compile_forward(None{},
                                 {.inputs = {{"x", {p.B, p.L, p.H, p.P}},
                                             {"dt", {p.B, p.L, p.H}},
                                             {"A_log", {p.H}},
                                             {"B", b},
                                             {"C", b},
                                             {"D", {p.H}}},
                                  .device = "cpu"},
                                 [=](const None&, const Inputs& in) {
                                   return ssd(in["x"], in["dt"], in["A_log"], in["B"], in["C"],
                                              in["D"], {.chunk = chunk});
                                 });
  const Array y =
      program
          .run({{"x", p.x}, {"dt", p.dt}, {"A_log", p.A_log}, {"B", p.b}, {"C", p.c}, {"D", p.D}})
          .output();
  return {y.floats().begin(), y.floats().end()};
}

// Largest difference, relative to the largest value.
double distance(const std::vector<float>& got, const std::vector<double>& want) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(got[i] - want[i]);
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

TEST(Ssd, IsTheRecurrenceForEveryChunk) {
  const Problem p = draw_problem(2, 150, 4, 5, 2, 6);
  const std::vector<double> want = recurrence(p);
  for (const std::int64_t chunk :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, p.L, 10 * p.L})
    EXPECT_LT(distance(chunked(p, chunk), want), 1e-5) << "chunks of " << chunk;
}

TEST(Ssd, EveryHeadUsesItsGroup) {
  for (const std::int64_t G : {1, 2, 3, 6}) {
    const Problem p = draw_problem(1, 9, 6, 2, G, 3);
    EXPECT_LT(distance(chunked(p, 4), recurrence(p)), 1e-5) << G << " groups";
  }
}

// Above the diagonal the exponents are positive: without the mask, exp would be infinite, and
// infinity times 0 is NaN.
TEST(Ssd, StrongDecayStaysFinite) {
  Problem p = draw_problem(1, 64, 2, 3, 1, 4);
  std::fill(p.dt.begin(), p.dt.end(), 30.0f);
  std::fill(p.A_log.begin(), p.A_log.end(), 3.0f);
  EXPECT_LT(distance(chunked(p, 64), recurrence(p)), 1e-5);
  EXPECT_LT(distance(chunked(p, 16), recurrence(p)), 1e-5);
}

TEST(Ssd, LaterPositionsChangeNoBitOfEarlierOnes) {
  const Problem p = draw_problem(1, 20, 2, 3, 1, 4);
  for (const std::int64_t chunk : {1, 6, 64}) {
    const std::vector<float> before = chunked(p, chunk);
    for (const std::int64_t changed : {0, 5, 6, 13, 19}) {
      Problem q = p;
      const auto touch = [&](std::vector<float>& values) {  // all of the changed position's
        const auto width = static_cast<std::ptrdiff_t>(values.size()) / q.L;
        for (auto it = values.begin() + changed * width;
             it != values.begin() + (changed + 1) * width; ++it)
          *it += 1.5f;
      };
      touch(q.x), touch(q.dt), touch(q.b), touch(q.c);
      const std::vector<float> after = chunked(q, chunk);
      const auto first = static_cast<std::size_t>(changed * q.H * q.P);
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(first),
                             after.begin()))
          << "chunks of " << chunk << ", position " << changed;
      EXPECT_NE(before[first], after[first]);
    }
  }
}

}  // namespace
}  // namespace tensorgrad
