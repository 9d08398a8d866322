// Comparison, logic, choice and casts.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct Comparison {
  const char* op;
  Tensor (*function)(Operand, Operand);
};

constexpr Comparison kComparisons[] = {
    {"less", less},   {"less_equal", less_equal}, {"greater", greater},
    {"equal", equal}, {"not_equal", not_equal},   {"greater_equal", greater_equal},
};
constexpr Comparison kConnectives[] = {{"logical_and", logical_and}, {"logical_or", logical_or}};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void add_comparisons(Samples& rows) {
  const std::vector<double> unusual{0, -0.0, 1, -1.5, kInf, -kInf, kNan};
  // Few different values, so that many are equal.
  const auto coarse = [](const Shape& shape) { return real(shape).on_grid(1, 0); };
  for (const Comparison& c : kComparisons) {
    const auto f = c.function;
    const auto both = [f](In x) { return f(x[0], x[1]); };
    rows.push_back({c.op, "f32", {coarse({5, 8}), coarse({8})}, both});
    rows.push_back({c.op, "of_extremes", {given({7, 1}, unusual), given({7}, unusual)}, both});
    rows.push_back({c.op, "i32", {ints({6, 1}, -2, 2), ints({1, 9}, -2, 2)}, both});
    rows.push_back({c.op, "i32_and_f32", {ints({20}, -2, 2), real({20})}, both});
    rows.push_back({c.op, "bool", {bools({10}), bools({10})}, both});
    rows.push_back({c.op, "number_left", {coarse({20})}, [f](In x) { return f(1, x[0]); }});
    rows.push_back({c.op, "number_right", {coarse({20})}, [f](In x) { return f(x[0], 0.0f); }});
    rows.push_back({c.op, "rank_0", {coarse({}), coarse({})}, both});
    rows.push_back({c.op, "empty", {coarse({3, 0}), coarse({3, 1})}, both});
    rows.push_back({c.op, "transposed", {coarse({70, 60}), coarse({60, 70})}, [f](In x) {
                      return f(permute(x[0], {1, 0}), x[1]);
                    }});
  }
  const std::vector<Arg> two{coarse({40}), coarse({40})};
  rows.push_back({"operator<", "less", two, [](In x) { return x[0] < x[1]; }});
  rows.push_back({"operator<=", "less_equal", two, [](In x) { return x[0] <= x[1]; }});
  rows.push_back({"operator>", "greater", two, [](In x) { return x[0] > x[1]; }});
  rows.push_back({"operator>=", "greater_equal", two, [](In x) { return x[0] >= x[1]; }});
  rows.push_back({"operator<", "less_number_left", two, [](In x) { return 1 < x[1]; }});
}

void add_logic(Samples& rows) {
  for (const Comparison& c : kConnectives) {
    const auto f = c.function;
    const auto both = [f](In x) { return f(x[0], x[1]); };
    rows.push_back(
        {c.op, "table", {given({2, 1}, {0, 1}, boolean), given({2}, {0, 1}, boolean)}, both});
    rows.push_back({c.op, "of_numbers", {ints({3, 20}, -1, 1), real({20}).on_grid(1, 0)}, both});
    rows.push_back({c.op, "number_right", {bools({10})}, [f](In x) { return f(x[0], true); }});
    rows.push_back({c.op, "rank_0", {bools({}), bools({})}, both});
    rows.push_back({c.op, "empty", {bools({0}), bools({1})}, both});
  }
  rows.push_back(
      {"logical_not", "bool", {bools({9, 500})}, [](In x) { return logical_not(x[0]); }});
  rows.push_back({"logical_not", "of_f32", {given({4}, {0, -0.0, 0.5, kNan})}, [](In x) {
                    return logical_not(x[0]);
                  }});
  rows.push_back(
      {"logical_not", "of_i32", {ints({9}, -1, 1)}, [](In x) { return logical_not(x[0]); }});
  rows.push_back(
      {"is_finite", "of_extremes", {given({6}, {0, 3e38, kInf, -kInf, kNan, 1e-40})}, [](In x) {
         return is_finite(x[0]);
       }});
  rows.push_back(
      {"is_finite", "of_computed", {real({30}, -2, 2)}, [](In x) { return is_finite(log(x[0])); }});
  // Values other than 1 are true as well: the stored value must be 0 or 1.
  rows.push_back({"logical_and", "of_cast_numbers", {ints({40}, 0, 3), ints({40}, 0, 3)}, [](In x) {
                    return logical_and(cast(x[0], boolean), logical_not(cast(x[1], boolean)));
                  }});
}

void add_where(Samples& rows) {
  const auto choose = [](In x) { return where(x[0], x[1], x[2]); };
  rows.push_back({"where", "same_shape", {bools({3, 4}), real({3, 4}), real({3, 4})}, choose});
  rows.push_back({"where", "rank_0", {bools({}), real({}), real({})}, choose});
  rows.push_back({"where", "all_broadcast", {bools({3, 1, 1}), real({4, 1}), real({5})}, choose});
  rows.push_back({"where", "condition_repeats", {bools({4}), real({3, 4}), real({3, 4})}, choose});
  rows.push_back({"where", "many_blocks", {bools({5000}), real({5000}), real({1})}, choose});
  rows.push_back({"where", "empty", {bools({0, 2}), real({2}), real({0, 1})}, choose});
  rows.push_back({"where", "numbers", {bools({3, 4})}, [](In x) { return where(x[0], 1.5f, -2); }});
  rows.push_back({"where", "number_left", {bools({3, 4}), real({4})}, [](In x) {
                    return where(x[0], 0.25f, x[1]);
                  }});
  rows.push_back({"where", "number_right", {bools({3, 4}), real({4})}, [](In x) {
                    return where(x[0], x[1], 0);
                  }});
  rows.push_back({"where", "i32", {bools({9}), ints({9}, -9, 9), ints({9}, -9, 9)}, choose});
  rows.push_back({"where", "bool", {bools({9}), bools({9}), bools({9})}, choose});
  rows.push_back({"where", "i32_and_f32", {bools({9}), ints({9}, -9, 9), real({9})}, choose});
  rows.push_back(
      {"where", "condition_of_numbers", {ints({9}, 0, 2), real({9}), real({9})}, choose});
  // The value of the side that is not selected must not matter.
  rows.push_back({"where", "hides_nan", {real({30}).away_from({0})}, [](In x) {
                    return where(x[0] > 0.0f, log(x[0]), x[0]);
                  }});
}

void add_casts(Samples& rows) {
  const auto to = [](DType dtype) { return [dtype](In x) { return cast(x[0], dtype); }; };
  const Arg fractions =
      given({12}, {0, -0.0, 0.5, -0.5, 0.999, 1.5, -1.5, 2.999, -2.999, 1e6, -1e6, 7}).fixed();
  const Arg beyond =
      given({8}, {3e9, -3e9, 2147483648.0, -2147483648.0, kInf, -kInf, kNan, 1e38}).fixed();
  rows.push_back({"cast", "f32_to_i32", {fractions}, to(i32)});
  rows.push_back({"cast", "f32_to_i32_saturates", {beyond}, to(i32)});
  rows.push_back({"cast", "f32_to_bool", {fractions}, to(boolean)});
  rows.push_back({"cast", "f32_to_bool_extremes", {beyond}, to(boolean)});
  rows.push_back({"cast", "f32_to_f32", {real({2, 3})}, to(f32)});
  rows.push_back({"cast", "i32_to_f32", {ints({5, 900}, -100000, 100000)}, to(f32)});
  rows.push_back(
      {"cast", "i32_to_f32_rounds", {given({3}, {16777217, -16777217, 2147483647}, i32)}, to(f32)});
  rows.push_back({"cast", "i32_to_bool", {ints({9}, -1, 1)}, to(boolean)});
  rows.push_back({"cast", "bool_to_f32", {bools({9})}, to(f32)});
  rows.push_back({"cast", "bool_to_i32", {bools({3, 3})}, to(i32)});
  rows.push_back({"cast", "rank_0", {real({}).fixed()}, to(i32)});
  rows.push_back({"cast", "empty", {real({0}).fixed()}, to(i32)});
  rows.push_back({"cast", "there_and_back", {real({20}).away_from({-2, -1, 0, 1, 2})}, [](In x) {
                    return cast(cast(x[0], i32), f32) * x[0];
                  }});
}

}  // namespace

Samples logic_samples() {
  Samples rows;
  add_comparisons(rows);
  add_logic(rows);
  rows = without_gradient(std::move(rows));
  add_where(rows);
  add_casts(rows);
  return rows;
}

}  // namespace tensorgrad::checks
