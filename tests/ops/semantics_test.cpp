// Elementwise ops at the points where libraries differ: ties, bounds, zero, infinities, NaN,
// integers. Expected values are PyTorch's documented behaviour (torch 2: derivatives.yaml for the
// gradients), computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/ops/literal.h"

namespace tensorgrad::checks {
namespace {

TEST(Semantics, MaximumAndMinimumSplitATie) {
  const std::vector<Arg> two{vec({1, 2, 3}), vec({1, 3, 2})};
  expect(two, [](In x) { return maximum(x[0], x[1]); }, {{1, 3, 3}, {{0.5, 0, 1}, {0.5, 1, 0}}});
  expect(two, [](In x) { return minimum(x[0], x[1]); }, {{1, 2, 2}, {{0.5, 1, 0}, {0.5, 0, 1}}});
  // A tie of an operand with itself: both halves.
  expect({vec({5})}, [](In x) { return maximum(x[0], x[0]); }, {{5}, {{1}}});
  expect({vec({0, -0.0})}, [](In x) { return maximum(x[0], 0); }, {{0, 0}, {{0.5, 0.5}}});
}

TEST(Semantics, MaximumAndMinimumLetNanThrough) {
  const std::vector<Arg> two{vec({kNan, 1, kNan, kInf}), vec({1, kNan, kNan, kNan})};
  expect(two, [](In x) { return maximum(x[0], x[1]); }, {{kNan, kNan, kNan, kNan}});
  expect(two, [](In x) { return minimum(x[0], x[1]); }, {{kNan, kNan, kNan, kNan}});
}

TEST(Semantics, ReluIsFlatAtZeroAndKeepsNan) {
  expect({vec({-1, 0, -0.0, 2, kInf, -kInf})}, [](In x) { return relu(x[0]); },
         {{0, 0, 0, 2, kInf, 0}, {{0, 0, 0, 1, 1, 0}}});
  expect({vec({kNan})}, [](In x) { return relu(x[0]); }, {{kNan}, {{1}}});
}

TEST(Semantics, LeakyReluTakesTheSlopeAtZero) {
  expect({vec({-2, 0, 3})}, [](In x) { return leaky_relu(x[0], 0.25f); },
         {{-0.5, 0, 3}, {{0.25, 0.25, 1}}});
}

TEST(Semantics, AbsAndSignAreFlatAtZero) {
  expect({vec({-2, 0, -0.0, 3})}, [](In x) { return abs(x[0]); }, {{2, 0, 0, 3}, {{-1, 0, 0, 1}}});
  expect({vec({-2, 0, 3})}, [](In x) { return sign(x[0]); }, {{-1, 0, 1}, {{0, 0, 0}}});
  expect({vec({-kInf, kNan})}, [](In x) { return sign(x[0]); }, {{-1, kNan}});
}

TEST(Semantics, ClampPassesTheGradientAtItsBounds) {
  expect({vec({-1, -0.5, 0, 0.5, 2})}, [](In x) { return clamp(x[0], -0.5f, 0.5f); },
         {{-0.5, -0.5, 0, 0.5, 0.5}, {{0, 1, 1, 1, 0}}});
  expect({vec({kNan, kInf, -kInf})}, [](In x) { return clamp(x[0], -1, 1); }, {{kNan, 1, -1}});
}

TEST(Semantics, ClampWithCrossedBoundsIsTheUpperOne) {
  expect({vec({-5, 0, 1, 2, 5})}, [](In x) { return clamp(x[0], 2, 1); },
         {{1, 1, 1, 1, 1}, {{0, 0, 0, 0, 0}}});
}

// Ops compute with the value that is stored.
TEST(Semantics, FullConvertsItsValueLikeCast) {
  expect({vec({1, 5})}, [](In x) { return x[0] + full({2}, 2, boolean); }, {{2, 6}, {{1, 1}}});
  expect({vec({1, 5})}, [](In x) { return x[0] * full({2}, -2.75, i32); }, {{-2, -10}, {{-2, -2}}});
}

TEST(Semantics, SoftplusFarOutAndAtZero) {
  // e^-87 is about the smallest normal number; the CPU flushes smaller results to zero
  // (tests/runtime/subnormals_test.cpp).
  expect({vec({0, 100, -87, 1e4, -1e4})}, [](In x) { return softplus(x[0]); },
         {{std::numbers::ln2, 100, 1.6458114310822737e-38, 1e4, 0},
          {{0.5, 1, 1.6458114310822737e-38, 1, 0}}});
  expect(
      {vec({0, 20, -20})}, [](In x) { return softplus(x[0]); },
      {{std::numbers::ln2, 20.000000002061153, 2.0611536181902037e-09}, {{0.5, 1, 2.0611536e-09}}});
  expect({vec({kNan, kInf, -kInf})}, [](In x) { return softplus(x[0]); }, {{kNan, kInf, 0}});
}

TEST(Semantics, SiluAndSigmoidFarOut) {
  expect({vec({0, 100, 1e4, -1e4, -1e30})}, [](In x) { return silu(x[0]); },
         {{0, 100, 1e4, 0, 0}, {{0.5, 1, 1, 0, 0}}});
  expect({vec({0, 1000, -1000, kInf, -kInf})}, [](In x) { return sigmoid(x[0]); },
         {{0.5, 1, 0, 1, 0}, {{0.25, 0, 0, 0, 0}}});
}

TEST(Semantics, GeluExactAndByTanh) {  // Phi(1) = 0.841344746...
  expect({vec({0, 1, -1, 10, -40})}, [](In x) { return gelu(x[0]); },
         {{0, 0.8413447460685429, -0.15865525393145707, 10, 0},
          {{0.5, 1.0833154705876864, -0.08331547058768639, 1, 0}},
          {1},
          3e-6});
  expect({vec({0, 1, -1, 10, -40})}, [](In x) { return gelu_tanh(x[0]); },
         {{0, 0.8411919906082768, -0.15880800939172324, 10, 0},
          {{0.5, 1.0829640838457826, -0.08296408384578256, 1, 0}},
          {1},
          3e-6});
}

// 1 + erf and 1 + tanh have no digits left there. Expected: x erfc(-x / sqrt(2)) / 2 and x / (1 +
// exp(-z)) in double.
TEST(Semantics, GeluKeepsItsDigitsFarBelowZero) {
  expect({vec({-3, -5, -6.5, -9, -12})}, [](In x) { return gelu(x[0]); },
         {{-0.004049694094890287, -1.4332578593959731e-06, -2.6104003795084313e-10,
           -1.015729565358458e-18, -2.1317785344932424e-32},
          {{-0.011945647204183927, -7.146946001792295e-06, -1.6950517937572625e-09,
            -9.13893737390664e-18, -2.5578956616748956e-31}},
          {1},
          6e-6});
  expect({vec({-3, -5, -6.5, -8, -9.5})}, [](In x) { return gelu_tanh(x[0]); },
         {{-0.003637392081773019, -2.291796196629504e-07, -6.278258772591381e-13,
           -3.107782937501113e-21, -6.678928766783929e-33},
          {{-0.011584166630969726, -1.5463619875325931e-06, -6.5834737677646126e-12,
            -4.7147845041068444e-20, -1.3898732192332707e-31}},
          {1},
          2e-5});
}

TEST(Semantics, TanhAndErfSaturate) {
  expect({vec({-1e3, 1e3, kInf, 0})}, [](In x) { return tanh(x[0]); },
         {{-1, 1, 1, 0}, {{0, 0, 0, 1}}});
  expect({vec({-1e3, 1e3, kInf, 0})}, [](In x) { return erf(x[0]); },
         {{-1, 1, 1, 0}, {{0, 0, 0, 2 * std::numbers::inv_sqrtpi}}});
}

TEST(Semantics, SmallNumbersKeepTheirDigits) {
  expect({vec({1e-8, -1e-10})}, [](In x) { return expm1(x[0]); }, {{1e-8, -1e-10}, {{1, 1}}});
  expect({vec({1e-8, -1e-10})}, [](In x) { return log1p(x[0]); }, {{1e-8, -1e-10}, {{1, 1}}});
  expect({vec({1e-8, -1e-10})}, [](In x) { return tanh(x[0]); }, {{1e-8, -1e-10}, {{1, 1}}});
  expect({vec({1e-8, -1e-10})}, [](In x) { return sin(x[0]); }, {{1e-8, -1e-10}, {{1, 1}}});
}

TEST(Semantics, RootsLogarithmsAndQuotientsAtTheEdge) {
  expect({vec({0, 4, -1})}, [](In x) { return sqrt(x[0]); }, {{0, 2, kNan}, {{kInf, 0.25, kNan}}});
  expect({vec({0, 4, -1})}, [](In x) { return rsqrt(x[0]); }, {{kInf, 0.5, kNan}});
  expect({vec({0, 1, -1, kInf})}, [](In x) { return log(x[0]); },
         {{-kInf, 0, kNan, kInf}, {{kInf, 1, -1, 0}}});
  expect({vec({1, -1, 0, kInf}), vec({0, 0, 0, kInf})}, [](In x) { return x[0] / x[1]; },
         {{kInf, -kInf, kNan, kNan}});
  expect({vec({89, -104, -kInf})}, [](In x) { return exp(x[0]); }, {{kInf, 0, 0}});
}

// da = b a^(b-1), 0 for b = 0; db = a^b log(a), 0 for a = 0 and b >= 0.
TEST(Semantics, PowAtZeroAndOfNegatives) {
  expect({vec({0, 0, 0, 2, -2}), vec({0, 1, 2, 0, 3})}, [](In x) { return pow(x[0], x[1]); },
         {{1, 0, 0, 1, -8}, {{0, 1, 0, 0, 12}, {0, 0, 0, std::numbers::ln2, kNan}}});
  expect({vec({0, 0}), vec({0.5, -1})}, [](In x) { return pow(x[0], x[1]); },
         {{0, kInf}, {{kInf, -kInf}, {0, -kInf}}});
  expect({vec({0, -3, 3})}, [](In x) { return pow(x[0], 2); }, {{0, 9, 9}, {{0, -6, 6}}});
  expect({vec({0, -3, 3})}, [](In x) { return pow(x[0], 0); }, {{1, 1, 1}, {{0, 0, 0}}});
  expect({vec({0, -3, 3})}, [](In x) { return pow(x[0], 1); }, {{0, -3, 3}, {{1, 1, 1}}});
}

TEST(Semantics, I32WrapsAround) {
  const std::vector<Arg> two{vec({kIntMax, kIntMin, 65536}, i32), vec({1, -1, 65536}, i32)};
  expect(two, [](In x) { return x[0] + x[1]; }, {{kIntMin, kIntMax, 131072}});
  expect(two, [](In x) { return x[0] * x[1]; }, {{kIntMax, kIntMin, 0}});
  expect(two, [](In x) { return -x[0] - 2; }, {{kIntMax, kIntMax - 1, -65538}});
  expect(two, [](In x) { return abs(x[0]); }, {{kIntMax, kIntMin, 65536}});
}

TEST(Semantics, I32IsNotDivided) {
  EXPECT_NE(error_of({vec({7}, i32), vec({2}, i32)}, [](In x) { return x[0] / x[1]; })
                .find("integer division is not supported"),
            std::string::npos);
  expect({vec({7}, i32)}, [](In x) { return x[0] / 2.0f; }, {{3.5}});
}

TEST(Semantics, CastDropsTheFractionAndSaturates) {
  expect({vec({2.9, -2.9, -0.5, 3e9, -3e9, kInf, -kInf, kNan})},
         [](In x) { return cast(x[0], i32); }, {{2, -2, 0, kIntMax, kIntMin, kIntMax, kIntMin, 0}});
  expect({vec({0, -0.0, 1e-30, kNan, -kInf})}, [](In x) { return cast(x[0], boolean); },
         {{0, 0, 1, 1, 1}});
  expect({vec({-1, 0, 7}, i32)}, [](In x) { return cast(cast(x[0], boolean), f32); }, {{1, 0, 1}});
}

TEST(Semantics, NumbersPromoteLikeTensors) {
  expect({vec({1, 2}, i32)}, [](In x) { return x[0] + 1; }, {{2, 3}});
  expect({vec({1, 2}, i32)}, [](In x) { return x[0] + 0.5; }, {{1.5, 2.5}});
  expect({vec({1, 0}, boolean)}, [](In x) { return x[0] + 1; }, {{2, 1}});
  expect({vec({1, 0}, boolean), vec({0.5, 0.5})}, [](In x) { return x[0] * x[1]; }, {{0.5, 0}});
}

TEST(Semantics, ComparisonsWithNanAreFalse) {
  const std::vector<Arg> two{vec({kNan, 1, kNan, 0}), vec({1, kNan, kNan, -0.0})};
  expect(two, [](In x) { return x[0] < x[1]; }, {{0, 0, 0, 0}});
  expect(two, [](In x) { return x[0] >= x[1]; }, {{0, 0, 0, 1}});
  expect(two, [](In x) { return equal(x[0], x[1]); }, {{0, 0, 0, 1}});
  expect(two, [](In x) { return not_equal(x[0], x[1]); }, {{1, 1, 1, 0}});
}

TEST(Semantics, InfiniteAndNanNumbersInTheProgram) {
  expect({vec({1, -2, 0})}, [](In x) { return x[0] * kInf; }, {{kInf, -kInf, kNan}});
  expect({vec({1, -2})}, [](In x) { return minimum(x[0], kInf); }, {{1, -2}, {{1, 1}}});
  expect({vec({1, -2})}, [](In x) { return where(x[0] > 0, x[0], -kInf); }, {{1, -kInf}, {{1, 0}}});
  expect({vec({1, -2})}, [](In x) { return x[0] + kNan; }, {{kNan, kNan}});
}

TEST(Semantics, WherePassesTheGradientToTheSideTaken) {
  expect({vec({1, 0, 1}, boolean), vec({1, 2, 3}), vec({4, 5, 6})},
         [](In x) { return where(x[0], x[1], x[2]); }, {{1, 5, 3}, {{1, 0, 1}, {0, 1, 0}}});
}

TEST(Semantics, StopGradientIsTheIdentityWithoutAGradient) {
  expect({vec({1, 2})}, [](In x) { return stop_gradient(x[0]); }, {{1, 2}, {{0, 0}}});
  expect({vec({3})}, [](In x) { return x[0] * stop_gradient(x[0]); }, {{9}, {{3}}});
}

}  // namespace
}  // namespace tensorgrad::checks
