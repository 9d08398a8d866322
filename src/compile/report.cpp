// Reports about a program: counts, its plan, the text of every stage.
#include <algorithm>

#include "codegen/wgsl/shader.h"
#include "compile/session.h"
#include "kernels/lower.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

Counts Session::counts(const Program& program) const {
  Counts out;
  const schedule::Plan& plan = program.main->plan;
  out.kernels = static_cast<std::int64_t>(program.main->kernels.size());
  out.dispatches = program.main->loaded->dispatches();
  out.passes = program.main->loaded->passes();
  out.submits = program.main->loaded->submits();
  out.arena_bytes = plan.arena_bytes();
  for (const ParamRecord& p : params_) {
    out.param_bytes += 4 * p.shape.count();
    if (program.training && !p.frozen) out.gradient_bytes += 4 * p.shape.count();
  }
  if (program.training)
    for (const auto& entry : state_layout_.entries())
      out.state_bytes += is_flat(entry) ? out.gradient_bytes : 4 * entry.type.shape.count();
  for (const InputSpec& spec : program.specs) out.input_bytes += 4 * spec.shape.count();
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

std::vector<PlannedKernel> Session::plan(const Program& program) const {
  std::vector<PlannedKernel> out;
  const schedule::Plan& plan = program.main->plan;
  const std::vector<std::string> phases = phases_of(plan);
  for (const schedule::Step& step : plan.steps) {
    PlannedKernel kernel{.kind = std::string(step.kind()),
                         .phase = phases[out.size()],
                         .stage = step.stage,
                         .ops = {},
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

namespace {

// The shaders for a GPU; generating the text needs no GPU.
std::string wgsl_text(const std::vector<ir::Kernel>& kernels) {
  const bool guarded = std::any_of(kernels.begin(), kernels.end(), wgsl::checks_ids);
  std::string out;
  for (const wgsl::Shader& shader : wgsl::emit(kernels, {}, guarded))
    out += fmt::format("// {} x {} workgroups\n{}\n", shader.workgroups[0], shader.workgroups[1],
                       shader.wgsl);
  return out;
}

}  // namespace

std::string Session::show(const Program& program, std::string_view stage) const {
  std::lock_guard lock(*mutex_);
  const schedule::Plan& plan = program.main->plan;
  const auto stages = ProgramHandle::stages();
  if (std::find(stages.begin(), stages.end(), stage) == stages.end())
    user_error("show: there is no stage '{}': the stages are {}", stage, fmt::join(stages, ", "));
  if (stage == "trace") return ir::print(program.stages.trace);
  if (!program.training && (stage == "differentiate" || stage == "update"))
    user_error("show: a forward program has no stage '{}'", stage);
  if (stage == "differentiate") return ir::print(program.stages.differentiate);
  if (stage == "update") return ir::print(program.stages.update);
  if (stage == "simplify") return ir::print(program.stages.simplify);
  if (stage == "plan") return plan.text();
  std::string out;
  if (stage == "fuse") {
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      out += fmt::format("group {}\n", s);
      for (const ir::NodeId id : plan.steps[s].group.nodes)
        out += "  " + ir::print_node(plan.graph, id) + "\n";
    }
    return out;
  }
  if (stage == "wgsl") return wgsl_text(kernels::lower(plan, ir::gpu_model()));
  for (const ir::Kernel& kernel : program.main->kernels) out += kernel.text();
  return out;
}

}  // namespace tensorgrad::detail
