// Loops and reductions against the scalar definition of their op, for all small lengths and odd
// alignments, on every SIMD target of the machine. Memory around the result must not change.
#include "codegen/cpu/vector_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "support/bits.h"
#include "support/threefry.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::Combine;
using ir::ScalarOp;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = -77.25f;

float bits(std::int32_t x) { return bit_cast<float>(x); }
std::int32_t number(float x) { return bit_cast<std::int32_t>(x); }
std::uint32_t u(std::int32_t x) { return static_cast<std::uint32_t>(x); }
bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || number(a) == number(b); }

// The scalar definition of an op.
std::optional<float> meaning(ScalarOp op, bool real, float a, float b, float c) {
  const std::int32_t x = number(a), y = number(b);
  const auto integer = [](std::uint32_t v) { return bits(static_cast<std::int32_t>(v)); };
  const bool nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case ScalarOp::add:
      return real ? a + b : integer(u(x) + u(y));
    case ScalarOp::sub:
      return real ? a - b : integer(u(x) - u(y));
    case ScalarOp::mul:
      return real ? a * b : integer(u(x) * u(y));
    case ScalarOp::div:
      return real ? std::optional(a / b) : std::nullopt;
    case ScalarOp::minimum:
      return real ? (nan ? kNan : b < a ? b : a) : bits(std::min(x, y));
    case ScalarOp::maximum:
      return real ? (nan ? kNan : a < b ? b : a) : bits(std::max(x, y));
    case ScalarOp::less:
      return bits(real ? a < b : x < y);
    case ScalarOp::less_equal:
      return bits(real ? a <= b : x <= y);
    case ScalarOp::equal:
      return bits(real ? a == b : x == y);
    case ScalarOp::logical_and:
      return bits(x & y);
    case ScalarOp::logical_or:
      return bits(x | y);
    case ScalarOp::logical_not:
      return bits(x ^ 1);
    case ScalarOp::select:
      return (x & 1) != 0 ? b : c;
    case ScalarOp::neg:
      return real ? -a : integer(0u - u(x));
    case ScalarOp::abs:
      return real ? std::fabs(a) : x < 0 ? integer(0u - u(x)) : a;
    case ScalarOp::sign:
      return real ? (std::isnan(a) ? a : static_cast<float>((a > 0) - (a < 0)))
                  : bits((x > 0) - (x < 0));
    case ScalarOp::sqrt:
      return real ? std::optional(std::sqrt(a)) : std::nullopt;
    case ScalarOp::to_f32:
      return real ? std::nullopt : std::optional(static_cast<float>(x));
    case ScalarOp::to_i32:
      if (!real) return a;
      if (std::isnan(a)) return bits(0);
      if (a >= 0x1p31f) return bits(std::numeric_limits<std::int32_t>::max());
      if (a < -0x1p31f) return bits(std::numeric_limits<std::int32_t>::min());
      return bits(static_cast<std::int32_t>(a));
    case ScalarOp::to_bool:
      return bits(real ? a != 0 : x != 0);
    case ScalarOp::is_finite:
      return bits(std::isfinite(a));
    default:
      return std::nullopt;
  }
}

constexpr ScalarOp kUnary[] = {ScalarOp::neg,    ScalarOp::abs,         ScalarOp::sign,
                               ScalarOp::sqrt,   ScalarOp::logical_not, ScalarOp::to_f32,
                               ScalarOp::to_i32, ScalarOp::to_bool,     ScalarOp::is_finite};
constexpr ScalarOp kBinary[] = {ScalarOp::add,         ScalarOp::sub,        ScalarOp::mul,
                                ScalarOp::div,         ScalarOp::minimum,    ScalarOp::maximum,
                                ScalarOp::less,        ScalarOp::less_equal, ScalarOp::equal,
                                ScalarOp::logical_and, ScalarOp::logical_or};

// Values with all kinds of bits; conditions are 0 or 1.
float sample(bool real, int i, int salt) {
  const auto word =
      threefry(7, static_cast<std::uint32_t>(salt), static_cast<std::uint32_t>(i), 0)[0];
  if (!real)
    return word % 5 == 0 ? bits(static_cast<std::int32_t>(word % 3) - 1)
                         : bits(static_cast<std::int32_t>(word));
  constexpr float kOdd[] = {0.0f, -0.0f, kInfinity,     -kInfinity,     kNan, 1e-40f,
                            3e9f, -3e9f, 2147483648.0f, -2147483648.0f, 0.75f};
  if (i % 2 == 0) return kOdd[word % std::size(kOdd)];
  return (static_cast<float>(word >> 8) * 0x1p-24f - 0.5f) * 37;
}

// One operand: an array, one row for all lines, or one scalar per line.
struct Given {
  std::vector<float> data;
  std::int64_t step = 0;
  bool one = false;
  float at(std::int64_t line, std::int64_t i) const {
    return data[static_cast<std::size_t>(3 + line * step + (one ? 0 : i))];
  }
  const float* begin() const { return data.data() + 3; }  // misaligned
};

Given operand(bool real, bool condition, char kind, std::int64_t lines, std::int64_t length,
              int salt) {
  Given g;
  g.step = kind == 'e' ? length : kind == 'n' ? 1 : 0;
  g.one = kind == 'n';
  for (int i = 0; i < 3 + std::max<std::int64_t>(lines, 1) * std::max<std::int64_t>(length, 1); ++i)
    g.data.push_back(condition ? bits(i * 7 % 3 == 0) : sample(real, i, salt));
  return g;
}

void check(ScalarOp op, bool real, const std::string& kinds, std::int64_t lines,
           std::int64_t length) {
  if (!meaning(op, real, 1, 1, 1)) return;
  unsigned ones = kNoOnes;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == 'n') ones |= 1u << i;
  const Loop loop = find_loop(op, real, ones);
  ASSERT_NE(loop, nullptr);
  std::vector<Given> x;
  const bool bool_op =
      op == ScalarOp::logical_and || op == ScalarOp::logical_or || op == ScalarOp::logical_not;
  for (std::size_t i = 0; i < 3; ++i)
    x.push_back(operand(real, bool_op || (op == ScalarOp::select && i == 0),
                        i < kinds.size() ? kinds[i] : 'e', lines, length, static_cast<int>(i)));
  std::vector<float> out(static_cast<std::size_t>(lines * length + 10), kGuard);
  loop({.a = x[0].begin(),
        .b = x[1].begin(),
        .c = x[2].begin(),
        .out = out.data() + 5,
        .lines = lines,
        .length = length,
        .a_step = x[0].step,
        .b_step = x[1].step,
        .c_step = x[2].step});
  for (std::size_t i = 0; i < 5; ++i)
    ASSERT_TRUE(out[i] == kGuard && out[out.size() - 1 - i] == kGuard) << name(op);
  for (std::int64_t l = 0; l < lines; ++l)
    for (std::int64_t i = 0; i < length; ++i) {
      const float a = x[0].at(l, i), b = x[1].at(l, i), c = x[2].at(l, i),
                  y = out[static_cast<std::size_t>(5 + l * length + i)];
      ASSERT_TRUE(same(y, *meaning(op, real, a, b, c)))
          << name(op) << " " << real << " " << kinds << " of " << a << ", " << b << ", " << c
          << " gives " << y;
    }
}

TEST(VectorLoops, ComputeWhatTheirOpMeans) {
  on_each_target([] {
    for (std::int64_t n = 0; n <= 70; n += n < 40 ? 1 : 7)
      for (const bool real : {true, false}) {
        for (const ScalarOp op : kUnary) check(op, real, "e", 1, n);
        for (const std::int64_t lines : {1, 3}) {
          for (const ScalarOp op : kBinary)
            for (const char* kinds : {"ee", "en", "ne", "er", "re", "rn", "nr"})
              check(op, real, kinds, lines, n);
          for (const char* kinds : {"eee", "ene", "een", "enn", "eer"})
            check(ScalarOp::select, real, kinds, lines, n);
        }
      }
  });
}

TEST(VectorLoops, ProductsAreRoundedBeforeTheSum) {
  on_each_target([] {
    for (std::int64_t n = 0; n <= 40; ++n)
      for (const std::string kinds : {"eee", "ene", "een", "enn", "rer", "ern"}) {
        std::vector<Given> x;
        for (std::size_t i = 0; i < 3; ++i)
          x.push_back(operand(true, false, kinds[i], 3, n, static_cast<int>(i)));
        const unsigned ones = (kinds[1] == 'n' ? kOneB : 0u) | (kinds[2] == 'n' ? kOneC : 0u);
        std::vector<float> out(static_cast<std::size_t>(3 * n + 1), kGuard);
        for (const ProductForm form : {ProductForm::plus, ProductForm::minus, ProductForm::from}) {
          find_product_loop(form, ones)({.a = x[0].begin(),
                                         .b = x[1].begin(),
                                         .c = x[2].begin(),
                                         .out = out.data(),
                                         .lines = 3,
                                         .length = n,
                                         .a_step = x[0].step,
                                         .b_step = x[1].step,
                                         .c_step = x[2].step});
          EXPECT_EQ(out.back(), kGuard);
          for (std::int64_t i = 0; i < 3 * n; ++i) {
            const volatile float product = x[0].at(i / n, i % n) * x[1].at(i / n, i % n);
            const float c = x[2].at(i / n, i % n);
            const float expected = form == ProductForm::plus    ? product + c
                                   : form == ProductForm::minus ? product - c
                                                                : c - product;
            ASSERT_TRUE(same(out[static_cast<std::size_t>(i)], expected))
                << kinds << " " << i << " of " << n;
          }
        }
      }
  });
}

TEST(VectorLoops, MayWriteOverAnOperand) {
  on_each_target([] {
    for (int n = 0; n <= 70; ++n) {
      std::vector<float> x, y, expected;
      for (int i = 0; i < n; ++i) {
        x.push_back(static_cast<float>(i) + 0.5f), y.push_back(static_cast<float>(i * i));
        expected.push_back(x.back() - y.back());
      }
      find_loop(ScalarOp::sub, true)({.a = x.data(), .b = y.data(), .out = y.data(), .length = n});
      EXPECT_EQ(y, expected);
      add_into(y.data(), x.data(), n);
      for (int i = 0; i < n; ++i)
        EXPECT_EQ(y[static_cast<std::size_t>(i)],
                  expected[static_cast<std::size_t>(i)] + x[static_cast<std::size_t>(i)]);
      std::vector<float> angle = x;
      find_loop(ScalarOp::sin, true)({.a = angle.data(), .out = angle.data(), .length = n});
      for (int i = 0; i < n; ++i)
        EXPECT_NEAR(angle[static_cast<std::size_t>(i)], std::sin(x[static_cast<std::size_t>(i)]),
                    1e-6);
    }
  });
}

// Integers: every order of additions is exact.
TEST(VectorLoops, FoldLinesOfAnyLength) {
  on_each_target([] {
    for (const int length :
         {0, 1, 2, 3, 7, 8, 12, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 130, 500, 513, 1300})
      for (const bool real : {true, false}) {
        constexpr int kLines = 3;
        std::vector<float> x(1);
        for (int i = 0; i < kLines * length; ++i) {
          const int v = i * 37 % 101 - 50;
          x.push_back(real ? static_cast<float>(v) : bits(v));
        }
        const DType dtype = real ? DType::f32 : DType::i32;
        for (const Combine combine : {Combine::add, Combine::max, Combine::min}) {
          double out[kLines], expected[kLines];
          for (int l = 0; l < kLines; ++l) {
            expected[l] = ir::identity(combine, dtype);
            for (int i = 0; i < length; ++i) {
              const double v = (l * length + i) * 37 % 101 - 50;
              expected[l] = combine == Combine::add   ? expected[l] + v
                            : combine == Combine::max ? std::max(expected[l], v)
                                                      : std::min(expected[l], v);
            }
          }
          find_fold(combine, dtype)(x.data() + 1, kLines, length, out);
          for (int l = 0; l < kLines; ++l)
            EXPECT_EQ(out[l], expected[l]) << ir::name(combine) << " of " << length << " " << real;
        }
        if (length == 0) continue;
        std::vector<double> acc(static_cast<std::size_t>(length), 5.0);
        find_column_fold(Combine::add, dtype)(x.data() + 1, kLines, length, acc.data());
        for (int i = 0; i < length; ++i) {
          double expected = 5;
          for (int l = 0; l < kLines; ++l) expected += (l * length + i) * 37 % 101 - 50;
          EXPECT_EQ(acc[static_cast<std::size_t>(i)], expected);
        }
      }
  });
}

TEST(VectorLoops, SumsAreAccurateAndNanWins) {
  on_each_target([] {
    std::vector<float> x;
    double sum = 0, size = 0;
    for (int i = 0; i < 4099; ++i) {
      x.push_back(sample(true, 3 * i + 1, 9));
      if (!std::isfinite(x.back()) || std::fabs(x.back()) > 1e6f) x.back() = 0.1f;
      sum += static_cast<double>(x.back()), size += std::fabs(static_cast<double>(x.back()));
    }
    double out = 0;
    find_fold(Combine::add, DType::f32)(x.data(), 1, 4099, &out);
    EXPECT_NEAR(out, sum,
                12 * 0x1p-24 * size);  // eight additions per lane and four more to join lanes
    for (const std::size_t at : {std::size_t{0}, std::size_t{100}, x.size() - 1})
      for (const Combine combine : {Combine::add, Combine::mul, Combine::max, Combine::min}) {
        std::vector<float> y = x;
        y[at] = kNan;
        find_fold(combine, DType::f32)(y.data(), 1, 4099, &out);
        EXPECT_TRUE(std::isnan(out)) << ir::name(combine) << " " << at;
      }
    std::vector<float> wraps(100, bits(std::numeric_limits<std::int32_t>::max()));
    find_fold(Combine::add, DType::i32)(wraps.data(), 1, 100, &out);
    EXPECT_EQ(out, static_cast<double>(static_cast<std::int32_t>(100u * 0x7fffffffu)));
  });
}

TEST(VectorLoops, EverySecondOfSomeRows) {
  on_each_target([] {
    for (const std::int64_t rows : {1, 3})
      for (std::int64_t n = 1; n <= 40; ++n) {
        const std::int64_t down = 2 * n + 5;
        // The last element read is the last one of the memory.
        std::vector<float> from(usize((rows - 1) * down + 2 * n - 1));
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
        std::vector<float> to(usize(rows * n) + 1, kGuard);
        every_second(from.data(), down, rows, n, to.data());
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t i = 0; i < n; ++i)
            EXPECT_EQ(to[usize(r * n + i)], static_cast<float>(r * down + 2 * i)) << n;
        EXPECT_EQ(to.back(), kGuard);
      }
  });
}

TEST(VectorLoops, IotaWrapsAround) {
  on_each_target([] {
    std::vector<float> out(38, kGuard);
    iota_loop(0x7ffffff0u, 3, out.data(), 37);
    for (int i = 0; i < 37; ++i)
      EXPECT_EQ(u(number(out[static_cast<std::size_t>(i)])), 0x7ffffff0u + 3 * u(i));
    EXPECT_EQ(out.back(), kGuard);
  });
}

TEST(VectorLoops, RandomNumbersAreThreefry) {
  on_each_target([] {
    std::vector<float> a, b, c, out(37);
    for (int i = 0; i < 37; ++i)
      a.push_back(bits(i * 3)), b.push_back(bits(-i)), c.push_back(bits(i * i));
    random_loop(a.data(), b.data(), c.data(), 11, out.data(), 37);
    for (int i = 0; i < 37; ++i)
      EXPECT_EQ(out[static_cast<std::size_t>(i)],
                unit_float(threefry(u(i * 3), u(-i), 11, u(i * i))[0]));
  });
}

}  // namespace
}  // namespace tensorgrad::cpu
