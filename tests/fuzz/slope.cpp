#include "tests/fuzz/slope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/primitive.h"
#include "passes/dce.h"

namespace tensorgrad::fuzz {
namespace {

constexpr double kStep = 1e-5;
constexpr double kSame = 1e-6;     // of differences at two distances, where the loss is smooth
constexpr double kAllowed = 1e-4;  // of the gradients from them

struct Direction {
  std::map<std::string, std::vector<double>> along;  // by leaf
  double slope = 0, scale = 0;  // by the gradients; the sum of its terms' sizes
};

double loss_at(const ir::Graph& forward, const Built& built, const Direction& direction,
               double step) {
  reference::Leaves leaves = built.leaves;
  for (const auto& [leaf, along] : direction.along)
    for (std::size_t i = 0; i < along.size(); ++i) leaves.at(leaf).data[i] += step * along[i];
  return reference::interpret(forward, leaves)[static_cast<std::size_t>(forward.results[0].node)]
      .data[0];
}

}  // namespace

std::string slope_difference(const Built& built, std::uint64_t seed) {
  const ir::NodeId loss = built.graph.find(ir::Result::Kind::output, "loss");
  // Composites call stop_gradient too, where it changes no gradient.
  const bool stops =
      std::any_of(built.graph.nodes.begin(), built.graph.nodes.end(), [&](const ir::Node& node) {
        return node.op->name == "stop_gradient" &&
               built.graph.sites[static_cast<std::size_t>(node.site)].composite.empty();
      });
  const bool flat = built.graph.find(ir::Result::Kind::flat_gradient, "") >= 0;
  if (loss < 0 || stops || flat) return "";

  Random random(seed);
  Direction direction;
  const auto values = reference::interpret(built.graph, built.leaves);
  for (const ir::Result& result : built.graph.results) {
    if (result.kind != ir::Result::Kind::gradient) continue;
    std::vector<double>& along = direction.along["parameter:" + result.name];
    for (const double g : values[static_cast<std::size_t>(result.node)].data) {
      along.push_back(2 * random.unit() - 1);
      direction.slope += g * along.back();
      direction.scale += std::abs(g * along.back());
    }
  }
  ir::Graph forward = built.graph;
  forward.results = {{ir::Result::Kind::output, "loss", loss}};
  forward = passes::dce(forward);
  const auto difference = [&](double step) {
    return (loss_at(forward, built, direction, step) - loss_at(forward, built, direction, -step)) /
           (2 * step);
  };
  const double near = difference(kStep / 2), far = difference(kStep);
  const double scale = std::max({direction.scale, std::abs(near), 1e-3});
  // Written so that NaN satisfies neither.
  if (!(std::abs(near - far) <= kSame * scale)) return "";
  if (!(std::abs(near - direction.slope) > kAllowed * scale)) return "";
  return fmt::format("the slope of the loss is {}, by the gradients {}", near, direction.slope);
}

}  // namespace tensorgrad::fuzz
