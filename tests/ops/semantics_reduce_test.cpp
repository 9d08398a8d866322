// Reductions, shapes and windows on values that are easy to follow; PyTorch's results where
// libraries differ (ties, empty axes, one element, zeros in a product).
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "runtime/device.h"
#include "tests/ops/literal.h"

namespace tensorgrad::checks {
namespace {

TEST(ReduceSemantics, TiesOfMaxAndMinShareEvenly) {
  expect({vec({3, 1, 3})}, [](In x) { return max(x[0]); }, {{3}, {{0.5, 0, 0.5}}});
  expect({vec({1, 4, 1, 1})}, [](In x) { return min(x[0]); },
         {{1}, {{1 / 3.0, 0, 1 / 3.0, 1 / 3.0}}});
  expect({given({2, 2}, {-kInf, -kInf, 1, -kInf})}, [](In x) { return max(x[0], 1); },
         {{-kInf, 1}, {{0.5, 0.5, 1, 0}}});
}

TEST(ReduceSemantics, NanWins) {
  const Arg x = given({3, 3}, {1, kNan, 2, kNan, 1, 2, 1, 3, 2});
  expect({x}, [](In t) { return max(t[0], 1); }, {{kNan, kNan, 3}});
  expect({x}, [](In t) { return min(t[0], 1); }, {{kNan, kNan, 1}});
  expect({x}, [](In t) { return argmax(t[0], 1); }, {{1, 0, 1}});
  expect({x}, [](In t) { return argmin(t[0], 1); }, {{1, 0, 0}});
  expect({x}, [](In t) { return max(t[0], 0); }, {{kNan, kNan, 2}});
}

TEST(ReduceSemantics, ProductWithZeros) {
  expect({given({4, 3}, {2, 3, 4, 2, 0, 3, 0, 0, 3, 0, 0, 0})}, [](In x) { return prod(x[0], 1); },
         {{24, 0, 0, 0}, {{12, 8, 6, 0, 6, 0, 0, 0, 0, 0, 0, 0}}});
}

TEST(ReduceSemantics, VarianceAndItsCorrection) {
  // mean 7/3, squares of the distances add to 42/9
  expect({vec({1, 2, 4})}, [](In x) { return var(x[0]); },
         {{7.0 / 3}, {{-4.0 / 3, -1.0 / 3, 5.0 / 3}}});
  expect({vec({1, 2, 4})}, [](In x) { return var(x[0], {}, false, 0); }, {{14.0 / 9}});
  expect({vec({1, 2, 4})}, [](In x) { return var(x[0], {}, false, 2); }, {{14.0 / 3}});
  expect({vec({1, 2, 4})}, [](In x) { return var(x[0], {}, false, 3); }, {{kInf}});
  expect({vec({5})}, [](In x) { return var(x[0]); }, {{kNan}});
  expect({vec({5})}, [](In x) { return var(x[0], {}, false, 0); }, {{0}});
  expect({vec({1, 2, 4})}, [](In x) { return stddev(x[0]); }, {{std::sqrt(7.0 / 3)}});
}

TEST(ReduceSemantics, OfNothing) {
  const Arg x = real({2, 0});
  expect({x}, [](In t) { return sum(t[0], 1); }, {{0, 0}});
  expect({x}, [](In t) { return prod(t[0], 1); }, {{1, 1}});
  expect({x}, [](In t) { return sum(t[0], 0); }, {{}});
  expect({x}, [](In t) { return max(t[0], 0); }, {{}});
  expect({x}, [](In t) { return matmul(t[0], swap_axes(t[0], 0, 1)); }, {{0, 0, 0, 0}});
  const auto mean_of_nothing = error_of({x}, [](In t) { return mean(t[0], 1); });
  EXPECT_NE(mean_of_nothing.find("empty"), std::string::npos) << mean_of_nothing;
  const auto max_of_nothing = error_of({x}, [](In t) { return max(t[0], 1); });
  EXPECT_NE(max_of_nothing.find("empty"), std::string::npos) << max_of_nothing;
  const auto first_of_nothing = error_of({x}, [](In t) { return argmax(t[0], 1); });
  EXPECT_NE(first_of_nothing.find("empty"), std::string::npos) << first_of_nothing;
}

TEST(ReduceSemantics, PositionOfTheFirst) {
  expect({given({2, 4}, {1, 3, 3, 0, 2, 0, 0, 2})}, [](In x) { return argmax(x[0]); }, {{1, 0}});
  expect({given({2, 4}, {1, 3, 3, 0, 2, 0, 0, 2})}, [](In x) { return argmin(x[0]); }, {{3, 1}});
  expect({given({2, 4}, {1, 3, 3, 0, 2, 0, 0, 2})}, [](In x) { return argmax(x[0], 0); },
         {{1, 0, 0, 1}});
}

TEST(ReduceSemantics, RunningSum) {
  expect({vec({1, 2, 3})}, [](In x) { return cumsum(x[0], 0); }, {{1, 3, 6}, {{3, 2, 1}}});
  expect({vec({1, 2, 3})}, [](In x) { return cumsum(x[0], 0); },
         {{1, 3, 6}, {{1, 1, 0}}, {0, 1, 0}});
}

TEST(ReduceSemantics, LogSumExpAndSoftmaxOfInfinities) {
  expect({vec({1000, 1000})}, [](In x) { return logsumexp(x[0]); },
         {{1000 + std::numbers::ln2}, {{0.5, 0.5}}});
  expect({vec({-kInf, -kInf})}, [](In x) { return logsumexp(x[0]); }, {{-kInf}});
  expect({vec({kInf, 1})}, [](In x) { return logsumexp(x[0]); }, {{kInf}});
  expect({vec({-kInf, 2, 2})}, [](In x) { return softmax(x[0]); },
         {{0, 0.5, 0.5}, {{0, 0.25, -0.25}}, {0, 1, 0}});
  expect({vec({-kInf, 0, 0})}, [](In x) { return log_softmax(x[0]); },
         {{-kInf, -std::numbers::ln2, -std::numbers::ln2}});
  expect({vec({-kInf, -kInf})}, [](In x) { return softmax(x[0]); }, {{kNan, kNan}});
  expect({vec({1000, -1000, 1000})}, [](In x) { return softmax(x[0]); }, {{0.5, 0, 0.5}});
}

TEST(ShapeSemantics, BroadcastGradientsAreSums) {
  expect({given({2, 1}, {1, 2}), given({3}, {10, 20, 30})}, [](In x) { return x[0] * x[1]; },
         {{10, 20, 30, 20, 40, 60}, {{60, 60}, {3, 3, 3}}});
}

TEST(ShapeSemantics, PadModes) {
  expect({vec({1, 2, 3})}, [](In x) { return pad(x[0], 0, 2, 1, PadMode::reflect); },
         {{3, 2, 1, 2, 3, 2}, {{1, 3, 2}}});
  expect({vec({1, 2, 3})}, [](In x) { return pad(x[0], 0, 2, 1, PadMode::circular); },
         {{2, 3, 1, 2, 3, 1}, {{2, 2, 2}}});
  expect({vec({1, 2, 3})}, [](In x) { return pad(x[0], 0, 2, 1, PadMode::constant, 9); },
         {{9, 9, 1, 2, 3, 9}, {{1, 1, 1}}});
}

// torch.std: the gradient of a deviation of 0 is 0, not NaN.
TEST(ReduceSemantics, DeviationOfEqualNumbersHasNoGradient) {
  expect({given({2, 3}, {3, 3, 3, 1, 2, 3})}, [](In x) { return stddev(x[0], 1); },
         {{0, 1}, {{0, 0, 0, -0.5, 0, 0.5}}});
  expect({given({2, 3}, {0, 0, 0, 1, 2, 3})}, [](In x) { return stddev(x[0], 1, false, 0); },
         {{0, 0.816496580927726}, {{0, 0, 0, -0.408248290463863, 0, 0.408248290463863}}});
  expect({vec({kNan, 1})}, [](In x) { return stddev(x[0]); }, {{kNan}});
}

TEST(ShapeSemantics, Windows) {
  expect({vec({1, 2, 3, 4, 5})}, [](In x) { return windows(x[0], 0, 2, 1, 2); },
         {{1, 3, 2, 4, 3, 5}, {{1, 1, 2, 1, 1}}});
  expect({vec({1, 2, 3, 4, 5})}, [](In x) { return windows(x[0], 0, 3, 2); },
         {{1, 2, 3, 3, 4, 5}, {{1, 1, 2, 1, 1}}});
}

TEST(ShapeSemantics, Builders) {
  expect({}, [](In) { return arange(1, 8, 3); }, {{1, 4, 7}});
  expect({}, [](In) { return arange(5, 0, -2); }, {{5, 3, 1}});
  expect({}, [](In) { return arange(3, f32) * 0.5f; }, {{0, 0.5, 1}});
  expect({}, [](In) { return arange(2, 7, 2, f32) * 0.5f; }, {{1, 2, 3}});
  expect({}, [](In) { return linspace(0, 1, 5); }, {{0, 0.25, 0.5, 0.75, 1}});
  expect({}, [](In) { return tril(ones({2, 3}), 1); }, {{1, 1, 0, 1, 1, 1}});
  expect({}, [](In) { return eye(2); }, {{1, 0, 0, 1}});
}

// Intermediate values may exceed i32; the results do not.
TEST(ShapeSemantics, ArangeAtTheEndsOfI32) {
  expect({}, [](In) { return arange(2147483646, std::int64_t{1} << 40, std::int64_t{1} << 40); },
         {{2147483646}});
  expect({}, [](In) { return arange(2147483645, 2147483648); },
         {{2147483645, 2147483646, kIntMax}});
  expect({}, [](In) { return arange(-2147483648, 2147483647, 1000000000); },
         {{kIntMin, -1147483648, -147483648, 852516352, 1852516352}});
  expect({}, [](In) { return arange(2147483647, -2147483649, -2147483647); },
         {{kIntMax, 0, -2147483647}});
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  expect({}, [=](In) { return arange(5, -1, lowest); }, {{5}});
}

TEST(ShapeSemantics, WhereCausalKeepsWhatAQueryMaySee) {
  expect({given({2, 2}, {1, 2, 3, 4})}, [](In x) { return where_causal(x[0], -7); },
         {{1, -7, 3, 4}, {{10, 0, 30, 40}}, {10, 20, 30, 40}});
  // More keys than queries: counted from the end, as in attention.
  expect({given({2, 3}, {1, 2, 3, 4, 5, 6})}, [](In x) { return where_causal(x[0], -kInf); },
         {{1, 2, -kInf, 4, 5, 6}, {{1, 1, 0, 1, 1, 1}}});
  expect({given({2, 2}, {1, 2, 3, 4}, i32)}, [](In x) { return where_causal(x[0], 9); },
         {{1, 9, 3, 4}});
}

TEST(ShapeSemantics, HeadsWithoutABatch) {
  expect({given({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, [](In x) { return split_heads(x[0], 2); },
         {{1, 2, 5, 6, 3, 4, 7, 8}});
  expect({given({2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8})}, [](In x) { return merge_heads(x[0]); },
         {{1, 2, 3, 4, 5, 6, 7, 8}});
}

TEST(IndexingSemantics, OneHotOfOtherTypes) {
  expect({vec({2, 0}, i32)}, [](In x) { return one_hot(x[0], 3, i32) * 2; }, {{0, 0, 2, 2, 0, 0}});
  expect({vec({2, 0}, i32)}, [](In x) { return logical_not(one_hot(x[0], 3, boolean)); },
         {{1, 1, 0, 0, 1, 1}});
}

TEST(IndexingSemantics, RepeatedIdsAddUp) {
  expect({given({3, 2}, {1, 2, 3, 4, 5, 6}), vec({1, 1, 0, 1}, i32)},
         [](In x) { return embedding(x[0], x[1]); },
         {{3, 4, 3, 4, 1, 2, 3, 4},
          {{3, 30, 7 + 1 + 4, 70 + 10 + 40, 0, 0}},
          {7, 70, 1, 10, 3, 30, 4, 40}});
  expect({given({2, 3}, {1, 2, 3, 4, 5, 6}), given({2, 3}, {2, 2, 0, 1, 1, 1}, i32)},
         [](In x) { return take_along_axis(x[0], x[1], 1); },
         {{3, 3, 1, 5, 5, 5}, {{1, 0, 2, 0, 3, 0}}});
}

TEST(IndexingSemantics, GatherLooksAtTheFirstRowsOnly) {  // as torch.gather with a smaller index
  expect({given({3, 2}, {1, 2, 3, 4, 5, 6}), given({1, 3}, {1, 0, 1}, i32)},
         [](In x) { return gather(x[0], 1, x[1]); }, {{2, 1, 2}, {{1, 2, 0, 0, 0, 0}}});
}

// Never a wild read or write: the run stops and reports the id.
TEST(IndexingSemantics, IdsOutOfRangeStopTheRun) {
  const Arg table = given({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const double bad : {-1.0, 3.0, kIntMax, kIntMin}) {
    const Arg ids = vec({0, bad, 1}, i32);
    const auto stops = [&](const std::vector<Arg>& args, auto function) {
      try {
        expect(args, function, {});
      } catch (const runtime::IndexFailure& failure) {
        EXPECT_EQ(static_cast<double>(failure.value), bad);
        return;
      }
      ADD_FAILURE() << "id " << bad << " was accepted";
    };
    stops({table, ids}, [](In x) { return embedding(x[0], x[1]); });
    stops({vec({1, 2, 3}), ids}, [](In x) { return take_along_axis(x[0], x[1], 0); });
    stops({vec({1, 2, 3}), ids}, [](In x) { return gather(x[0], 0, x[1]); });
    stops({ids}, [](In x) { return one_hot(x[0], 3); });
    stops({given({3, 3}, {0}), ids}, [](In x) { return cross_entropy(x[0], x[1]); });
  }
}

TEST(WindowSemantics, ConvolutionDoesNotFlipTheKernel) {
  const Arg image = given({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Arg kernel = given({1, 1, 2, 2}, {1, 2, 3, 4});
  // top left: 1*1 + 2*2 + 3*4 + 4*5
  expect({image, kernel}, [](In x) { return conv2d(x[0], x[1]); },
         {{37, 47, 67, 77}, {{1, 3, 2, 4, 10, 6, 3, 7, 4}, {12, 16, 24, 28}}});
  // padded: the corner sees only its lower right element, 4 * 1
  expect({image, kernel}, [](In x) { return conv2d(x[0], x[1], {.stride = 3, .padding = 1}); },
         {{4 * 1, 3 * 3, 2 * 7, 1 * 9}});
}

TEST(WindowSemantics, PoolsAtTiesAndPadding) {
  expect({given({1, 1, 2, 2}, {7, 7, 7, 7})}, [](In x) { return max_pool2d(x[0], 2); },
         {{7}, {{1, 0, 0, 0}}});
  // Padding never wins, even where everything is negative.
  expect({given({1, 1, 2, 2}, {-1, -2, -3, -4})},
         [](In x) { return max_pool2d(x[0], 2, {.stride = 2, .padding = 1}); },
         {{-1, -2, -3, -4}, {{1, 1, 1, 1}}});
  expect({given({1, 1, 2, 2}, {4, 8, 12, 16})},
         [](In x) { return avg_pool2d(x[0], 2, {.stride = 2, .padding = 1}); },
         {{1, 2, 3, 4}, {{0.25, 0.25, 0.25, 0.25}}});
  expect({given({1, 1, 1, 2}, {1, 2})}, [](In x) { return nearest_upsample2d(x[0], 2); },
         {{1, 1, 2, 2, 1, 1, 2, 2}, {{4, 4}}});
}

}  // namespace
}  // namespace tensorgrad::checks
