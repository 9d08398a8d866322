// Finds the op that made the first non-finite value of a failed step. Parameters and inputs are
// still those of that step, so the step runs again with every value kept.
#include <cmath>

#include "compile/session.h"
#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

using ir::NodeId;
using ir::Result;

namespace {

enum class Health { finite, infinite, nan };

Health health_of(std::span<const float> values) {
  Health worst = Health::finite;
  for (const float x : values) {
    if (std::isnan(x)) return Health::nan;
    if (std::isinf(x)) worst = Health::infinite;
  }
  return worst;
}

Health health_of(const Array& array) {
  return array.dtype() == DType::f32 ? health_of(array.floats()) : Health::finite;
}

const char* word(Health health) { return health == Health::nan ? "NaN" : "infinite"; }

}  // namespace

// Called if loss and gradients are finite: names the parameter that the update would have spoiled.
std::string Session::diagnose_update(Program& program) {
  const std::string hint =
      "a smaller learning rate, or a larger eps of Adam? parameters and optimizer state are "
      "unchanged by this step";
  const auto message = [&](const std::string& what) {
    return user_message("the update",
                        fmt::format("{}; the loss and the gradients are finite", what), hint, "",
                        "", 0);
  };
  const auto executable = compile(program, Program::Kind::diagnosing_update);
  submit(program, *executable);
  const schedule::Plan& plan = executable->made.plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output || result.name != optim::kCandidateOutput) continue;
    const Array values = read_array(*executable->outputs, plan.results[i].offset,
                                    plan.graph[result.node].type, "the updated parameters");
    for (const Parameter& p : params_.list) {
      if (p.frozen) continue;
      const auto offset = usize(layout_.layout.find(p.name)->offset);
      const Health now = health_of(values.floats().subspan(offset, usize(p.shape.count())));
      if (now != Health::finite)
        return message(fmt::format("makes parameter {} {}", p.name, word(now)));
    }
  }
  return message("makes a parameter or the optimizer state infinite or NaN");
}

std::string Session::diagnose(Program& program) {
  const auto executable = compile(program, Program::Kind::diagnosing);
  submit(program, *executable);
  const ir::Graph& graph = executable->made.plan.graph;
  const auto health = [&](NodeId id) {
    const NodeId base = schedule::base_of(graph, id);
    const auto& place = executable->made.plan.places[usize(base)];
    if (!place) return Health::finite;  // a constant; if infinite, then on purpose
    const runtime::Buffer* buffer = spaces(program, *executable)[usize(place->space)];
    return health_of(
        read_array(*buffer, place->offset, graph[base].type, "a value of the failed step"));
  };

  // Walks from the loss, or else from the first bad gradient, back to a node whose operands are
  // finite.
  std::string what = "the loss";
  NodeId at = graph.find(Result::Kind::output, trace::kLossOutput);
  Health now = health(at);
  for (const Result& result : graph.results) {
    if (now != Health::finite) break;
    if (result.kind != Result::Kind::gradient) continue;
    at = result.node, now = health(at);
    what = fmt::format("the gradient of {}", result.name);
  }
  if (now == Health::finite) return diagnose_update(program);
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
  if (ir::is_leaf(node))
    return fmt::format("{}: the {} '{}' contains {} values", head, node.op->name,
                       node.as<ir::LeafAttrs>().name, word(health(at)));
  const ir::CallSite& site = graph.sites[usize(node.site)];
  std::string op(node.op->name);
  if (op == "reduce_" + site.composite)
    op = site.composite;  // the name that the user called
  else if (!site.composite.empty())
    op += fmt::format(" (in {})", site.composite);
  return user_message(
      head,
      fmt::format("{} produced the first {} value from finite operands", op, word(health(at))),
      "parameters and optimizer state are unchanged by this step", site.scope, site.file,
      site.line);
}

}  // namespace tensorgrad::detail
