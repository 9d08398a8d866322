// Reductions: every op over every kind of set of axes, and sizes on both sides of the limits where
// kernels split their work (256 elements per block, 4096 per task, 16384 of a long row, 256 rows).
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct AxesOp {
  const char* op;
  Tensor (*function)(Operand, Axes, bool);
  bool best = false;  // needs distinct values: ties have no derivative
  double low = -2, high = 2;
};

Tensor unbiased(Operand x, Axes axes, bool keepdims) { return var(x, axes, keepdims); }
Tensor deviation(Operand x, Axes axes, bool keepdims) { return stddev(x, axes, keepdims); }

constexpr AxesOp kReductions[] = {
    {"sum", sum},   {"mean", mean},           {"max", max, true}, {"min", min, true},
    {"prod", prod}, {"logsumexp", logsumexp}, {"var", unbiased},  {"stddev", deviation},
};

void add_rows(const AxesOp& reduction, Samples& rows) {
  const auto f = reduction.function;
  const auto operand = [&](const Shape& shape) {
    const Arg arg = real(shape, reduction.low, reduction.high);
    return reduction.best ? arg.apart() : arg;
  };
  const auto add = [&](const char* variant, const Shape& shape, const Axes& axes, bool keepdims) {
    rows.push_back(
        {reduction.op, variant, {operand(shape)}, [=](In x) { return f(x[0], axes, keepdims); }});
  };
  add("all", {2, 3, 4}, {}, false);
  add("all_keepdims", {2, 3, 4}, {}, true);
  add("first_axis", {4, 3, 2}, 0, false);
  add("middle_axis", {2, 5, 3}, 1, false);
  add("last_axis", {2, 3, 5}, -1, false);
  add("last_axis_keepdims", {2, 3, 5}, 2, true);
  add("outer_axes", {3, 4, 2}, {0, 2}, false);
  add("inner_axes_unordered", {3, 4, 2}, {-1, 1}, false);
  add("first_axes_keepdims", {3, 4, 2}, {0, -2}, true);
  add("vector", {7}, 0, false);
  add("empty_result", {0, 3}, 1, false);
  const auto view = [&](const char* variant, const Shape& shape, auto look) {
    rows.push_back(
        {reduction.op, variant, {operand(shape)}, [=](In x) { return f(look(x[0]), -1, false); }});
  };
  view("of_transposed", {5, 4}, [](const Tensor& x) { return permute(x, {1, 0}); });
  view("of_narrowed_flipped", {3, 9}, [](const Tensor& x) { return flip(narrow(x, 1, 2, 5), 1); });
  view("of_windows", {2, 9}, [](const Tensor& x) { return windows(x, 1, 3, 2); });
  view("of_regrouped", {4, 6}, [](const Tensor& x) { return reshape(permute(x, {1, 0}), {3, 8}); });
  if (!reduction.best) {
    // Of at least two different values: equal ones have no deviation to differentiate.
    view("of_broadcast", {3, 2, 1}, [](const Tensor& x) {
      return reshape(broadcast_to(x, {2, 3, 2, 4}), {2, 3, 8});
    });
    view("of_padded", {3, 2},
         [](const Tensor& x) { return pad(x, 1, 1, 2, PadMode::constant, 0.5f); });
  }
}

// Sizes that cross the kernels' limits.
void add_sizes(Samples& rows) {
  constexpr AxesOp kSums[] = {{"sum", sum}, {"max", max, true}};
  for (const AxesOp& r : kSums) {
    const auto add = [&, f = r.function](const char* variant, const Shape& shape,
                                         const Axes& axes) {
      const Arg arg = real(shape);
      rows.push_back({r.op, variant, {r.best ? arg.apart() : arg}, [=](In x) {
                        return f(x[0], axes, false);
                      }});
    };
    add("row_of_256", {3, 256}, -1);
    add("row_of_257", {3, 257}, -1);
    add("short_rows_many_tasks", {83, 50}, -1);
    add("short_rows_of_1", {4100, 1}, -1);
    add("row_of_16385", {2, 16385}, -1);
    add("everything_long", {33, 510}, {});
    add("columns_256_rows", {256, 5}, 0);
    add("columns_257_rows", {257, 5}, 0);
    add("columns_wide", {5, 600}, 0);
    add("columns_wide_many_rows", {515, 260}, 0);
    add("middle_of_many", {9, 40, 13}, 1);
  }
  rows.push_back({"mean", "of_20000", {real({20000})}, [](In x) { return mean(x[0]); }});
  rows.push_back({"sum", "tall_columns", {real({5000, 5})}, [](In x) { return sum(x[0], 0); }});
  rows.push_back(
      {"mean", "tall_columns_even", {real({9000, 8})}, [](In x) { return mean(x[0] * x[0], 0); }});
  rows.push_back({"var", "columns_300_rows", {real({300, 7})}, [](In x) { return var(x[0], 0); }});
  rows.push_back(
      {"logsumexp", "row_of_700", {real({3, 700})}, [](In x) { return logsumexp(x[0], -1); }});
}

// Axes of size 0 and 1, and rank 0.
void add_small(Samples& rows) {
  for (const AxesOp& r : kReductions) {
    const std::string op = r.op;
    const auto f = r.function;
    const auto all = [f](In x) { return f(x[0], {}, false); };
    if (op == "var" || op == "stddev") continue;  // no degree of freedom: NaN, see below
    rows.push_back({op, "rank_0", {real({})}, all});
    rows.push_back({op, "size_1_axes", {real({1, 4, 1})}, [f](In x) {
                      return f(x[0], {0, 2}, false);
                    }});
    // A reduction of no elements is an error.
    if (op == "mean" || op == "max" || op == "min" || op == "logsumexp") continue;
    rows.push_back({op, "of_nothing", {real({2, 0, 3})}, [f](In x) { return f(x[0], 1, false); }});
    rows.push_back(
        {op, "of_nothing_leading", {real({0, 3})}, [f](In x) { return f(x[0], 0, true); }});
    rows.push_back({op, "all_of_nothing", {real({0})}, all});
  }
  const auto row = [&](const char* op, const char* variant, const Arg& arg, auto function) {
    rows.push_back({op, variant, {arg}, function, 2e-6, false});
  };
  row("var", "of_one_element", real({3, 1}), [](In x) { return var(x[0], 1); });
  row("var", "rank_0", real({}), [](In x) { return var(x[0]); });
  row("stddev", "rank_0_biased", real({}), [](In x) { return stddev(x[0], {}, false, 0); });
}

}  // namespace

Samples reduce_samples() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kMax = std::numeric_limits<std::int32_t>::max();
  Samples rows;
  for (const AxesOp& reduction : kReductions) add_rows(reduction, rows);
  add_sizes(rows);
  add_small(rows);

  const Arg unusual = given({4, 3}, {1, kInf, 2, -kInf, 3, 1, kNan, 0, kInf, 0, -0.0, 5});
  const Arg whole = ints({5, 60}, -9, 9);
  const Arg edges = given({3, 3}, {kMax, 1, 1, -kMax - 1, -1, 0, 65537, 65537, 65537}, i32);
  for (const AxesOp& r : kReductions) {
    const auto rows_of = [f = r.function](In x) { return f(x[0], 1, false); };
    const auto columns_of = [f = r.function](In x) { return f(x[0], 0, false); };
    rows.push_back({r.op, "of_extremes", {unusual}, rows_of, 2e-6, false});
    rows.push_back({r.op, "columns_of_extremes", {unusual}, columns_of, 2e-6, false});
    const std::string op = r.op;
    if (op != "sum" && op != "max" && op != "min" && op != "prod") continue;
    rows.push_back({op, "i32", {whole}, rows_of});
    rows.push_back({op, "i32_columns", {whole}, columns_of});
    rows.push_back({op, "i32_wraps", {edges}, rows_of});
    rows.push_back({op, "i32_wraps_columns", {edges}, columns_of});
    rows.push_back({op, "bool", {bools({4, 7})}, rows_of});
  }
  rows.push_back({"sum", "i32_long", {ints({20000}, -2000000000, 2000000000)}, [](In x) {
                    return sum(x[0]);
                  }});
  rows.push_back({"sum", "of_program", {real({6, 50}), real({50})}, [](In x) {
                    return sum(square(x[0]) * x[1] + 1.0f, -1);
                  }});
  rows.push_back({"sum", "of_program_columns", {real({60, 5}), real({5})}, [](In x) {
                    return sum(exp(x[0]) * x[1], 0);
                  }});
  rows.push_back(
      {"sum", "of_sum", {real({3, 4, 5})}, [](In x) { return sum(sum(x[0], 1), -1, true); }});
  rows.push_back({"sum", "rank_8", {real({2, 1, 2, 1, 3, 1, 2, 2})}, [](In x) {
                    return sum(x[0], {0, 3, 4, 7});
                  }});
  rows.push_back(
      {"prod", "with_zeros", {given({4, 3}, {1, 2, 3, 0, 2, 3, 0, 0, 3, -1, 0.5, 2})}, [](In x) {
         return prod(x[0], 1);
       }});
  rows.push_back(
      {"prod", "row_of_300", {real({2, 300}, 0.9, 1.1)}, [](In x) { return prod(x[0], 1); }, 5e-6});
  rows.push_back({"var", "biased", {real({4, 5})}, [](In x) { return var(x[0], -1, false, 0); }});
  rows.push_back(
      {"var", "correction_2", {real({4, 5})}, [](In x) { return var(x[0], 0, true, 2); }});
  rows.push_back({"var",
                  "of_far_from_0",
                  {real({3, 40}, 1000, 1001)},
                  [](In x) { return var(x[0], -1); },
                  1e-5});
  rows.push_back(
      {"stddev", "biased", {real({4, 5})}, [](In x) { return stddev(x[0], {}, true, 0); }});
  rows.push_back({"logsumexp", "of_large", {real({4, 9}, -1000, 1000)}, [](In x) {
                    return logsumexp(x[0], -1);
                  }});
  return rows;
}

}  // namespace tensorgrad::checks
