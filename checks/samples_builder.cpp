// Ops that create tensors, and the triangle.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {

Samples builder_samples() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Samples rows;
  const auto add = [&](const char* op, const char* variant, Tensor (*function)(In)) {
    rows.push_back({op, variant, {}, function});
  };
  add("zeros", "f32", [](In) { return zeros({2, 3}); });
  add("zeros", "i32", [](In) { return zeros({2, 3}, i32); });
  add("zeros", "bool", [](In) { return zeros({4}, boolean); });
  add("zeros", "rank_0", [](In) { return zeros({}); });
  add("zeros", "empty", [](In) { return zeros({0, 3}); });
  add("ones", "f32", [](In) { return ones({2, 3}); });
  add("ones", "i32", [](In) { return ones({5}, i32); });
  add("ones", "bool", [](In) { return ones({5}, boolean); });
  add("ones", "many_blocks", [](In) { return ones({5000}); });
  add("full", "f32", [](In) { return full({2, 3}, 0.1); });
  add("full", "i32", [](In) { return full({2, 3}, -7, i32); });
  add("full", "i32_largest", [](In) { return full({2}, 2147483647, i32); });
  add("full", "i32_drops_fraction", [](In) { return full({2}, -2.75, i32); });
  add("full", "bool", [](In) { return full({3}, 2, boolean); });
  add("full", "infinite", [](In) { return full({3}, kInf); });
  add("full", "minus_infinite", [](In) { return full({3}, -kInf) * 2.0f; });
  add("full", "nan", [](In) { return full({3}, kNan); });
  add("full", "too_large_for_f32", [](In) { return full({3}, 1e39); });
  add("full", "rank_0", [](In) { return full({}, 3); });
  add("eye", "plain", [](In) { return eye(4); });
  add("eye", "one", [](In) { return eye(1); });
  add("eye", "none", [](In) { return eye(0); });
  add("eye", "many_blocks", [](In) { return eye(70); });
  add("arange", "plain", [](In) { return arange(7); });
  add("arange", "nothing", [](In) { return arange(0); });
  add("arange", "many_blocks", [](In) { return arange(5000); });
  add("arange", "start", [](In) { return arange(3, 9); });
  add("arange", "step", [](In) { return arange(-4, 9, 3); });
  add("arange", "backward", [](In) { return arange(9, -4, -3); });
  add("arange", "empty_range", [](In) { return arange(5, 2); });
  add("arange", "backward_empty", [](In) { return arange(2, 5, -1); });
  add("arange", "f32", [](In) { return arange(6, f32) * 0.5f; });
  add("arange", "step_f32", [](In) { return arange(9, -4, -3, f32) * 0.5f; });
  add("arange", "end_of_i32", [](In) { return arange(2147483640, 2147483648, 3); });
  add("arange", "as_f32", [](In) { return cast(arange(6), f32) * 0.5f; });
  add("arange", "views", [](In) { return flip(reshape(arange(12), {3, 4}), 1) + arange(3, 7); });
  add("linspace", "plain", [](In) { return linspace(-1, 2, 5); });
  add("linspace", "one", [](In) { return linspace(3, 4, 1); });
  add("linspace", "two", [](In) { return linspace(3, 4, 2); });
  add("linspace", "backward", [](In) { return linspace(1, -0.3, 8); });
  add("linspace", "many_blocks", [](In) { return linspace(0, 1, 4999); });

  const auto lower = [](std::int64_t diagonal) {
    return [diagonal](In x) { return tril(x[0], diagonal); };
  };
  rows.push_back({"tril", "square", {real({4, 4})}, lower(0)});
  rows.push_back({"tril", "wide", {real({3, 5})}, lower(0)});
  rows.push_back({"tril", "tall", {real({5, 3})}, lower(0)});
  rows.push_back({"tril", "above", {real({4, 4})}, lower(1)});
  rows.push_back({"tril", "below", {real({4, 4})}, lower(-2)});
  rows.push_back({"tril", "batch", {real({2, 3, 3})}, lower(0)});
  rows.push_back({"tril", "empty", {real({0, 3})}, lower(0)});
  rows.push_back({"tril", "i32", {ints({4, 4}, 1, 9)}, lower(0)});
  rows.push_back({"tril", "bool", {given({4, 4}, {1}, boolean)}, lower(0)});
  rows.push_back({"tril", "hides_nan", {given({2, 2}, {1, kNan, 2, 3})}, lower(0), 2e-6, false});

  // capture returns its operand. The captured value is a separate result.
  rows.push_back({"capture", "of_value", {real({3, 4})}, [](In x) {
                    return capture("squares", square(x[0])) + 1.0f;
                  }});
  rows.push_back({"capture", "of_view", {real({3, 4})}, [](In x) {
                    capture("transposed", permute(x[0], {1, 0}));
                    return capture("operand", x[0]) * 2.0f;
                  }});
  rows.push_back({"capture", "of_result", {real({3, 4})}, [](In x) {
                    return capture("everything", exp(x[0]));
                  }});
  rows.push_back({"stop_gradient", "one_branch", {real({3, 4}).fixed(), real({3, 4})}, [](In x) {
                    return stop_gradient(exp(x[0])) * x[1];
                  }});
  return rows;
}

}  // namespace tensorgrad::checks
