// Reports about a program: counts, its plan, the text of every stage.
#include <algorithm>

#include "compile/program.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

Counts Program::counts() const {
  Counts out;
  const Compilation& made = executable(Kind::main)->made;
  const schedule::Plan& plan = made.plan;
  const bool training = front_.request.trains();
  out.kernels = static_cast<std::int64_t>(made.kernels.size());
  out.dispatches = made.loaded->dispatches();
  out.passes = made.loaded->passes();
  out.submits = made.loaded->submits();
  out.arena_bytes = plan.arena_bytes();
  for (const Parameter& p : driver_.state().parameters().list) {
    out.param_bytes += 4 * p.shape.count();
    if (training && !p.frozen) out.gradient_bytes += 4 * p.shape.count();
  }
  if (training)
    for (const auto& entry : driver_.state().optimizer_layout().entries())
      out.state_bytes += entry.flat ? out.gradient_bytes : 4 * entry.type.shape.count();
  for (const InputSpec& spec : inputs()) out.input_bytes += 4 * spec.shape.count();
  for (const schedule::Step& step : plan.steps) {
    out.operations += step.operations;
    out.bytes_moved += step.bytes_read + step.bytes_written;
  }
  return out;
}

namespace {

// Marks the nodes that the wanted results depend on.
template <class Wanted>
std::vector<bool> needed_by(const ir::Graph& graph, Wanted wanted) {
  std::vector<bool> needed(usize(graph.size()), false);
  for (const ir::Result& result : graph.results)
    if (wanted(result)) needed[usize(result.node)] = true;
  for (ir::NodeId id = graph.size() - 1; id >= 0; --id)
    if (needed[usize(id)])
      for (const ir::NodeId input : graph[id].inputs) needed[usize(input)] = true;
  return needed;
}

// Fusion joins the end of one phase with the beginning of the next. A kernel belongs to the
// earliest phase that needs it.
std::vector<std::string> phases_of(const schedule::Plan& plan) {
  using Kind = ir::Result::Kind;
  const auto forward = needed_by(plan.graph, [](const ir::Result& result) {
    return result.kind == Kind::capture ||
           (result.kind == Kind::output && !result.name.starts_with('$'));
  });
  const auto backward =
      needed_by(plan.graph, [](const ir::Result& result) { return result.kind == Kind::gradient; });
  std::vector<std::string> out;
  for (const schedule::Step& step : plan.steps) {
    const auto stores = [&](const std::vector<bool>& needed) {
      return std::any_of(
          step.stored.begin(), step.stored.end(),
          [&](const schedule::Stored& stored) { return needed[usize(stored.node)]; });
    };
    out.emplace_back(stores(forward) ? "forward" : stores(backward) ? "backward" : "update");
  }
  return out;
}

}  // namespace

std::vector<PlannedKernel> Program::plan() const {
  std::vector<PlannedKernel> out;
  const schedule::Plan& plan = executable(Kind::main)->made.plan;
  const std::vector<std::string> phases = phases_of(plan);
  for (const schedule::Step& step : plan.steps) {
    PlannedKernel kernel{.kind = std::string(step.kind()),
                         .phase = phases[out.size()],
                         .stage = step.stage,
                         .ops = {},
                         .where = plan.where(step),
                         .operations = step.operations,
                         .bytes_read = step.bytes_read,
                         .bytes_written = step.bytes_written,
                         .writes = {}};
    for (const ir::NodeId id : step.group.nodes) kernel.ops.emplace_back(plan.graph[id].op->name);
    for (const schedule::Stored& stored : step.stored) {
      const ir::Type& type = plan.graph[stored.node].type;
      kernel.writes.push_back({type.text(), ir::name(stored.place.space), 4 * stored.place.offset,
                               4 * type.shape.count(), stored.last_use, stored.over >= 0});
    }
    out.push_back(std::move(kernel));
  }
  return out;
}

std::string Program::show(std::string_view stage) const {
  return show_stage(executable(Kind::main)->made, stage);
}

std::vector<StageTime> Program::stage_times() const { return executable(Kind::main)->made.times; }

}  // namespace tensorgrad::detail
