#include "tests/fuzz/expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string_view>

#include "ir/primitive.h"
#include "reference/evaluate.h"
#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {
namespace {

using ir::Core;
using reference::Value;

constexpr double kMargin = 4;      // allowed error divided by the largest measured error
constexpr double kLargest = 1e18;  // its square still fits a float

const reference::Evaluation& evaluation_of(std::string_view name) {
  static const auto all = [] {
    std::map<std::string_view, const reference::Evaluation*> found;
    for (const auto& table :
         {reference::elementwise_table(), reference::random_table(), reference::movement_table(),
          reference::reduce_table(), reference::gather_table(), reference::composite_table(),
          reference::attention_table(), reference::state_space_table()})
      for (const auto& entry : table) found[entry.name] = &entry;
    return found;
  }();
  return *all.at(name);
}

// Sums: roundings are relative to the terms, not to the result.
bool adds(const ir::Primitive& op) {
  switch (op.core) {
    case Core::reduce:
      return op.combine == ir::Combine::add || op.combine == ir::Combine::mul;
    case Core::scan:
    case Core::matmul:
    case Core::segment_sum:
    case Core::scatter_add:
    case Core::fold:
    case Core::attention:
    case Core::attention_gradient:
    case Core::selective_scan:
    case Core::selective_scan_gradient:
    case Core::composite:
      return true;
    default:
      return false;
  }
}

// Selects operands or only changes their sign: gradients rely on the result being one of them.
bool is_exact(const ir::Primitive& op) {
  for (const char* name :
       {"where", "maximum", "minimum", "relu", "neg", "abs", "sign", "copy", "random"})
    if (op.name == name) return true;
  return op.core != Core::elementwise && !adds(op);
}

void round(Value& value, Random& random, double part) {
  if (value.type.dtype != DType::f32) return;
  for (double& x : value.data) x *= 1 + part * (2 * random.unit() - 1);
}

double magnitude(const Value& value) {
  double most = 0;
  for (const double x : value.data) most = std::isnan(x) ? HUGE_VAL : std::max(most, std::abs(x));
  return most;
}

// Roundings of intermediate values that are much larger than the result: the exponent in gelu and
// gelu_tanh, the logarithm in log_softmax of a value near 1. The gradient of attention consists of
// differences between g v^T and its mean, which cancel where one score dominates.
void round_inside(const ir::Node& node, Value& value, const std::vector<const Value*>& in,
                  const Rounding& rounding, Random& random) {
  const Value& x = *in[0];
  const std::string_view name = node.op->name;
  const bool gelu = name.starts_with("gelu");
  const double part = gelu || name == "log_softmax"                     ? rounding.part
                      : name == "log" || name == "sin" || name == "cos" ? rounding.absolute
                                                                        : 0;
  // The result of gelu is as exact as its exponent, which is at most 2 + x^2.
  for (std::size_t i = 0; part > 0 && i < value.data.size(); ++i)
    value.data[i] += part * (2 * random.unit() - 1) *
                     (gelu ? value.data[i] * (4 + 2 * x.data[i] * x.data[i]) : 1);
  if (node.op->core == Core::attention_gradient) {
    const double most =
        magnitude(*in[4]) * magnitude(*in[2]) * std::max(magnitude(*in[0]), magnitude(*in[1]));
    if (!std::isfinite(most)) return;  // no tolerance where a value is lost
    for (double& y : value.data) y += rounding.part * (2 * random.unit() - 1) * most;
  }
  // Added in sequence in f32: equal terms are rounded in the same direction.
  if (node.op->core == Core::segment_sum || node.op->core == Core::scatter_add)
    round(value, random, 0x1p-25 * static_cast<double>(x.data.size()));
}

}  // namespace

std::vector<Value> interpret_rounded(const ir::Graph& graph, const reference::Leaves& leaves,
                                     std::uint64_t seed, const Rounding& rounding) {
  Random random(seed);
  std::vector<Value> values;
  values.reserve(graph.nodes.size());  // operands are pointed at
  for (const ir::Node& node : graph.nodes) {
    if (ir::is_leaf(node)) {
      values.push_back(
          leaves.at(fmt::format("{}:{}", node.op->name, node.as<ir::LeafAttrs>().name)));
      continue;
    }
    std::deque<Value> rounded;
    std::vector<const Value*> in;
    for (const ir::NodeId id : node.inputs) {
      in.push_back(&values[static_cast<std::size_t>(id)]);
      if (!adds(*node.op)) continue;
      round(rounded.emplace_back(*in.back()), random, rounding.part);
      in.back() = &rounded.back();
    }
    Value value = evaluation_of(node.op->name).evaluate(node, in);
    if (!is_exact(*node.op)) round(value, random, rounding.part);
    if (!in.empty()) round_inside(node, value, in, rounding, random);
    values.push_back(std::move(value));
  }
  return values;
}

Expected expect(const ir::Graph& graph, const reference::Leaves& leaves, int runs,
                const Rounding& rounding) {
  Expected out;
  const std::vector<Value> values = reference::interpret(graph, leaves);
  const std::vector<bool> live = ir::live_nodes(graph);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (live[i] && values[i].type.dtype == DType::f32)  // an infinity is a mask's
      for (const double x : values[i].data)
        out.finite = out.finite && (std::isinf(x) || std::abs(x) < kLargest);
  for (const ir::Result& result : graph.results) {
    const Value& value = values[static_cast<std::size_t>(result.node)];
    const double most = magnitude(value);
    out.finite = out.finite && most < kLargest;
    out.results.push_back(value);
    out.allowed.emplace_back(value.data.size(),
                             value.type.dtype == DType::f32 ? 1e-6 * most + 1e-30 : 0);
  }
  for (int run = 0; run < runs && out.finite; ++run) {
    const auto rounded =
        interpret_rounded(graph, leaves, static_cast<std::uint64_t>(run), rounding);
    for (std::size_t r = 0; r < graph.results.size(); ++r) {
      const Value& value = rounded[static_cast<std::size_t>(graph.results[r].node)];
      for (std::size_t i = 0; i < value.data.size(); ++i) {
        const double off = std::abs(value.data[i] - out.results[r].data[i]);
        out.allowed[r][i] = std::max(out.allowed[r][i], std::isnan(off) ? HUGE_VAL : kMargin * off);
      }
    }
  }
  return out;
}

void allow_alike(Expected& expected) {
  for (std::vector<double>& allowed : expected.allowed)
    if (!allowed.empty())
      allowed.assign(allowed.size(), 2 * *std::max_element(allowed.begin(), allowed.end()));
}

std::string difference(const Expected& expected, std::size_t result, const Value& got) {
  const Value& want = expected.results[result];
  if (got.type != want.type)
    return fmt::format("the type is {}, not {}", got.type.text(), want.type.text());
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    const double off = std::abs(got.data[i] - want.data[i]), allowed = expected.allowed[result][i];
    if (off <= allowed || allowed == HUGE_VAL) continue;
    return fmt::format("element {} of {}: {} instead of {} (off by {:.2e}, allowed {:.2e})", i,
                       want.type.text(), got.data[i], want.data[i], off, allowed);
  }
  return "";
}

double sharp_part(const Expected& expected) {
  double sharp = 0, all = 0;
  for (std::size_t r = 0; r < expected.results.size(); ++r) {
    const double scale = std::max(1e-20, magnitude(expected.results[r]));
    for (const double allowed : expected.allowed[r]) sharp += allowed <= 1e-3 * scale;
    all += static_cast<double>(expected.allowed[r].size());
  }
  return all == 0 ? 1 : sharp / all;
}

}  // namespace tensorgrad::fuzz
