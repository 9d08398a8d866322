// Every row's gradients against central differences of the interpreter, in double. Two comparisons
// distinguish a wrong rule from a wrong kernel: the gradient graph in the interpreter against the
// differences, and the CPU against both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autodiff/differentiate.h"
#include "checks/eval_graph.h"
#include "ops/builder.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

using reference::Leaves;
using reference::Value;

constexpr double kStep = 1e-4;
constexpr double kRuleTolerance = 1e-6;
constexpr std::int64_t kFewElements = 24;  // more elements than this are checked along directions
constexpr int kDirections = 3;

// A direction for each differentiable operand.
using Direction = std::vector<std::vector<double>>;

std::vector<Direction> directions(const SampleGraph& made, const std::string& name) {
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  for (const std::string& leaf : made.differentiable) {
    counts.push_back(made.leaves.at(leaf).type.shape.count());
    total += counts.back();
  }
  std::vector<Direction> out;
  if (total == 0) return out;
  for (int d = 0; d < kDirections; ++d) {
    Direction direction;
    for (std::size_t i = 0; i < counts.size(); ++i)
      direction.push_back(
          draw(real({counts[i]}, -1, 1), seed_of(fmt::format("{} direction {} {}", name, d, i))));
    out.push_back(std::move(direction));
  }
  if (total > kFewElements) return out;
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (std::int64_t k = 0; k < counts[i]; ++k) {
      Direction unit;
      for (const std::int64_t count : counts) unit.emplace_back(count, 0.0);
      unit[i][static_cast<std::size_t>(k)] = 1;
      out.push_back(std::move(unit));
    }
  return out;
}

// Loss at the operands moved by `step` along the direction.
double loss_at(const SampleGraph& made, const Direction& direction, double step) {
  Leaves leaves = made.leaves;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    std::vector<double>& data = leaves.at(made.differentiable[i]).data;
    for (std::size_t k = 0; k < data.size(); ++k) data[k] += step * direction[i][k];
  }
  const ir::NodeId node = made.forward.find(ir::Result::Kind::output, "out");
  const Value out = reference::interpret(made.forward, leaves).at(static_cast<std::size_t>(node));
  const std::vector<double>& cotangent = made.leaves.at("input:cotangent").data;
  double loss = 0;
  for (std::size_t k = 0; k < out.data.size(); ++k) loss += out.data[k] * cotangent[k];
  return loss;
}

// Central differences at two distances; Richardson extrapolation cancels their leading error.
double difference_quotient(const SampleGraph& made, const Direction& direction) {
  const auto central = [&](double h) {
    return (loss_at(made, direction, h) - loss_at(made, direction, -h)) / (2 * h);
  };
  return (4 * central(kStep / 2) - central(kStep)) / 3;
}

double along(const std::vector<Value>& gradients, const Direction& direction) {
  double sum = 0;
  for (std::size_t i = 0; i < direction.size(); ++i)
    for (std::size_t k = 0; k < direction[i].size(); ++k)
      sum += gradients[i].data[k] * direction[i][k];
  return sum;
}

// An upper bound of the slope along a direction; errors are relative to it.
double scale_of(const std::vector<Value>& gradients) {
  double squares = 1;
  for (const Value& gradient : gradients)
    for (const double g : gradient.data) squares += g * g;
  return std::sqrt(squares);
}

using Gradient = SampleTest;
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(rows_with_gradient()), row_name);

TEST_P(Gradient, AgreesWithCentralDifferences) {
  const SampleGraph made = build(sample());
  ASSERT_FALSE(made.differentiable.empty()) << "the value is no f32: the row is not differentiable";
  std::vector<Value> by_rule, by_cpu;
  {
    const auto results = eval::interpret_results(made.gradient, made.leaves);
    const eval::Evaluated evaluated = eval::evaluate(made.gradient, made.leaves);
    EXPECT_EQ(evaluated.damage, "");
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(eval::difference(evaluated.results[i], results[i], sample().tolerance), "")
          << "a kernel is wrong: " << made.gradient.results[i].name << " of\n"
          << ir::print(made.gradient);
      if (made.gradient.results[i].kind != ir::Result::Kind::gradient) continue;
      by_rule.push_back(results[i]);
      by_cpu.push_back(evaluated.results[i]);
    }
  }
  const double scale = scale_of(by_rule);
  for (const Direction& direction : directions(made, sample().name())) {
    const double slope = difference_quotient(made, direction);
    EXPECT_NEAR(along(by_rule, direction), slope, kRuleTolerance * scale)
        << "a gradient rule is wrong in\n"
        << ir::print(made.gradient);
    // Rounding errors of single elements add up along a direction.
    EXPECT_NEAR(along(by_cpu, direction), slope, 4 * sample().tolerance * scale);
    if (HasFailure()) break;
  }
}

// If the loss is a sum, the first gradient is a constant, not memory.
TEST_P(Gradient, OfTheSumAgreesWithTheInterpreter) {
  const SampleGraph made = build(sample(), Cotangent::ones);
  const auto want = eval::interpret_results(made.gradient, made.leaves);
  for (const std::vector<std::string>& without : {std::vector<std::string>{}, {"fuse"}}) {
    const auto got = eval::evaluate(made.gradient, made.leaves, {.without = without});
    EXPECT_EQ(got.damage, "");
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(eval::difference(got.results[i], want[i], sample().tolerance), "")
          << made.gradient.results[i].name << " of\n"
          << ir::print(made.gradient);
  }
}

// The primitives that only gradients use (fold, segment_sum, scatter_add) have gradients too. The
// gradient is linear in the cotangent, so the same differences give its slope.
TEST(SecondGradient, OfTheAdjointsOfViewsAndIndexing) {
  for (const char* name : {"windows_stride_3_dilation_2", "embedding_repeated_ids",
                           "take_along_axis_repeated", "max_pool2d_padding"}) {
    SCOPED_TRACE(name);
    const auto row = std::find_if(samples().begin(), samples().end(),
                                  [&](const Sample& s) { return s.name() == name; });
    ASSERT_NE(row, samples().end());
    SampleGraph made = build(*row);
    // g(c) = the gradient of the first operand under the cotangent c; loss(c) = sum(g(c) * weight)
    ops::Builder builder(made.gradient);
    ops::BuildScope scope(builder);
    const ir::NodeId g = made.gradient.find(ir::Result::Kind::gradient, "x0");
    const Shape shape = made.gradient[g].type.shape;
    made.leaves["input:weight"] = {{f32, shape}, draw(real(shape), seed_of("weight"))};
    const Tensor loss =
        sum(builder.tensor(g) * builder.leaf(ir::Core::input, "weight", {f32, shape}));
    const Shape& out = made.leaves.at("input:cotangent").type.shape;
    const Tensor cotangent = builder.leaf(ir::Core::input, "cotangent", {f32, out});
    const Tensor slope =
        autodiff::differentiate(builder, loss, {TensorAccess::node(cotangent)}).at(0);
    builder.graph.results = {{ir::Result::Kind::output, "slope", TensorAccess::node(slope)},
                             {ir::Result::Kind::output, "loss", TensorAccess::node(loss)}};
    const auto want = eval::interpret_results(builder.graph, made.leaves);
    const auto got = eval::evaluate(builder.graph, made.leaves);
    EXPECT_EQ(eval::difference(got.results[0], want[0], 2e-6), "");
    Leaves moved = made.leaves;
    for (std::size_t k = 0; k < want[0].data.size(); ++k) {
      double& c = moved["input:cotangent"].data[k];
      c += 1;  // linear: a whole step is exact
      const double loss_there = eval::interpret_results(builder.graph, moved)[1].data[0];
      c -= 1;
      EXPECT_NEAR(want[0].data[k], loss_there - want[1].data[0], 1e-9) << "element " << k;
    }
  }
}

}  // namespace
}  // namespace tensorgrad::checks
