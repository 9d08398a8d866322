// Captures change what is stored and what is fused, but no bit of the outputs.
#include <functional>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {

namespace {

struct Size {
  std::int64_t M, K, N;
};

struct Nothing {};

struct Program {
  const char* name;
  std::function<Tensor(const Inputs& in)> function;  // of x [M, K], w [K, N] and v [M, M]
};

// A value that is in memory only because of a capture.
Tensor kept(const char* name, const Tensor& y) {
  capture(name, expm1(y));
  return y;
}

Tensor bent(const Inputs& in) { return clamp(tanh(in["x"]), -0.5f, 0.5f); }

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"left operand", [](const Inputs& in) { return matmul(kept("y", bent(in)), in["w"]); }},
      {"right operand", [](const Inputs& in) { return matmul(in["v"], kept("y", bent(in))); }},
      {"turned left operand",
       [](const Inputs& in) { return matmul(swap_axes(kept("y", bent(in)), 0, 1), in["v"]); }},
      {"turned right operand",
       [](const Inputs& in) { return matmul(in["x"], swap_axes(kept("y", bent(in)), 0, 1)); }},
      {"both operands",
       [](const Inputs& in) { return matmul(kept("y", bent(in)), kept("w", in["w"] * 1.1f)); }},
      {"work on a product",
       [](const Inputs& in) { return tanh(kept("p", matmul(in["x"], in["w"]) * 0.1f)) + 1.0f; }},
      {"the product itself",
       [](const Inputs& in) { return exp(capture("p", matmul(bent(in), in["w"])) * 0.1f); }},
      {"products side by side",
       [](const Inputs& in) {
         const Tensor y = bent(in), a = matmul(y, in["w"]), b = matmul(y, in["w"] * 2.0f);
         return a * kept("b", b);
       }},
      {"products one after the other",
       [](const Inputs& in) {
         return matmul(in["v"], kept("a", relu(matmul(kept("y", bent(in)), in["w"]))));
       }},
      {"sum", [](const Inputs& in) { return sum(kept("y", bent(in))); }},
      {"sum of rows", [](const Inputs& in) { return sum(kept("y", bent(in)), -1); }},
      {"sum of columns", [](const Inputs& in) { return sum(kept("y", bent(in)), 0); }},
      {"softmax",
       [](const Inputs& in) {
         return matmul(kept("s", softmax(kept("y", bent(in)), -1)), in["w"]);
       }},
      {"variance", [](const Inputs& in) { return var(kept("y", bent(in)), -1); }},
      {"log_softmax of a product",
       [](const Inputs& in) {
         return log_softmax(kept("p", matmul(kept("y", bent(in)), in["w"])), -1);
       }},
  };
  return all;
}

constexpr Size kSizes[] = {{1, 64, 64},    {5, 300, 1},  {33, 128, 7},  {64, 512, 64},
                           {96, 384, 200}, {1, 1000, 1}, {40, 2048, 16}};

}  // namespace

TEST(CaptureBits, OutputsAreTheSame) {
  for (const Size& s : kSizes)
    for (const Program& program : programs()) {
      SCOPED_TRACE(std::string(program.name) + " " + Shape({s.M, s.K, s.N}).text());
      auto run =
          compile_forward(Nothing{},
                          {.inputs = {{"x", {s.M, s.K}}, {"w", {s.K, s.N}}, {"v", {s.M, s.M}}},
                           .device = "cpu",
                           .threads = 2},
                          [&](const Nothing&, const Inputs& in) { return program.function(in); });
      const Feed feed{{"x", numbers(static_cast<std::size_t>(s.M * s.K), 1)},
                      {"w", numbers(static_cast<std::size_t>(s.K * s.N), 2)},
                      {"v", numbers(static_cast<std::size_t>(s.M * s.M), 3)}};
      EXPECT_EQ(run.run(feed).output().floats(),
                run.run(feed, {.captures = true}).output().floats());
    }
}

}  // namespace tensorgrad::compile_tests
