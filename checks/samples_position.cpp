// arg_max, arg_min, and cumulative sums.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct Position {
  const char* op;
  Tensor (*function)(Operand, int, bool);
};

constexpr Position kPositions[] = {{"argmax", argmax}, {"argmin", argmin}};

}  // namespace

Samples position_samples() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kMax = std::numeric_limits<std::int32_t>::max();
  Samples rows;
  for (const Position& p : kPositions) {
    const auto add = [&, f = p.function](const char* variant, const Arg& arg, int axis,
                                         bool keepdims = false) {
      rows.push_back({p.op, variant, {arg}, [=](In x) { return f(x[0], axis, keepdims); }});
    };
    const auto coarse = [](const Shape& shape) { return real(shape).on_grid(1, 0); };  // many ties
    add("last_axis", coarse({4, 9}), -1);
    add("first_axis", coarse({9, 4}), 0);
    add("middle_axis_keepdims", coarse({3, 7, 2}), 1, true);
    add("vector", coarse({300}), 0);
    add("size_1_axis", coarse({3, 1}), 1);
    add("empty_result", coarse({0, 3}), -1);
    add("row_of_257", real({3, 257}), -1);
    add("many_rows", coarse({2100, 2}), -1);
    add("i32", ints({6, 8}, -3, 3), -1);
    add("i32_extremes", given({2, 3}, {kMax, -kMax - 1, kMax, 16777217, 16777216, 16777217}, i32),
        1);
    add("of_extremes", given({4, 3}, {1, kInf, kInf, -kInf, 3, 1, 2, kNan, kNan, -0.0, 0, -0.0}),
        -1);
    add("of_infinities", given({2, 2}, {-kInf, -kInf, kInf, kInf}), -1);
    rows.push_back({p.op, "of_transposed", {coarse({70, 65})}, [f = p.function](In x) {
                      return f(permute(x[0], {1, 0}), -1, false);
                    }});
    rows.push_back({p.op, "of_program", {real({5, 20})}, [f = p.function](In x) {
                      return f(sin(x[0]) * 3.0f, -1, true);
                    }});
    rows.push_back({p.op, "of_padded", {coarse({4, 5})}, [f = p.function](In x) {
                      return f(pad(x[0], 1, 1, 1, PadMode::constant, 1.5f), -1, false);
                    }});
  }
  rows = without_gradient(std::move(rows));

  const auto along = [](int axis) { return [axis](In x) { return cumsum(x[0], axis); }; };
  rows.push_back({"cumsum", "last_axis", {real({3, 5})}, along(-1)});
  rows.push_back({"cumsum", "first_axis", {real({5, 3})}, along(0)});
  rows.push_back({"cumsum", "middle_axis", {real({2, 4, 3})}, along(1)});
  rows.push_back({"cumsum", "vector", {real({7})}, along(0)});
  rows.push_back({"cumsum", "size_1_axis", {real({3, 1})}, along(1)});
  rows.push_back({"cumsum", "empty_axis", {real({3, 0})}, along(1)});
  rows.push_back({"cumsum", "no_rows", {real({0, 3})}, along(1)});
  rows.push_back({"cumsum", "row_of_700", {real({2, 700})}, along(-1)});
  rows.push_back({"cumsum", "column_of_300", {real({300, 40})}, along(0)});
  rows.push_back({"cumsum", "i32", {ints({3, 300}, -9, 9)}, along(-1)});
  rows.push_back({"cumsum", "i32_wraps", {ints({600}, -2000000000, 2000000000)}, along(0)});
  rows.push_back({"cumsum", "bool", {bools({40})}, along(0)});
  rows.push_back({"cumsum", "of_transposed", {real({4, 6})}, [](In x) {
                    return cumsum(permute(x[0], {1, 0}), 0);
                  }});
  rows.push_back({"cumsum", "of_flipped_padded", {real({4, 6})}, [](In x) {
                    return cumsum(pad(flip(x[0], 1), 1, 1, 2), 1);
                  }});
  rows.push_back({"cumsum", "of_program", {real({4, 6})}, [](In x) {
                    return cumsum(square(x[0]), 1) * x[0];
                  }});
  rows.push_back(
      {"cumsum", "of_cumsum", {real({4, 6})}, [](In x) { return cumsum(cumsum(x[0], 1), 0); }});
  return rows;
}

}  // namespace tensorgrad::checks
