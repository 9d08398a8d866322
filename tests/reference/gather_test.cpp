// Primitives that read or add at indices given by ids, computed by hand.
#include "tests/reference/eval.h"

namespace tensorgrad::reference {
namespace {

using ir::AxisAttrs;
using ir::NoAttrs;
using ir::RowsAttrs;
using ir::ScatterAttrs;

const Value kTable = floats({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(Embedding, RowsOfATable) {
  expect_eval("embedding", {kTable, ints({4}, {2, 0, 2, 1})}, NoAttrs{},
              floats({4, 2}, {5, 6, 1, 2, 5, 6, 3, 4}));
  expect_eval("embedding", {kTable, ints({1, 2}, {1, 1})}, NoAttrs{},
              floats({1, 2, 2}, {3, 4, 3, 4}));
  expect_eval("embedding", {kTable, ints({}, {1})}, NoAttrs{}, floats({2}, {3, 4}));
  expect_eval("embedding", {kTable, ints({0}, {})}, NoAttrs{}, floats({0, 2}, {}));
  EXPECT_EQ(user_error_of("embedding", {kTable, ints({1}, {3})}, NoAttrs{}, {f32, {1, 2}}),
            "embedding: id 3 is outside an axis of size 3");
  EXPECT_EQ(user_error_of("embedding", {kTable, ints({1}, {-1})}, NoAttrs{}, {f32, {1, 2}}),
            "embedding: id -1 is outside an axis of size 3");
}

TEST(SegmentSum, AddsRowsOfEqualId) {
  // ids 2, 0, 2: rows 1+5, 2+6 meet; nobody names rows 1 and 3
  expect_eval("segment_sum", {kTable, ints({3}, {2, 0, 2})}, RowsAttrs{4},
              floats({4, 2}, {3, 4, 0, 0, 6, 8, 0, 0}));
  expect_eval("segment_sum", {floats({2, 2, 1}, {1, 2, 3, 4}), ints({2, 2}, {1, 0, 0, 1})},
              RowsAttrs{2}, floats({2, 1}, {5, 5}));
  expect_eval("segment_sum", {floats({2}, {1, 2}), ints({}, {1})}, RowsAttrs{2},
              floats({2, 2}, {0, 0, 1, 2}));
  expect_eval("segment_sum", {floats({0, 1}, {}), ints({0}, {})}, RowsAttrs{2},
              floats({2, 1}, {0, 0}));
  expect_eval("segment_sum", {ints({2, 1}, {kIntMax, 1}), ints({2}, {0, 0})}, RowsAttrs{1},
              ints({1, 1}, {kIntMin}));
  EXPECT_EQ(
      user_error_of("segment_sum", {kTable, ints({3}, {0, 1, 2})}, RowsAttrs{2}, {f32, {2, 2}}),
      "segment_sum: id 2 is outside an axis of size 2");
}

TEST(TakeAlongAxis, EachAxis) {
  const Value x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_eval("take_along_axis", {x, ints({2, 2}, {2, 0, 1, 1})}, AxisAttrs{1},
              floats({2, 2}, {3, 1, 5, 5}));
  expect_eval("take_along_axis", {x, ints({1, 3}, {1, 0, 1})}, AxisAttrs{0},
              floats({1, 3}, {4, 2, 6}));
  expect_eval("take_along_axis", {bools({2}, {0, 1}), ints({3}, {1, 0, 1})}, AxisAttrs{0},
              bools({3}, {1, 0, 1}));
  EXPECT_EQ(
      user_error_of("take_along_axis", {x, ints({2, 1}, {0, 3})}, AxisAttrs{1}, {f32, {2, 1}}),
      "take_along_axis: id 3 is outside an axis of size 3");
  internal_error_of("take_along_axis", {x, ints({1, 3}, {0, 0, 0})}, AxisAttrs{1}, {f32, {1, 3}});
}

TEST(ScatterAdd, EachAxis) {
  expect_eval("scatter_add", {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2, 3}, {0, 3, 0, 1, 1, 1})},
              ScatterAttrs{1, 4}, floats({2, 4}, {1 + 3, 0, 0, 2, 0, 4 + 5 + 6, 0, 0}));
  expect_eval("scatter_add", {floats({2, 2}, {1, 2, 3, 4}), ints({2, 2}, {0, 2, 0, 1})},
              ScatterAttrs{0, 3}, floats({3, 2}, {1 + 3, 0, 0, 4, 0, 2}));
  expect_eval("scatter_add", {ints({2}, {kIntMin, -1}), ints({2}, {0, 0})}, ScatterAttrs{0, 1},
              ints({1}, {kIntMax}));
  EXPECT_EQ(user_error_of("scatter_add", {floats({1}, {1}), ints({1}, {2})}, ScatterAttrs{0, 2},
                          {f32, {2}}),
            "scatter_add: id 2 is outside an axis of size 2");
}

TEST(ScatterAdd, IsTheAdjointOfTakeAlongAxis) {
  // <scatter_add(g, ids), x> == <g, take_along_axis(x, ids)>, here 1*3 + 10*1 + 100*5 + 1000*5
  const Value x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), g = floats({2, 2}, {1, 10, 100, 1000});
  const Value ids = ints({2, 2}, {2, 0, 1, 1});
  const Value back = eval("scatter_add", {g, ids}, ScatterAttrs{1, 3}, x.type);
  double sum = 0;
  for (std::size_t k = 0; k < x.data.size(); ++k) sum += back.data[k] * x.data[k];
  EXPECT_EQ(sum, 5513);
}

}  // namespace
}  // namespace tensorgrad::reference
