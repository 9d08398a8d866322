// Constants, arithmetic, comparison, logic, casts and random numbers. Values of transcendental
// functions come from mpmath with 30 digits; the others are computed by hand.
#include "reference/threefry.h"
#include "tests/reference/eval.h"

namespace tensorgrad::reference {
namespace {

using ir::CastAttrs;
using ir::ConstantAttrs;
using ir::NoAttrs;

TEST(Constant, IsAnElementOfItsDType) {
  // the float next to 0.1 is 13421773 / 2^27
  expect_eval("constant", {}, ConstantAttrs{0.1, f32}, floats({}, {13421773.0 / 134217728.0}));
  expect_eval("constant", {}, ConstantAttrs{kNan, f32}, floats({}, {kNan}));
  expect_eval("constant", {}, ConstantAttrs{-kInf, f32}, floats({}, {-kInf}));
  expect_eval("constant", {}, ConstantAttrs{16777217, i32}, ints({}, {16777217}));
  expect_eval("constant", {}, ConstantAttrs{1, boolean}, bools({}, {1}));
}

TEST(Constant, Iota) {
  expect_eval("iota", {}, ir::IotaAttrs{4}, ints({4}, {0, 1, 2, 3}));
  expect_eval("iota", {}, ir::IotaAttrs{0}, ints({0}, {}));
}

struct Unary {
  const char* op;
  std::vector<double> x, y;
};

TEST(Elementwise, UnaryF32) {
  const std::vector<Unary> rows = {
      {"neg", {1.5, -2, kInf}, {-1.5, 2, -kInf}},
      {"abs", {-1.5, 2, -kInf, kNan}, {1.5, 2, kInf, kNan}},
      {"sign", {-3, 0, 0.1, kNan, -kInf}, {-1, 0, 1, kNan, -1}},
      {"sqrt", {2, 0, -1}, {1.4142135623730950488, 0, kNan}},
      {"rsqrt", {2, 0, 4}, {0.7071067811865475244, kInf, 0.5}},
      {"exp", {1, -0.5, 0, -kInf}, {2.7182818284590452354, 0.6065306597126334236, 1, 0}},
      {"expm1", {1e-10, 0, -kInf}, {1.0000000000500000364e-10, 0, -1}},
      {"log", {2, 1, 0, -1}, {0.69314718055994530942, 0, -kInf, kNan}},
      {"log1p", {1e-10, 0, -1}, {9.9999999995000003644e-11, 0, -kInf}},
      {"sin", {1, 0}, {0.84147098480789650665, 0}},
      {"cos", {1, 0}, {0.5403023058681397174, 1}},
      {"tanh", {0.5, 0, -1000}, {0.4621171572600097585, 0, -1}},
      {"erf", {0.5, -2, 0, kInf}, {0.52049987781304653768, -0.99532226501895273416, 0, 1}},
      // exp(-700) is still a normal double, exp(1000) is not
      {"sigmoid",
       {2, -2, 0, -700, 1000, -1000, kInf, -kInf, kNan},
       {0.88079707797788244406, 0.11920292202211755594, 0.5, 9.8596765437597708567e-305, 1, 0, 1, 0,
        kNan}},
  };
  for (const auto& [op, x, y] : rows) {
    const Shape shape{static_cast<std::int64_t>(x.size())};
    expect_eval_near(op, {floats(shape, x)}, NoAttrs{}, floats(shape, y), 4e-16);
  }
}

struct Binary {
  const char* op;
  std::vector<double> a, b, y;
};

TEST(Elementwise, BinaryF32) {
  const std::vector<Binary> rows = {
      {"add", {1, kInf, kInf}, {2.5, 1, -kInf}, {3.5, kInf, kNan}},
      {"sub", {1, kInf}, {2.5, kInf}, {-1.5, kNan}},
      {"mul", {3, 0}, {-0.5, kInf}, {-1.5, kNan}},
      {"div", {3, 1, 0, -1}, {2, 0, 0, 0}, {1.5, kInf, kNan, -kInf}},
      {"pow", {2, 2, -2, 0, -1}, {1.5, -1, 3, 0, 0.5}, {2.8284271247461900976, 0.5, -8, 1, kNan}},
      {"maximum", {1, 2, kNan, 1, -kInf}, {2, 2, 1, kNan, 0}, {2, 2, kNan, kNan, 0}},
      {"minimum", {1, 2, kNan, 1, kInf}, {2, 2, 1, kNan, 0}, {1, 2, kNan, kNan, 0}},
  };
  for (const auto& [op, a, b, y] : rows) {
    const Shape shape{static_cast<std::int64_t>(y.size())};
    expect_eval_near(op, {floats(shape, a), floats(shape, b)}, NoAttrs{}, floats(shape, y), 4e-16);
  }
}

TEST(Elementwise, I32WrapsAround) {
  const std::vector<Binary> rows = {
      {"add", {kIntMax, 3}, {1, -5}, {kIntMin, -2}},
      {"sub", {kIntMin, 3}, {1, 5}, {kIntMax, -2}},
      // 65537^2 = 2^32 + 2^17 + 1; 46341^2 = 2147488281 = 2^32 - 2147479015, not exact in f32;
      // INT_MAX^2 = 2^62 - 2^32 + 1, not exact in a double
      {"mul",
       {65537, 46341, kIntMax, kIntMin},
       {65537, 46341, kIntMax, -1},
       {131073, -2147479015, 1, kIntMin}},
      {"maximum", {kIntMin, 7}, {kIntMax, -7}, {kIntMax, 7}},
      {"minimum", {kIntMin, 7}, {kIntMax, -7}, {kIntMin, -7}},
  };
  for (const auto& [op, a, b, y] : rows) {
    const Shape shape{static_cast<std::int64_t>(y.size())};
    expect_eval(op, {ints(shape, a), ints(shape, b)}, NoAttrs{}, ints(shape, y));
  }
  expect_eval("neg", {ints({3}, {5, kIntMin, 0})}, NoAttrs{}, ints({3}, {-5, kIntMin, 0}));
  expect_eval("abs", {ints({3}, {-5, kIntMin, 5})}, NoAttrs{}, ints({3}, {5, kIntMin, 5}));
  expect_eval("sign", {ints({3}, {-5, kIntMax, 0})}, NoAttrs{}, ints({3}, {-1, 1, 0}));
}

TEST(Elementwise, RankZeroAndEmpty) {
  expect_eval("add", {floats({}, {1}), floats({}, {2})}, NoAttrs{}, floats({}, {3}));
  expect_eval("exp", {floats({2, 0}, {})}, NoAttrs{}, floats({2, 0}, {}));
}

TEST(Compare, EachDType) {
  const Value a = floats({5}, {1, 2, 3, kNan, kNan}), b = floats({5}, {2, 2, 2, 0, kNan});
  expect_eval("less", {a, b}, NoAttrs{}, bools({5}, {1, 0, 0, 0, 0}));
  expect_eval("less_equal", {a, b}, NoAttrs{}, bools({5}, {1, 1, 0, 0, 0}));
  expect_eval("equal", {a, b}, NoAttrs{}, bools({5}, {0, 1, 0, 0, 0}));
  // neighbours that one float cannot tell apart
  expect_eval("less", {ints({1}, {16777216}), ints({1}, {16777217})}, NoAttrs{}, bools({1}, {1}));
  const Value p = bools({4}, {0, 0, 1, 1}), q = bools({4}, {0, 1, 0, 1});
  expect_eval("less", {p, q}, NoAttrs{}, bools({4}, {0, 1, 0, 0}));
  expect_eval("less_equal", {p, q}, NoAttrs{}, bools({4}, {1, 1, 0, 1}));
  expect_eval("equal", {p, q}, NoAttrs{}, bools({4}, {1, 0, 0, 1}));
}

TEST(Compare, Logic) {
  const Value p = bools({4}, {0, 0, 1, 1}), q = bools({4}, {0, 1, 0, 1});
  expect_eval("logical_and", {p, q}, NoAttrs{}, bools({4}, {0, 0, 0, 1}));
  expect_eval("logical_or", {p, q}, NoAttrs{}, bools({4}, {0, 1, 1, 1}));
  expect_eval("logical_not", {p}, NoAttrs{}, bools({4}, {1, 1, 0, 0}));
}

TEST(Compare, WhereDropsTheOtherSide) {
  const Value condition = bools({2}, {1, 0});
  expect_eval("where", {condition, floats({2}, {1, kNan}), floats({2}, {kNan, 2})}, NoAttrs{},
              floats({2}, {1, 2}));
  expect_eval("where", {condition, ints({2}, {1, 2}), ints({2}, {3, 4})}, NoAttrs{},
              ints({2}, {1, 4}));
  expect_eval("where", {condition, bools({2}, {0, 0}), bools({2}, {1, 1})}, NoAttrs{},
              bools({2}, {0, 1}));
}

TEST(Compare, IsFinite) {
  expect_eval("is_finite", {floats({4}, {1, kInf, -kInf, kNan})}, NoAttrs{},
              bools({4}, {1, 0, 0, 0}));
}

TEST(Cast, ToI32TruncatesAndSaturates) {
  expect_eval("cast", {floats({8}, {1.9, -1.9, -0.5, kNan, kInf, -kInf, 3e9, -3e9})},
              CastAttrs{i32}, ints({8}, {1, -1, 0, 0, kIntMax, kIntMin, kIntMax, kIntMin}));
  expect_eval("cast", {bools({2}, {0, 1})}, CastAttrs{i32}, ints({2}, {0, 1}));
}

TEST(Cast, ToBoolAndF32) {
  expect_eval("cast", {floats({5}, {0, -0.0, 0.5, kNan, -kInf})}, CastAttrs{boolean},
              bools({5}, {0, 0, 1, 1, 1}));
  expect_eval("cast", {ints({3}, {0, 2, -1})}, CastAttrs{boolean}, bools({3}, {0, 1, 1}));
  expect_eval("cast", {bools({2}, {0, 1})}, CastAttrs{f32}, floats({2}, {0, 1}));
  expect_eval("cast", {ints({1}, {16777217})}, CastAttrs{f32}, floats({1}, {16777217}));
}

TEST(CheckIndex, PassesIdsOrFails) {
  const Value ids = ints({3}, {0, 4, 2});
  expect_eval("check_index", {ids}, ir::CheckAttrs{5}, ids);
  EXPECT_EQ(user_error_of("check_index", {ids}, ir::CheckAttrs{4}, ids.type),
            "check_index: id 4 is outside an axis of size 4");
  EXPECT_EQ(user_error_of("check_index", {ints({}, {-1})}, ir::CheckAttrs{4}, {i32, {}}),
            "check_index: id -1 is outside an axis of size 4");
}

TEST(StopGradient, IsTheIdentity) {
  expect_eval("stop_gradient", {floats({2}, {1.5, kNan})}, NoAttrs{}, floats({2}, {1.5, kNan}));
}

// The known answers of Random123 (kat_vectors, threefry2x32 with 20 rounds).
TEST(Random, ThreefryKnownAnswers) {
  using Words = std::array<std::uint32_t, 2>;
  EXPECT_EQ(threefry({0, 0}, {0, 0}), (Words{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}),
            (Words{0xc4923a9c, 0x483df7a0}));
}

TEST(Random, UpperBitsOfTheFirstWord) {
  // The same known answers: key (seed, step), counter (site, index), first word >> 8 over 2^24.
  const auto random = [](double seed, double step, std::int64_t site, double index, double bits) {
    expect_eval("random", {ints({1}, {seed}), ints({1}, {step}), ints({1}, {index})},
                ir::RandomAttrs{site}, floats({1}, {bits / 16777216}));
  };
  random(0, 0, 0, 0, 0x6b2001);
  random(-1, -1, 0xffffffff, -1, 0x1cb996);
  // 0x85a308d3 as an i32 is 0x85a308d3 - 2^32
  random(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3 - 4294967296.0, 0xc4923a);
}

}  // namespace
}  // namespace tensorgrad::reference
