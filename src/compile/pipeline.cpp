#include "compile/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "autodiff/differentiate.h"
#include "kernels/lower.h"
#include "passes/materialise.h"
#include "passes/pipeline.h"
#include "schedule/fuse.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

using ir::Result;

namespace {

std::shared_ptr<const ir::Graph> keep(ir::Graph graph) {
  return std::make_shared<const ir::Graph>(std::move(graph));
}

void run_trace(Compilation& c) {
  trace::Traced traced = (*c.source)(c.request.trace);
  c.builder = std::move(traced.builder);
  c.traced = keep(c.builder.graph);
}

void run_recognise(Compilation& c) {
  c.builder.replace(passes::recognise(std::move(c.builder.graph), c.request.without));
  c.recognised = keep(c.builder.graph);
  if (c.request.trains())
    c.loss = c.builder.tensor(c.builder.graph.find(Result::Kind::output, trace::kLossOutput));
}

// Whether a gradient flows from the loss to one of the wanted nodes.
bool depends_on(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  std::vector<bool> reached(usize(graph.size()), false);
  reached[usize(loss)] = true;
  for (ir::NodeId id = loss; id >= 0; --id) {
    const ir::Node& node = graph[id];
    if (!reached[usize(id)] || !node.op->gradient || node.type.dtype != DType::f32) continue;
    for (const ir::NodeId input : node.inputs) reached[usize(input)] = true;
  }
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](ir::NodeId id) { return reached[usize(id)]; });
}

void check_depends(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  if (depends_on(graph, loss, wanted)) return;
  const ir::CallSite& site = graph.sites[usize(graph[loss].site)];
  throw UserError(
      user_message("compile", "the loss does not depend on any trained parameter",
                   "is there a stop_gradient, an integer op or a frozen parameter in between?",
                   site.scope, site.file, site.line));
}

void run_differentiate(Compilation& c) {
  std::vector<ir::NodeId> wanted;
  {
    ops::BuildScope scope(c.builder);
    for (const Request::Parameter& p : c.request.trained)
      wanted.push_back(
          TensorAccess::node(c.builder.leaf(ir::Core::parameter, p.name, {DType::f32, p.shape})));
  }
  check_depends(c.builder.graph, TensorAccess::node(c.loss), wanted);
  const std::vector<Tensor> gradients = autodiff::differentiate(c.builder, c.loss, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Request::Parameter& p = c.request.trained[i];
    c.trained.push_back({p.name, p.offset, gradients[i], p.decay, p.normalize});
    c.builder.graph.results.push_back(
        {Result::Kind::gradient, p.name, TensorAccess::node(gradients[i])});
  }
  c.differentiated = keep(c.builder.graph);
  // An empty parameter has the offset of the next one, and comes first.
  std::sort(c.trained.begin(), c.trained.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.gradient.count()) < std::pair(b.offset, b.gradient.count());
  });
}

void run_update(Compilation& c) {
  optim::UpdateOptions options = c.request.update;
  options.purpose = *c.purpose;
  optim::append_update(c.builder, c.loss, c.trained, c.request.flat_elements, options);
  c.updated = keep(std::move(c.builder.graph));
}

// The last graph before `simplify`.
const ir::Graph& unsimplified(const Compilation& c) {
  return c.updated ? *c.updated : c.differentiated ? *c.differentiated : *c.recognised;
}

void run_simplify(Compilation& c) {
  ir::Graph graph = unsimplified(c);
  if (!c.captures)
    std::erase_if(graph.results, [](const Result& r) { return r.kind == Result::Kind::capture; });
  c.simplified = keep(passes::simplify(std::move(graph), c.device->model(), c.request.without));
  c.builder = ops::Builder();  // nothing is appended any more
}

void run_materialise(Compilation& c) { c.materialised = keep(passes::materialise(*c.simplified)); }

void run_fuse(Compilation& c) {
  c.fused = schedule::fuse(*c.materialised, c.device->model(), c.request.without);
}

void run_plan(Compilation& c) {
  c.plan = schedule::plan(*c.materialised, c.fused, {*c.parameters, *c.state, *c.inputs},
                          c.device->model(), c.request.without, c.device->largest_buffer());
}

void run_lower(Compilation& c) { c.kernels = kernels::lower(c.plan, c.device->model()); }

Completion<Done> run_emit(Compilation& c) {
  return c.device->emit(c.kernels, c.tag, c.progress)
      .map([&c](std::shared_ptr<const runtime::Emitted>& emitted) {
        c.emitted = std::move(emitted);
        return Done{};
      });
}

Completion<Done> run_load(Compilation& c) {
  return c.device->load(c.emitted, c.progress).map([&c](std::shared_ptr<runtime::Loaded>& loaded) {
    c.loaded = std::move(loaded);
    return Done{};
  });
}

// A stage that is done when its function returns.
template <void (*run)(Compilation&)>
Completion<Done> now(Compilation& c) {
  run(c);
  return Done{};
}

template <std::shared_ptr<const ir::Graph> Compilation::*graph>
std::string print_graph(const Compilation& c) {
  return ir::print(*(c.*graph));
}

std::string print_groups(const Compilation& c) {
  std::string out;
  for (std::size_t g = 0; g < c.fused.groups.size(); ++g) {
    const schedule::Group& group = c.fused.groups[g];
    out += fmt::format("group {}: {}, {} x {}\n", g, schedule::name(group.kind), group.lines,
                       group.length);
    for (const ir::NodeId id : group.nodes)
      out += fmt::format("  {}{}\n", c.fused.inlined[usize(id)] ? "inlined " : "",
                         ir::print_node(*c.materialised, id));
  }
  return out;
}

std::string print_kernels(const Compilation& c) {
  std::string out = fmt::format("kernels for the device model {}\n", c.device->model().name);
  for (const ir::Kernel& kernel : c.kernels) out += kernel.text();
  return out;
}

bool trains(const Compilation& c) { return c.request.trains(); }
bool updates(const Compilation& c) { return c.request.trains() && c.purpose.has_value(); }

using Id = Stage::Id;
using C = Compilation;

// name, what becomes true, level in, level out; function; printer; when it applies
constexpr Stage kPipeline[] = {
    {Id::trace,
     {"trace", "the user's function is a graph of ops", "function", "Graph"},
     now<run_trace>,
     print_graph<&C::traced>},
    {Id::recognise,
     {"recognise", "written-out attention is one op", "Graph", "Graph"},
     now<run_recognise>,
     print_graph<&C::recognised>},
    {Id::differentiate,
     {"differentiate", "the gradients of the loss are computed, too", "Graph", "Graph"},
     now<run_differentiate>,
     print_graph<&C::differentiated>,
     trains},
    {Id::update,
     {"update", "clipping, the non-finite guard and the optimizer follow", "Graph", "Graph"},
     now<run_update>,
     print_graph<&C::updated>,
     updates},
    {Id::simplify,
     {"simplify", "composites are expanded, and no unused value is computed", "Graph", "Graph"},
     now<run_simplify>,
     print_graph<&C::simplified>},
    {Id::materialise,
     {"materialise", "every result has memory of its own", "Graph", "Graph"},
     now<run_materialise>,
     print_graph<&C::materialised>},
    {Id::fuse,
     {"fuse", "ops are in groups, one for each kernel, in an order that can run", "Graph",
      "groups"},
     now<run_fuse>,
     print_groups},
    {Id::plan,
     {"plan", "every tensor has its place in memory", "groups", "Plan"},
     now<run_plan>,
     [](const C& c) { return c.plan.text(); }},
    {Id::lower,
     {"lower", "each step is a kernel: loops, index maps, the variant for the device", "Plan",
      "Kernel"},
     now<run_lower>,
     print_kernels},
    {Id::emit,
     {"emit", "kernels are what the device runs: tuned shaders, or calls of CPU routines", "Kernel",
      "code"},
     run_emit,
     [](const C& c) { return c.emitted->text(); }},
    {Id::load,
     {"load", "the device has compiled the code and can run it", "code", "Executable"},
     run_load,
     [](const C& c) { return c.loaded->text(); }},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kPipeline); ++i)
    if (usize(kPipeline[i].id) != i) return false;
  return true;
}
static_assert(in_order(), "Stage::Id lists the stages in the order of the table");

using Clock = std::chrono::steady_clock;

}  // namespace

std::span<const Stage> pipeline() { return kPipeline; }

Completion<Done> run_stages(const std::shared_ptr<Compilation>& compilation, Stage::Id first,
                            Stage::Id last) {
  const auto end = pipeline().begin() + static_cast<std::ptrdiff_t>(last) + 1;
  const auto stage = std::find_if(pipeline().begin() + static_cast<std::ptrdiff_t>(first), end,
                                  [&](const Stage& each) { return each.applies(*compilation); });
  if (stage == end) return Done{};
  const auto start = Clock::now();
  const Completion<Done> done = stage->run(*compilation).map([compilation, stage, start](Done) {
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    compilation->times.push_back({stage->info.name, took.count()});
    return Done{};
  });
  if (stage->id == last) return done;
  const auto next = static_cast<Stage::Id>(usize(stage->id) + 1);
  return done.map([compilation, next, last](Done) { return run_stages(compilation, next, last); });
}

std::string show_stage(const Compilation& compilation, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Stage& stage : kPipeline) {
    names.push_back(stage.info.name);
    if (stage.info.name != name) continue;
    if (!stage.applies(compilation)) user_error("show: a forward program has no stage '{}'", name);
    return stage.show(compilation);
  }
  user_error("show: there is no stage '{}': the stages are {}", name, fmt::join(names, ", "));
}

}  // namespace tensorgrad::detail

namespace tensorgrad {

std::vector<StageInfo> compiler_stages() {
  std::vector<StageInfo> out;
  for (const detail::Stage& stage : detail::pipeline()) out.push_back(stage.info);
  return out;
}

// Each stage is followed by its parts that can be left out.
std::vector<PassInfo> compiler_passes() {
  std::vector<PassInfo> out;
  const auto stage = [](detail::Stage::Id id) { return detail::pipeline()[usize(id)].info.name; };
  for (const auto& pass : passes::before_gradients())
    out.push_back({pass.name, pass.what, stage(detail::Stage::Id::recognise)});
  for (const auto& pass : passes::pipeline())
    if (pass.optional) out.push_back({pass.name, pass.what, stage(detail::Stage::Id::simplify)});
  for (const auto& part : schedule::switches()) out.push_back({part.name, part.what, part.stage});
  return out;
}

}  // namespace tensorgrad
