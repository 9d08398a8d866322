// Softmax and its relatives, norms.
#include <cmath>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct Softmax {
  const char* op;
  Tensor (*function)(Operand, int);
};

void add_softmax(Samples& rows) {
  constexpr Softmax kBoth[] = {{"softmax", softmax}, {"log_softmax", log_softmax}};
  for (const Softmax& s : kBoth) {
    const auto along = [f = s.function](int axis) { return [=](In x) { return f(x[0], axis); }; };
    rows.push_back({s.op, "last_axis", {real({3, 5})}, along(-1)});
    rows.push_back({s.op, "first_axis", {real({5, 3})}, along(0)});
    rows.push_back({s.op, "middle_axis", {real({2, 4, 3})}, along(1)});
    rows.push_back({s.op, "vector", {real({7})}, along(0)});
    rows.push_back({s.op, "size_1_axis", {real({3, 1})}, along(1)});
    rows.push_back({s.op, "no_rows", {real({0, 3})}, along(1)});
    rows.push_back({s.op, "large_numbers", {real({4, 6}, -1000, 1000)}, along(-1)});
    rows.push_back({s.op, "equal_numbers", {given({2, 4}, {3})}, along(-1)});
    rows.push_back({s.op, "row_of_300", {real({3, 300})}, along(-1)});
    rows.push_back({s.op, "columns_300", {real({300, 20})}, along(0)});
    rows.push_back({s.op, "of_transposed", {real({5, 4})}, [f = s.function](In x) {
                      return f(permute(x[0], {1, 0}), -1);
                    }});
    rows.push_back({s.op, "of_scaled", {real({5, 4})}, [f = s.function](In x) {
                      return f(x[0] * 0.125f, -1) * x[0];
                    }});
  }
  const auto masked = [](float fill) { return [fill](In x) { return where_causal(x[0], fill); }; };
  rows.push_back({"where_causal", "square", {real({4, 4})}, masked(-1)});
  rows.push_back({"where_causal", "heads", {real({2, 3, 5, 5})}, masked(0)});
  rows.push_back({"where_causal", "wide", {real({2, 3, 5})}, masked(2.5f)});
  rows.push_back(
      {"where_causal", "infinite", {real({4, 4}).fixed()}, masked(-HUGE_VALF), 2e-6, false});
  rows.push_back({"where_causal", "i32", {ints({3, 3}, -5, 5)}, masked(7)});
  rows.push_back({"where_causal", "scores", {real({70, 70})}, [](In x) {
                    return softmax(where_causal(x[0], -HUGE_VALF));
                  }});
  const auto causal = [](In x) { return softmax_causal(x[0]); };
  rows.push_back({"softmax_causal", "square", {real({4, 4})}, causal});
  rows.push_back({"softmax_causal", "heads", {real({2, 3, 5, 5})}, causal});
  rows.push_back({"softmax_causal", "one", {real({1, 1})}, causal});
  rows.push_back({"softmax_causal", "large_numbers", {real({6, 6}, -1000, 1000)}, causal});
  rows.push_back({"softmax_causal", "rows_of_70", {real({70, 70})}, causal});
}

void add_norms(Samples& rows) {
  const auto add = [&](const char* variant, const Arg& x, std::int64_t size,
                       double tolerance = 4e-6) {
    rows.push_back({"layer_norm",
                    variant,
                    {x, real({size}), real({size})},
                    [](In t) { return layer_norm(t[0], t[1], t[2]); },
                    tolerance});
    rows.push_back({"rms_norm",
                    variant,
                    {x, real({size})},
                    [](In t) { return rms_norm(t[0], t[1]); },
                    tolerance});
  };
  add("matrix", real({4, 6}), 6);
  add("vector", real({6}), 6);
  add("batch", real({2, 3, 5}), 5);
  add("size_1_rows", real({3, 1}), 1);
  add("no_rows", real({0, 5}), 5);
  add("rows_of_300", real({5, 300}), 300);
  add("many_rows", real({300, 16}), 16);
  add("far_from_0", real({4, 16}, 10, 12), 16, 2e-5);  // x - mean cancels: x is ten times as large
  rows.push_back({"layer_norm",
                  "eps",
                  {real({4, 6}), real({6}), real({6})},
                  [](In x) { return layer_norm(x[0], x[1], x[2], 0.5f); },
                  4e-6});
  rows.push_back({"rms_norm",
                  "eps",
                  {real({4, 6}), real({6})},
                  [](In x) { return rms_norm(x[0], x[1], 0.5f); },
                  4e-6});
  rows.push_back({"layer_norm",
                  "of_transposed",
                  {real({6, 4}), real({6}), real({6})},
                  [](In x) {
                    return layer_norm(permute(x[0], {1, 0}), x[1], x[2]);
                  },
                  4e-6});
  rows.push_back({"rms_norm",
                  "before_matmul",
                  {real({5, 8}), real({8}), real({8, 4})},
                  [](In x) { return matmul(rms_norm(x[0], x[1]), x[2]); },
                  4e-6});
}

}  // namespace

Samples normalise_samples() {
  Samples rows;
  add_softmax(rows);
  add_norms(rows);
  return rows;
}

}  // namespace tensorgrad::checks
