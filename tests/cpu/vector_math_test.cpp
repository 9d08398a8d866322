// The vector functions against libm in double, at points of all exponents, on every SIMD target of
// the machine.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "codegen/cpu/vector_loops.h"
#include "support/bits.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::ScalarOp;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The error of a float in units in the last place of the true value; subnormal values use the
// smallest unit.
double ulps(float value, double truth) {
  if (std::isnan(truth)) return std::isnan(value) ? 0 : 1e9;
  if (std::isnan(value)) return 1e9;
  // A value that exceeds the largest float by less than half a unit may round to that float or to
  // infinity.
  if (std::fabs(truth) >= 0x1.ffffffp127)
    return std::isinf(value) && (value > 0) == (truth > 0) ? 0 : 1e9;
  if (std::isinf(value)) return 1e9;
  const int exponent = truth == 0 ? -126 : std::max(std::ilogb(truth), -126);
  return std::fabs(static_cast<double>(value) - truth) / std::ldexp(1.0, exponent - 23);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct Function {
  const char* name;
  ScalarOp op;
  double (*truth)(double);
  double bound;  // in units in the last place
};

constexpr Function kFunctions[] = {
    {"exp", ScalarOp::exp, std::exp, 1.2},    {"expm1", ScalarOp::expm1, std::expm1, 1.7},
    {"log", ScalarOp::log, std::log, 1.0},    {"log1p", ScalarOp::log1p, std::log1p, 1.5},
    {"tanh", ScalarOp::tanh, std::tanh, 2.5}, {"erf", ScalarOp::erf, std::erf, 1.5},
    {"sin", ScalarOp::sin, std::sin, 0.6},    {"cos", ScalarOp::cos, std::cos, 0.6},
    {"sqrt", ScalarOp::sqrt, std::sqrt, 0.5}, {"normal_cdf", ScalarOp::normal_cdf, normal_cdf, 6.0},
};

std::vector<float> apply(ScalarOp op, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  find_loop(op,
            true)({.a = x.data(), .out = y.data(), .length = static_cast<std::int64_t>(x.size())});
  return y;
}

// Bit patterns of all floats, some thousands apart; closer where functions change quickly.
std::vector<float> points() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 20011)
    x.push_back(bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -120000; i <= 120000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  for (int i = -30000; i <= 30000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  for (const float edge : {0.0f, 1.0f, 0.5f, 0.70710678f, 0.41421356f, -0.29289322f, 88.72284f,
                           -87.33655f, -103.97208f, 3.9192059f, 9.01f})
    for (float up = edge, down = edge, i = 0; i < 50; ++i) {
      x.push_back(up), x.push_back(down), x.push_back(-up), x.push_back(-down);
      up = std::nextafter(up, kInfinity), down = std::nextafter(down, -kInfinity);
    }
  return x;
}

TEST(VectorMath, StaysWithinTheBounds) {
  const std::vector<float> x = points();
  for (const Function& f : kFunctions) {
    std::vector<double> truth(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) truth[i] = f.truth(static_cast<double>(x[i]));
    on_each_target([&] {
      const std::vector<float> y = apply(f.op, x);
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (const double off = ulps(y[i], truth[i]); off > worst) worst = off, where = x[i];
      EXPECT_LE(worst, f.bound) << f.name << "(" << std::hexfloat << where << ")";
    });
  }
}

TEST(VectorMath, SpecialsAreThoseOfLibm) {
  const float denormal = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {0.0f,
                                -0.0f,
                                kInfinity,
                                -kInfinity,
                                kNan,
                                denormal,
                                -denormal,
                                1e-39f,
                                -1e-39f,
                                -1.0f,
                                1.0f,
                                -2.0f,
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::lowest()};
  on_each_target([&] {
    for (const Function& f : kFunctions) {
      const std::vector<float> y = apply(f.op, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double truth = f.truth(static_cast<double>(x[i]));
        EXPECT_LE(ulps(y[i], truth), f.bound) << f.name << "(" << x[i] << ") = " << y[i];
        EXPECT_TRUE(truth != 0 || std::signbit(y[i]) == std::signbit(truth))
            << f.name << "(" << x[i] << ")";
      }
    }
  });
}

TEST(VectorMath, PowKeepsAllCases) {
  std::vector<float> x, y;
  const std::vector<float> edges = {
      0.0f,       -0.0f,      1.0f,   -1.0f,     2.0f,       -2.0f,   0.5f,
      -0.5f,      3.0f,       -3.0f,  10.0f,     1e-40f,     -1e-40f, 1e38f,
      -1e38f,     1.5f,       -1.5f,  127.0f,    -149.0f,    1e9f,    4194303.0f,
      4194305.0f, 8388607.0f, 1e-20f, kInfinity, -kInfinity, kNan,    0.99999994f};
  for (const float a : edges)
    for (const float b : edges) x.push_back(a), y.push_back(b);
  for (int i = 1; i < 2000; ++i)
    for (int j = -20; j <= 20; ++j) {
      x.push_back(static_cast<float>(i) * 0.013f), y.push_back(static_cast<float>(j) * 0.37f);
      x.push_back(static_cast<float>(-i) * 0.013f), y.push_back(static_cast<float>(j));
      x.push_back(bit_cast<float>(static_cast<std::uint32_t>(i) * 1066000u)),
          y.push_back(static_cast<float>(j) * 0.11f);
    }
  on_each_target([&] {
    std::vector<float> z(x.size());
    find_loop(ScalarOp::pow, true)({.a = x.data(),
                                    .b = y.data(),
                                    .out = z.data(),
                                    .length = static_cast<std::int64_t>(x.size())});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double truth = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
      ASSERT_LE(ulps(z[i], truth), 0.6) << "pow(" << x[i] << ", " << y[i] << ") = " << z[i];
      ASSERT_TRUE(truth != 0 || std::signbit(z[i]) == std::signbit(truth)) << x[i] << " " << y[i];
    }
  });
}

}  // namespace
}  // namespace tensorgrad::cpu
