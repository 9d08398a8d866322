// The rules of primitives that op functions check before: the parser of graphs and the passes can
// break them, so they have their own texts.
#include <limits>

#include "ops/table.h"
#include "support/fail.h"
#include "tests/errors/expect_error.h"

namespace tensorgrad::errors {
namespace {

using ir::Type;

struct RuleRow {
  const char* op;
  std::vector<Type> in;
  ir::Attrs attrs;
  std::string rule;
  std::string hint;
};

void expect_rules(const std::vector<RuleRow>& rows) {
  for (const RuleRow& row : rows) {
    SCOPED_TRACE(std::string(row.op) + ": " + row.rule);
    const ir::Primitive* op = ops::find_primitive(row.op);
    ASSERT_NE(op, nullptr);
    ASSERT_EQ(op->attrs, row.attrs.index());
    try {
      op->type(row.in, row.attrs);
      ADD_FAILURE() << "no broken rule";
    } catch (const BrokenRule& broken) {
      EXPECT_EQ(broken.rule, row.rule);
      EXPECT_EQ(broken.hint, row.hint);
    }
  }
}

const Type kX{f32, {2, 3}}, kY{f32, {4, 5}}, kV{f32, {3}}, kN{i32, {2, 3}}, kIds{i32, {4}},
    kFlag{boolean, {2, 3}};

TEST(Rules, Elementwise) {
  expect_rules({
      {"add", {kX, kY}, {}, "operands differ: f32[2,3] against f32[4,5]", ""},
      {"add", {kX, kN}, {}, "operands differ: f32[2,3] against i32[2,3]", ""},
      {"add", {kFlag, kFlag}, {}, "needs i32 or f32: bool[2,3]", "cast to tg::i32 or tg::f32"},
      {"div", {kN, kN}, {}, "needs f32: i32[2,3]", "cast to tg::f32"},
      {"less", {kX, kN}, {}, "operands differ: f32[2,3] against i32[2,3]", ""},
      {"logical_and",
       {kFlag, kX},
       {},
       "needs bool operands of one shape: f32[2,3]",
       "compare first, or cast to tg::boolean"},
      {"is_finite", {kN}, {}, "needs f32: i32[2,3]", ""},
      {"where",
       {kX, kX, kX},
       {},
       "needs a bool condition and two operands of one type: f32[2,3], f32[2,3], f32[2,3]",
       ""},
      {"where",
       {kFlag, kX, kN},
       {},
       "needs a bool condition and two operands of one type: bool[2,3], f32[2,3], i32[2,3]",
       ""},
      {"random",
       {kX, kN, kN},
       ir::RandomAttrs{0},
       "needs three i32 operands of one shape: f32[2,3]",
       ""},
      {"drawn_class", {kX}, ir::CheckAttrs{3}, "needs i32: f32[2,3]", ""},
  });
}

TEST(Rules, Composites) {
  expect_rules({
      {"softmax",
       {kX},
       ir::AxisAttrs{2},
       "needs f32 and one of its axes: x is f32[2,3], the axis 2",
       ""},
      {"log_softmax",
       {kN},
       ir::AxisAttrs{1},
       "needs f32 and one of its axes: x is i32[2,3], the axis 1",
       ""},
      {"normalize",
       {kN},
       ir::NormAttrs{1e-5},
       "needs f32 and at least one axis: x is i32[2,3]",
       ""},
      {"rms_normalize",
       {Type{f32, {}}},
       ir::NormAttrs{1e-5},
       "needs f32 and at least one axis: x is f32[]",
       ""},
  });
}

TEST(Rules, Leaves) {
  expect_rules({
      {"iota",
       {},
       ir::IotaAttrs{std::int64_t{1} << 31},
       "positions must fit i32: 2147483648 are too many",
       ""},
      {"constant", {}, ir::ConstantAttrs{0x1p31, i32}, "2147483648 does not fit i32", ""},
      {"constant",
       {},
       ir::ConstantAttrs{std::numeric_limits<double>::quiet_NaN(), i32},
       "nan does not fit i32",
       ""},
  });
}

TEST(Rules, Reductions) {
  expect_rules({
      {"reduce_sum", {kX}, ir::AxesAttrs{{1, 0}}, "axes [1,0] do not fit: x is f32[2,3]", ""},
      {"reduce_max", {kX}, ir::AxesAttrs{{2}}, "axes [2] do not fit: x is f32[2,3]", ""},
      {"reduce_sum",
       {kFlag},
       ir::AxesAttrs{{0}},
       "needs i32 or f32: x is bool[2,3]",
       "cast to tg::i32"},
      {"argmax", {kX}, ir::AxisAttrs{2}, "axis 2 does not exist: x is f32[2,3]", ""},
      {"argmin", {kFlag}, ir::AxisAttrs{1}, "needs i32 or f32: x is bool[2,3]", "cast to tg::i32"},
      {"argmin", {{f32, {2, 0}}}, ir::AxisAttrs{1}, "axis 1 is empty: x is f32[2,0]", ""},
      {"cumsum", {kX}, ir::CumsumAttrs{-1, false}, "axis -1 does not exist: x is f32[2,3]", ""},
      {"cumsum",
       {kFlag},
       ir::CumsumAttrs{0, false},
       "needs i32 or f32: x is bool[2,3]",
       "cast to tg::i32"},
  });
}

TEST(Rules, MovementAndWindows) {
  expect_rules({
      {"reshape",
       {kX},
       ir::ShapeAttrs{{5}},
       "the number of elements differs: x is f32[2,3], the new shape is [5] (6 against 5)",
       ""},
      {"permute",
       {kX},
       ir::OrderAttrs{{0, 2}},
       "the order must name every axis once: x is f32[2,3], the order is [0,2]",
       ""},
      {"broadcast_to", {kX}, ir::ShapeAttrs{{4, 3}}, "f32[2,3] does not broadcast to [4,3]", ""},
      {"narrow", {kX}, ir::NarrowAttrs{2, 0, 1}, "axis 2 does not exist: x is f32[2,3]", ""},
      {"narrow",
       {kX},
       ir::NarrowAttrs{0, 1, 2},
       "start 1 and length 2 do not fit into axis 0: x is f32[2,3]",
       ""},
      {"pad", {kN}, ir::PadAttrs{1, 0, 1, 1e20}, "1e+20 does not fit i32", ""},
      {"pad", {kX}, ir::PadAttrs{2, 0, 1, 0}, "axis 2 does not exist: x is f32[2,3]", ""},
      {"pad",
       {kX},
       ir::PadAttrs{0, 0, -1, 0},
       "padding must not be negative: 0 before, -1 after",
       "use narrow to cut"},
      {"flip", {kX}, ir::AxisAttrs{-1}, "axis -1 does not exist: x is f32[2,3]", ""},
      {"concat", {kX, kY}, ir::AxisAttrs{2}, "axis 2 does not exist: x is f32[2,3]", ""},
      {"concat",
       {kX, kN},
       ir::AxisAttrs{0},
       "parts differ outside axis 0: f32[2,3] against i32[2,3]",
       ""},
      {"windows", {kX}, ir::WindowAttrs{2, 1, 1, 1, 3}, "axis 2 does not exist: x is f32[2,3]", ""},
      {"windows",
       {kX},
       ir::WindowAttrs{1, 2, 0, 1, 3},
       "size, stride and dilation must be at least 1: 2, 0, 1",
       ""},
      {"windows",
       {kX},
       ir::WindowAttrs{1, 4, 1, 1, 3},
       "the window is larger than axis 1: size 4, dilation 1, x is f32[2,3]",
       ""},
      {"fold",
       {kX},
       ir::WindowAttrs{0, 2, 1, 1, 4},
       "x does not consist of windows of 2 elements over an axis of 4: x is f32[2,3]",
       ""},
      {"window_max", {kV}, {}, "needs f32 and windows that are not empty: x is f32[3]", ""},
  });
}

TEST(Rules, MatmulAndIndexing) {
  expect_rules({
      {"matmul",
       {kX, kY},
       {},
       "needs [batch..., M, K] and [batch..., K, N]: a is f32[2,3], b is f32[4,5]",
       ""},
      {"matmul",
       {kX, kV},
       {},
       "needs [batch..., M, K] and [batch..., K, N]: a is f32[2,3], b is f32[3]",
       ""},
      {"embedding", {kV, kIds}, {}, "the table must be [V, D]: table is f32[3]", ""},
      {"embedding", {kX, kV}, {}, "ids must be i32: ids is f32[3]", "cast(ids, tg::i32)?"},
      {"segment_sum",
       {kX, kIds},
       ir::RowsAttrs{5},
       "needs values [..., D] and ids [...]: values is f32[2,3], ids is i32[4]",
       ""},
      {"take_along_axis",
       {kX, kIds},
       ir::AxisAttrs{0},
       "shapes differ outside axis 0: x is f32[2,3], ids is i32[4]",
       ""},
      {"scatter_add",
       {kX, kIds},
       ir::ScatterAttrs{0, 4},
       "needs values and ids of one shape: values is f32[2,3], ids is i32[4]",
       ""},
      {"check_index",
       {kX},
       ir::CheckAttrs{4},
       "ids must be i32: ids is f32[2,3]",
       "cast(ids, tg::i32)?"},
  });
}

TEST(Rules, SelectiveScan) {
  const Type wide{f32, {2, 6, 4}}, narrow{f32, {2, 6, 3}}, A_log{f32, {4, 3}}, D{f32, {4}};
  expect_rules({
      // y has 48 elements; chunks of 4 keep one state of 12 per sequence.
      {"selective_scan_gradient",
       {wide, wide, A_log, narrow, narrow, D, {f32, {48}}, wide},
       ir::SelectiveScanAttrs{false, 4},
       "does not belong to the scan: f32[48] and f32[2,6,4]",
       ""},
      {"selective_scan_gradient",
       {wide, wide, A_log, narrow, narrow, D, {f32, {72}}, narrow},
       ir::SelectiveScanAttrs{false, 4},
       "does not belong to the scan: f32[72] and f32[2,6,3]",
       ""},
  });
}

TEST(Rules, Attention) {
  const ir::Type q{f32, {1, 2, 3, 4}};
  const ir::AttentionAttrs attrs{true, 0.5};
  expect_rules({
      {"attention", {q, q}, attrs, "needs q, k, v, and optionally a start", ""},
      {"attention",
       {q, q, {f32, {1, 2, 3}}},
       attrs,
       "needs q [B, H, T, D], k [B, G, S, D], v [B, G, S, V]: q is f32[1,2,3,4], k is "
       "f32[1,2,3,4], v is f32[1,2,3]",
       ""},
      {"attention_gradient",
       {q, q, q},
       attrs,
       "needs q, k, v, the result of attention, its gradient, and optionally a start",
       ""},
      // 24 results and 6 sums.
      {"attention_gradient",
       {q, q, q, {f32, {24}}, q},
       attrs,
       "does not belong to q, k and v: f32[24] and f32[1,2,3,4]",
       ""},
      {"attention_gradient",
       {q, q, q, {f32, {30}}, {f32, {24}}},
       attrs,
       "does not belong to q, k and v: f32[30] and f32[24]",
       ""},
  });
}

}  // namespace
}  // namespace tensorgrad::errors
