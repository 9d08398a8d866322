// Elementwise arithmetic of two operands: broadcasting, scalars on either side, different types.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct Binary {
  const char* op;
  Tensor (*function)(Operand, Operand);
  double low_a = -2, high_a = 2, low_b = -2, high_b = 2;
  double tolerance = 1e-6;
};

constexpr Binary kBinaryOps[] = {
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div, -2, 2, 0.5, 2.5},
    {"maximum", maximum},
    {"minimum", minimum},
    {"pow", pow, 0.3, 2.5, -2, 2},
};

void add_rows(const Binary& binary, Samples& rows) {
  const auto f = binary.function;
  // On grids that never meet: maximum and minimum have no derivative where a equals b.
  const auto a = [&](const Shape& shape) {
    return real(shape, binary.low_a, binary.high_a).on_grid(1.0 / 64, 0.5);
  };
  const auto b = [&](const Shape& shape) {
    return real(shape, binary.low_b, binary.high_b).on_grid(1.0 / 64, 0);
  };
  const auto add = [&](const char* variant, std::vector<Arg> args,
                       std::function<Tensor(const Tensors&)> function) {
    rows.push_back({binary.op, variant, std::move(args), std::move(function), binary.tolerance});
  };
  const auto both = [f](In x) { return f(x[0], x[1]); };
  add("same_shape", {a({3, 4}), b({3, 4})}, both);
  add("rank_0", {a({}), b({})}, both);
  add("rank_0_left", {a({}), b({3, 2})}, both);
  add("rank_0_right", {a({3, 2}), b({})}, both);
  add("row_right", {a({4, 5}), b({5})}, both);
  add("row_left", {a({5}), b({4, 5})}, both);
  add("column_right", {a({4, 5}), b({4, 1})}, both);
  add("column_left", {a({4, 1}), b({4, 5})}, both);
  add("outer", {a({4, 1}), b({1, 5})}, both);
  add("outer_ranks", {a({2, 1, 3, 1}), b({4, 1, 5})}, both);
  add("size_1_axes", {a({1, 1}), b({1})}, both);
  add("empty", {a({0, 3}), b({3})}, both);
  add("empty_broadcast", {a({0, 1}), b({1, 3})}, both);
  add("many_blocks", {a({9, 460}), b({460})}, both);
  add("number_left", {b({3, 4})}, [f](In x) { return f(1.2578125f, x[0]); });
  add("number_right", {a({3, 4})}, [f](In x) { return f(x[0], 0.75f); });
  add("integer_right", {a({3, 4})}, [f](In x) { return f(x[0], 3); });
  add("views", {a({4, 6}), b({6, 5})}, [f](In x) {
    return f(narrow(x[0], 1, 1, 5), flip(permute(narrow(x[1], 0, 2, 4), {0, 1}), {0, 1}));
  });
  add("transposed", {a({70, 5}), b({5, 70})}, [f](In x) { return f(permute(x[0], {1, 0}), x[1]); });
  add("with_i32", {a({3, 4}), ints({4}, 1, 3)}, both);
}

}  // namespace

Samples binary_samples() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kMax = std::numeric_limits<std::int32_t>::max();
  Samples rows;
  for (const Binary& binary : kBinaryOps) add_rows(binary, rows);

  // All pairs of the special values.
  const std::vector<double> unusual{0, -0.0, 1, -1.5, kInf, -kInf, kNan};
  const Arg left = given({7, 1}, unusual), right = given({1, 7}, unusual);
  for (const Binary& binary : kBinaryOps)
    rows.push_back({binary.op,
                    "of_extremes",
                    {left, right},
                    [f = binary.function](In x) { return f(x[0], x[1]); },
                    1e-6,
                    false});

  const Arg whole = ints({5, 4}, -9, 9), row = ints({4}, -9, 9), flags = bools({5, 1});
  const Arg edges = given({3, 1}, {kMax, -kMax - 1, -1}, i32);
  const Arg others = given({3}, {kMax, -kMax - 1, 3}, i32);
  for (const Binary& binary : kBinaryOps) {
    const std::string op = binary.op;
    if (op == "div" || op == "pow") continue;
    const auto both = [f = binary.function](In x) { return f(x[0], x[1]); };
    rows.push_back({op, "i32", {whole, row}, both});
    rows.push_back({op, "i32_wraps", {edges, others}, both});
    rows.push_back({op, "i32_and_bool", {whole, flags}, both});
    rows.push_back(
        {op, "i32_and_number", {whole}, [f = binary.function](In x) { return f(x[0], 4); }});
    rows.push_back(
        {op, "i32_and_fraction", {whole}, [f = binary.function](In x) { return f(0.5f, x[0]); }});
  }

  rows.push_back({"mul", "by_itself", {real({3, 4})}, [](In x) { return mul(x[0], x[0]); }});
  rows.push_back({"add", "used_twice", {real({300})}, [](In x) {
                    const Tensor shared = sin(x[0]);
                    return shared * shared + exp(shared);
                  }});
  rows.push_back({"div", "i32_by_f32", {ints({6}, -9, 9), real({6}, 0.5, 2)}, [](In x) {
                    return div(x[0], x[1]);
                  }});
  rows.push_back({"div", "cast_integers", {ints({6}, -9, 9), ints({6}, 1, 9)}, [](In x) {
                    return div(cast(x[0], f32), x[1]);
                  }});
  rows.push_back({"pow", "square", {real({3, 4})}, [](In x) { return pow(x[0], 2); }});
  rows.push_back(
      {"pow", "cube_of_negative", {real({3, 4}, -2, -0.5)}, [](In x) { return pow(x[0], 3); }});
  rows.push_back(
      {"pow", "square_root", {real({3, 4}, 0.5, 4)}, [](In x) { return pow(x[0], 0.5f); }});
  rows.push_back({"pow", "number_to_the", {real({3, 4})}, [](In x) { return pow(2, x[0]); }});

  const std::vector<Arg> two{real({3, 4}), real({4}, 0.5, 2)};
  rows.push_back({"operator+", "plus", two, [](In x) { return x[0] + x[1]; }});
  rows.push_back({"operator-", "minus", two, [](In x) { return x[0] - x[1]; }});
  rows.push_back({"operator*", "times", two, [](In x) { return x[0] * x[1]; }});
  rows.push_back({"operator/", "over", two, [](In x) { return x[0] / x[1]; }});
  rows.push_back(
      {"operator+", "plus_number_left", two, [](In x) { return 2 + x[0] + 0.5 + x[1]; }});
  rows.push_back({"operator-", "minus_number_left", two, [](In x) { return 1.5f - x[0] - 1; }});
  rows.push_back({"operator*", "times_number_left", two, [](In x) { return 3 * x[0] * 0.25; }});
  rows.push_back({"operator/", "over_number_left", two, [](In x) { return 1 / x[1] / 2; }});
  return rows;
}

}  // namespace tensorgrad::checks
