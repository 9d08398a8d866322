// Reductions, arg_max and arg_min, running sums and matmuls, computed by hand.
#include "tests/reference/eval.h"

namespace tensorgrad::reference {
namespace {

using ir::AxesAttrs;
using ir::AxisAttrs;
using ir::CumsumAttrs;
using ir::NoAttrs;

const Value kX = floats({2, 3}, {1, 5, 3, 4, 2, 6});

TEST(Reduce, EachSetOfAxes) {
  expect_eval("reduce_sum", {kX}, AxesAttrs{{0}}, floats({3}, {5, 7, 9}));
  expect_eval("reduce_sum", {kX}, AxesAttrs{{1}}, floats({2}, {9, 12}));
  expect_eval("reduce_sum", {kX}, AxesAttrs{{0, 1}}, floats({}, {21}));
  expect_eval("reduce_sum", {kX}, AxesAttrs{{}}, kX);
  expect_eval("reduce_max", {kX}, AxesAttrs{{0}}, floats({3}, {4, 5, 6}));
  expect_eval("reduce_max", {kX}, AxesAttrs{{1}}, floats({2}, {5, 6}));
  expect_eval("reduce_min", {kX}, AxesAttrs{{0}}, floats({3}, {1, 2, 3}));
  expect_eval("reduce_min", {kX}, AxesAttrs{{1}}, floats({2}, {1, 2}));
  expect_eval("reduce_prod", {kX}, AxesAttrs{{0}}, floats({3}, {4, 10, 18}));
  expect_eval("reduce_prod", {kX}, AxesAttrs{{1}}, floats({2}, {15, 48}));
  // [2, 3, 2] over the outer two and over the outer and the inner one
  const Value cube = floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_eval("reduce_sum", {cube}, AxesAttrs{{0, 1}}, floats({2}, {36, 42}));
  expect_eval("reduce_sum", {cube}, AxesAttrs{{0, 2}}, floats({3}, {18, 26, 34}));
}

TEST(Reduce, RankZero) {
  expect_eval("reduce_max", {floats({}, {-7})}, AxesAttrs{{}}, floats({}, {-7}));
}

TEST(Reduce, EmptyAxesGiveTheNeutralElement) {
  const Value f = floats({2, 0}, {}), i = ints({2, 0}, {});
  expect_eval("reduce_sum", {f}, AxesAttrs{{1}}, floats({2}, {0, 0}));
  expect_eval("reduce_prod", {f}, AxesAttrs{{1}}, floats({2}, {1, 1}));
  expect_eval("reduce_max", {f}, AxesAttrs{{1}}, floats({2}, {-kInf, -kInf}));
  expect_eval("reduce_min", {f}, AxesAttrs{{1}}, floats({2}, {kInf, kInf}));
  expect_eval("reduce_sum", {i}, AxesAttrs{{1}}, ints({2}, {0, 0}));
  expect_eval("reduce_prod", {i}, AxesAttrs{{1}}, ints({2}, {1, 1}));
  expect_eval("reduce_max", {i}, AxesAttrs{{1}}, ints({2}, {kIntMin, kIntMin}));
  expect_eval("reduce_min", {i}, AxesAttrs{{1}}, ints({2}, {kIntMax, kIntMax}));
  expect_eval("reduce_sum", {f}, AxesAttrs{{0}}, floats({0}, {}));
}

TEST(Reduce, NanWinsWhereverItStands) {
  const Value x = floats({4, 3}, {kNan, 1, 2, 1, kNan, 2, 1, 2, kNan, -kInf, kInf, 0});
  expect_eval("reduce_max", {x}, AxesAttrs{{1}}, floats({4}, {kNan, kNan, kNan, kInf}));
  expect_eval("reduce_min", {x}, AxesAttrs{{1}}, floats({4}, {kNan, kNan, kNan, -kInf}));
  expect_eval("reduce_sum", {x}, AxesAttrs{{1}}, floats({4}, {kNan, kNan, kNan, kNan}));
}

TEST(Reduce, I32WrapsAround) {
  expect_eval("reduce_sum", {ints({2}, {kIntMax, 2})}, AxesAttrs{{0}}, ints({}, {kIntMin + 1}));
  // 65537^3 = (2^32 + 2^17 + 1)(2^16 + 1), modulo 2^32: 2^33 + 2^17 + 2^16 + 1 -> 196609
  expect_eval("reduce_prod", {ints({3}, {65537, 65537, 65537})}, AxesAttrs{{0}},
              ints({}, {196609}));
  expect_eval("reduce_max", {ints({3}, {kIntMin, -1, -2})}, AxesAttrs{{0}}, ints({}, {-1}));
  expect_eval("reduce_min", {ints({3}, {kIntMax, 2, 1})}, AxesAttrs{{0}}, ints({}, {1}));
}

TEST(ArgReduce, FirstOfEquals) {
  const Value x = floats({2, 4}, {1, 3, 3, 0, 2, 0, 0, 2});
  expect_eval("argmax", {x}, AxisAttrs{1}, ints({2}, {1, 0}));
  expect_eval("argmin", {x}, AxisAttrs{1}, ints({2}, {3, 1}));
  expect_eval("argmax", {x}, AxisAttrs{0}, ints({4}, {1, 0, 0, 1}));
  expect_eval("argmin", {x}, AxisAttrs{0}, ints({4}, {0, 1, 1, 0}));
  expect_eval("argmax", {ints({3}, {kIntMin, kIntMax, kIntMax})}, AxisAttrs{0}, ints({}, {1}));
  expect_eval("argmax", {floats({2}, {-kInf, -kInf})}, AxisAttrs{0}, ints({}, {0}));
}

TEST(ArgReduce, FirstNanIsBest) {
  const Value x = floats({3, 4}, {1, kNan, 9, kNan, kNan, 0, 9, 1, 0, 9, 1, kNan});
  expect_eval("argmax", {x}, AxisAttrs{1}, ints({3}, {1, 0, 3}));
  expect_eval("argmin", {x}, AxisAttrs{1}, ints({3}, {1, 0, 3}));
}

TEST(ArgReduce, EmptyAxes) {
  expect_eval("argmax", {floats({0, 2}, {})}, AxisAttrs{1}, ints({0}, {}));
  internal_error_of("argmax", {floats({2, 0}, {})}, AxisAttrs{1}, {i32, {2}});
}

TEST(Cumsum, BothWays) {
  expect_eval("cumsum", {kX}, CumsumAttrs{1, false}, floats({2, 3}, {1, 6, 9, 4, 6, 12}));
  expect_eval("cumsum", {kX}, CumsumAttrs{1, true}, floats({2, 3}, {9, 8, 3, 12, 8, 6}));
  expect_eval("cumsum", {kX}, CumsumAttrs{0, false}, floats({2, 3}, {1, 5, 3, 5, 7, 9}));
  expect_eval("cumsum", {kX}, CumsumAttrs{0, true}, floats({2, 3}, {5, 7, 9, 4, 2, 6}));
  expect_eval("cumsum", {ints({2}, {kIntMax, 1})}, CumsumAttrs{0, false},
              ints({2}, {kIntMax, kIntMin}));
  expect_eval("cumsum", {floats({3}, {1, kNan, 1})}, CumsumAttrs{0, false},
              floats({3}, {1, kNan, kNan}));
  expect_eval("cumsum", {floats({0}, {})}, CumsumAttrs{0, true}, floats({0}, {}));
}

TEST(Matmul, RowsByColumns) {
  // [[1,5,3],[4,2,6]] by [[1,2],[3,4],[5,6]]: 1+15+15 2+20+18 / 4+6+30 8+8+36
  expect_eval("matmul", {kX, floats({3, 2}, {1, 2, 3, 4, 5, 6})}, NoAttrs{},
              floats({2, 2}, {31, 40, 40, 52}));
}

TEST(Matmul, Batches) {
  // four products of a row by a column
  expect_eval("matmul",
              {floats({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
               floats({2, 2, 2, 1}, {1, 10, 2, 20, 3, 30, 4, 40})},
              NoAttrs{}, floats({2, 2, 1, 1}, {21, 86, 195, 348}));
}

TEST(Matmul, EmptyAndNan) {
  expect_eval("matmul", {floats({2, 0}, {}), floats({0, 1}, {})}, NoAttrs{},
              floats({2, 1}, {0, 0}));
  // zero times NaN is not skipped
  expect_eval("matmul", {floats({1, 2}, {0, 1}), floats({2, 2}, {kNan, 1, 2, 3})}, NoAttrs{},
              floats({1, 2}, {kNan, 3}));
  internal_error_of("matmul", {kX, kX}, NoAttrs{}, {f32, {2, 3}});
}

}  // namespace
}  // namespace tensorgrad::reference
