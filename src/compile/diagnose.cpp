// Finds the op that made the first non-finite value of a failed step. Parameters and inputs are
// still those of that step, so it is run again with every value kept.
#include <cmath>

#include "compile/session.h"
#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/fail.h"

namespace tensorgrad::detail {

using ir::NodeId;
using ir::Result;

namespace {

enum class Health { finite, infinite, nan };

Health health_of(const Array& array) {
  if (array.dtype() != DType::f32) return Health::finite;
  Health worst = Health::finite;
  for (const float x : array.floats()) {
    if (std::isnan(x)) return Health::nan;
    if (std::isinf(x)) worst = Health::infinite;
  }
  return worst;
}

const char* word(Health health) { return health == Health::nan ? "NaN" : "infinite"; }

}  // namespace

std::string Session::diagnose(Program& program) {
  std::unique_ptr<Variant> variant = compile(program.stages.differentiate, program, false, {"fuse", "reuse"}, Program::Kind::diagnosing);
  submit(program, *variant);
  const ir::Graph& graph = variant->plan.graph;
  const auto health = [&](NodeId id) {
    const NodeId base = schedule::base_of(graph, id);
    const auto& place = variant->plan.places[static_cast<std::size_t>(base)];
    if (!place) return Health::finite;  // constants: an infinite one is meant
    const runtime::Buffer* buffer = spaces(program, *variant)[static_cast<std::size_t>(place->space)];
    return health_of(read_array(*buffer, place->offset, graph[base].type));
  };

  // From the loss, or else the first bad gradient, back to where all operands are still finite.
  std::string what = "the loss";
  NodeId at = graph.find(Result::Kind::output, trace::kLossOutput);
  Health now = health(at);
  for (const Result& result : graph.results) {
    if (now != Health::finite) break;
    if (result.kind != Result::Kind::gradient) continue;
    at = result.node, now = health(at);
    what = fmt::format("the gradient of {}", result.name);
  }
  if (now == Health::finite) return "the loss or a gradient is not finite";
  const std::string head = fmt::format("{} is {}", what, word(now));
  for (;;) {
    at = schedule::base_of(graph, at);
    const ir::Node& node = graph[at];
    NodeId next = -1;
    Health next_health = Health::finite;
    for (const NodeId input : node.inputs) {
      const Health h = health(input);
      if (h > next_health) next = input, next_health = h;
    }
    if (next < 0) break;
    at = next, now = next_health;
  }
  const ir::Node& node = graph[at];
  if (node.op->core == ir::Core::leaf)
    return fmt::format("{}: the {} '{}' holds {} values", head, node.op->name, node.as<ir::LeafAttrs>().name, word(health(at)));
  const ir::CallSite& site = graph.sites[static_cast<std::size_t>(node.site)];
  std::string op(node.op->name);
  if (op == "reduce_" + site.composite)
    op = site.composite;  // the name that the user called it by
  else if (!site.composite.empty())
    op += fmt::format(" (in {})", site.composite);
  return user_message(head, fmt::format("{} made the first {} value from finite operands", op, word(health(at))),
                      "parameters and optimizer state are as they were before this step", site.scope, site.file, site.line);
}

}  // namespace tensorgrad::detail
