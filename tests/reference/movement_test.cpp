// Primitives that move elements, and fold. Values are computed by hand; x is mostly
// [[1,2,3],[4,5,6]], so that a wrong axis shows.
#include "tests/reference/eval.h"

namespace tensorgrad::reference {
namespace {

using ir::AxisAttrs;
using ir::NarrowAttrs;
using ir::OrderAttrs;
using ir::PadAttrs;
using ir::ShapeAttrs;
using ir::WindowAttrs;

const Value kX = floats({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Reshape, KeepsTheOrder) {
  expect_eval("reshape", {kX}, ShapeAttrs{{3, 2}}, floats({3, 2}, kX.data));
  expect_eval("reshape", {floats({1, 1}, {7})}, ShapeAttrs{{}}, floats({}, {7}));
  expect_eval("reshape", {bools({0, 3}, {})}, ShapeAttrs{{2, 0}}, bools({2, 0}, {}));
  internal_error_of("reshape", {kX}, ShapeAttrs{{5}}, {f32, {5}});
}

TEST(Permute, AxisDOfTheResultIsAxisOrderD) {
  expect_eval("permute", {kX}, OrderAttrs{{1, 0}}, floats({3, 2}, {1, 4, 2, 5, 3, 6}));
  // [2, 1, 3] -> [3, 2, 1]: y[c][a][b] = x[a][b][c]; the inverse order would give [1, 3, 2]
  expect_eval("permute", {ints({2, 1, 3}, kX.data)}, OrderAttrs{{2, 0, 1}},
              ints({3, 2, 1}, {1, 4, 2, 5, 3, 6}));
  expect_eval("permute", {floats({}, {7})}, OrderAttrs{{}}, floats({}, {7}));
  expect_eval("permute", {floats({2, 0}, {})}, OrderAttrs{{1, 0}}, floats({0, 2}, {}));
  internal_error_of("permute", {kX}, OrderAttrs{{1, 1}}, {f32, {3, 3}});
}

TEST(BroadcastTo, RepeatsFromTheRight) {
  expect_eval("broadcast_to", {floats({}, {7})}, ShapeAttrs{{2, 2}}, floats({2, 2}, {7, 7, 7, 7}));
  expect_eval("broadcast_to", {floats({2}, {1, 2})}, ShapeAttrs{{2, 2}},
              floats({2, 2}, {1, 2, 1, 2}));
  expect_eval("broadcast_to", {floats({2, 1}, {1, 2})}, ShapeAttrs{{2, 2}},
              floats({2, 2}, {1, 1, 2, 2}));
  expect_eval("broadcast_to", {ints({2, 1, 2}, {1, 2, 3, 4})}, ShapeAttrs{{2, 2, 2}},
              ints({2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4}));
  expect_eval("broadcast_to", {floats({1}, {7})}, ShapeAttrs{{0}}, floats({0}, {}));
  internal_error_of("broadcast_to", {kX}, ShapeAttrs{{2, 6}}, {f32, {2, 6}});
}

TEST(Narrow, EachAxis) {
  expect_eval("narrow", {kX}, NarrowAttrs{0, 1, 1}, floats({1, 3}, {4, 5, 6}));
  expect_eval("narrow", {kX}, NarrowAttrs{1, 1, 2}, floats({2, 2}, {2, 3, 5, 6}));
  expect_eval("narrow", {kX}, NarrowAttrs{1, 3, 0}, floats({2, 0}, {}));
  internal_error_of("narrow", {kX}, NarrowAttrs{1, 2, 2}, {f32, {2, 2}});
}

TEST(Pad, EachAxis) {
  expect_eval("pad", {kX}, PadAttrs{1, 1, 2, -1},
              floats({2, 6}, {-1, 1, 2, 3, -1, -1, -1, 4, 5, 6, -1, -1}));
  expect_eval("pad", {kX}, PadAttrs{0, 0, 1, 9}, floats({3, 3}, {1, 2, 3, 4, 5, 6, 9, 9, 9}));
  expect_eval("pad", {floats({1}, {1})}, PadAttrs{0, 1, 1, -kInf}, floats({3}, {-kInf, 1, -kInf}));
  expect_eval("pad", {ints({0}, {})}, PadAttrs{0, 1, 1, 7}, ints({2}, {7, 7}));
}

TEST(Flip, EachAxis) {
  expect_eval("flip", {kX}, AxisAttrs{0}, floats({2, 3}, {4, 5, 6, 1, 2, 3}));
  expect_eval("flip", {kX}, AxisAttrs{1}, floats({2, 3}, {3, 2, 1, 6, 5, 4}));
}

TEST(Concat, AnyNumber) {
  expect_eval("concat", {kX}, AxisAttrs{1}, kX);
  expect_eval("concat", {kX, floats({2, 1}, {7, 8}), floats({2, 0}, {})}, AxisAttrs{1},
              floats({2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}));
  expect_eval("concat", {floats({1, 3}, {7, 8, 9}), kX}, AxisAttrs{0},
              floats({3, 3}, {7, 8, 9, 1, 2, 3, 4, 5, 6}));
  internal_error_of("concat", {kX, floats({1, 1}, {7})}, AxisAttrs{1}, {f32, {2, 4}});
}

TEST(Windows, OfTheLastAxis) {
  const Value x = floats({5}, {1, 2, 3, 4, 5});
  expect_eval("windows", {x}, WindowAttrs{0, 3, 1, 1, 5},
              floats({3, 3}, {1, 2, 3, 2, 3, 4, 3, 4, 5}));
  expect_eval("windows", {x}, WindowAttrs{0, 2, 2, 1, 5}, floats({2, 2}, {1, 2, 3, 4}));
  expect_eval("windows", {x}, WindowAttrs{0, 2, 1, 3, 5}, floats({2, 2}, {1, 4, 2, 5}));
  expect_eval("windows", {x}, WindowAttrs{0, 5, 7, 1, 5}, floats({1, 5}, x.data));
  internal_error_of("windows", {x}, WindowAttrs{0, 6, 1, 1, 5}, {f32, {0, 6}});
}

TEST(Windows, OfAnotherAxisStandLast) {
  // rows 0,1 and 1,2 of [[1,2],[3,4],[5,6]]: out[w][c][k] = x[w + k][c]
  expect_eval("windows", {floats({3, 2}, kX.data)}, WindowAttrs{0, 2, 1, 1, 3},
              floats({2, 2, 2}, {1, 3, 2, 4, 3, 5, 4, 6}));
}

TEST(Fold, AddsWhereWindowsOverlap) {
  // windows at 0, 1, 2 of ones: places are covered 1, 2, 3, 2, 1 times
  const Value ones = floats({3, 3}, std::vector<double>(9, 1));
  expect_eval("fold", {ones}, WindowAttrs{0, 3, 1, 1, 5}, floats({5}, {1, 2, 3, 2, 1}));
  // stride 2 in length 6: no window reaches the last place
  expect_eval("fold", {floats({2, 3}, kX.data)}, WindowAttrs{0, 3, 2, 1, 6},
              floats({6}, {1, 2, 3 + 4, 5, 6, 0}));
  // dilation 3: windows (0, 3) and (1, 4)
  expect_eval("fold", {floats({2, 2}, {1, 2, 3, 4})}, WindowAttrs{0, 2, 1, 3, 5},
              floats({5}, {1, 3, 0, 2, 4}));
  expect_eval("fold", {ints({2, 2}, {0, kIntMax, 1, 0})}, WindowAttrs{0, 2, 1, 1, 3},
              ints({3}, {0, kIntMin, 0}));
  internal_error_of("fold", {ones}, WindowAttrs{0, 3, 1, 1, 6}, {f32, {6}});
}

// Distinct values without a pattern, so that a wrong index shows.
std::vector<double> numbers(std::int64_t count, int seed) {
  std::vector<double> result;
  for (std::int64_t k = 0; k < count; ++k)
    result.push_back(static_cast<double>((k * 37 + seed) % 101));
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

TEST(Fold, IsTheAdjointOfWindows) {
  // <fold(g), x> == <g, windows(x)> for every g and x; integers, so exactly
  for (const WindowAttrs& attrs : {WindowAttrs{0, 2, 1, 1, 7}, WindowAttrs{1, 3, 2, 1, 8},
                                   WindowAttrs{1, 2, 3, 4, 8}, WindowAttrs{2, 3, 1, 2, 5}}) {
    Shape shape{7, 8, 5};
    ASSERT_EQ(shape[attrs.axis], attrs.length);
    const Value x = floats(shape, numbers(shape.count(), 3));
    shape[attrs.axis] = (attrs.length - attrs.dilation * (attrs.size - 1) - 1) / attrs.stride + 1;
    shape.push_back(attrs.size);
    const Value g = floats(shape, numbers(shape.count(), 50));
    const Value windows = eval("windows", {x}, attrs, g.type);
    const Value fold = eval("fold", {g}, attrs, x.type);
    EXPECT_EQ(dot(fold.data, x.data), dot(g.data, windows.data));
  }
}

}  // namespace
}  // namespace tensorgrad::reference
