// Parameters and optimizer state in and out, counts, and the text of each stage.
#include <algorithm>

#include "codegen/wgsl/shader.h"
#include "compile/session.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/sha256.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Space;

std::vector<ParamInfo> Session::parameters() const {
  std::vector<ParamInfo> out;
  for (const ParamRecord& p : params_) out.push_back({p.name, p.shape, p.decay, p.frozen});
  return out;
}

NamedArrays Session::download(Space space) const {
  std::lock_guard lock(*mutex_);
  NamedArrays out;
  for (const ParamRecord& p : params_) {
    if (space == Space::gradients && p.frozen) continue;
    const runtime::Buffer& buffer = space == Space::gradients ? *gradient_buffer_ : *param_buffer_;
    out.emplace(p.name, read_array(buffer, param_layout_.find(p.name)->offset, {DType::f32, p.shape}));
  }
  return out;
}

void Session::upload(const NamedArrays& values, Upload mode) {
  std::lock_guard lock(*mutex_);
  std::vector<std::string> names;
  for (const ParamRecord& p : params_) names.push_back(p.name);
  for (const auto& [name, array] : values) {
    const auto* entry = param_layout_.find(name);
    if (!entry) {
      const auto alias = aliases_.find(name);
      const std::string hint = alias != aliases_.end() ? fmt::format("it is tied to '{}'", alias->second) : name_hint(name, names);
      throw UserError(user_message("upload", fmt::format("there is no parameter '{}'", name), hint, "", "", 0));
    }
    if (array.dtype() != DType::f32 || array.shape() != entry->type.shape)
      user_error("upload: '{}' is {}, the array is {}{}", name, entry->type.text(), tensorgrad::name(array.dtype()),
                 array.shape().text());
  }
  if (mode == Upload::strict) {
    std::vector<std::string> missing;
    for (const std::string& name : names)
      if (!values.count(name)) missing.push_back(name);
    if (!missing.empty())
      user_error("upload: missing: {}\n  hint: Upload::partial takes some of the parameters", join(missing, ", "));
  }
  for (const auto& [name, array] : values)
    device_->upload(*param_buffer_, param_layout_.find(name)->offset, std::as_bytes(array.floats()));
}

namespace {

constexpr const char* kStepEntry = "step";  // of the optimizer's state: steps made so far

// What a GPU would be given; the text needs none.
std::string wgsl_text(const std::vector<ir::Kernel>& kernels) {
  const bool guarded = std::any_of(kernels.begin(), kernels.end(), wgsl::checks_ids);
  std::string out;
  for (const wgsl::Shader& shader : wgsl::emit(kernels, {}, guarded))
    out += fmt::format("// {} x {} workgroups\n{}\n", shader.workgroups[0], shader.workgroups[1], shader.wgsl);
  return out;
}

}  // namespace

// State of all parameters in one tensor, "m:*"; outside it goes by parameter, "m:l1.W".
bool Session::is_flat(const schedule::Layout::Entry& entry) const { return entry.name.back() == ir::kFlat[0]; }

static std::string state_name(const schedule::Layout::Entry& entry, const ParamRecord& p) {
  return entry.name.substr(0, entry.name.size() - 1) + p.name;
}

NamedArrays Session::optimizer_state() const {
  std::lock_guard lock(*mutex_);
  NamedArrays out;
  for (const auto& entry : state_layout_.entries()) {
    if (entry.name == optim::kFailedState) continue;
    if (!is_flat(entry)) {
      out.emplace(entry.name, read_array(*state_buffer_, entry.offset, entry.type));
      continue;
    }
    for (const ParamRecord& p : params_)
      if (!p.frozen)
        out.emplace(state_name(entry, p),
                    read_array(*state_buffer_, entry.offset + param_layout_.find(p.name)->offset, {DType::f32, p.shape}));
  }
  out.emplace(kStepEntry, Array({}, std::vector<std::int32_t>{static_cast<std::int32_t>(steps_)}));
  return out;
}

void Session::upload_optimizer_state(const NamedArrays& state) {
  std::lock_guard lock(*mutex_);
  const NamedArrays now = optimizer_state();
  for (const auto& [name, array] : now) {
    const auto given = state.find(name);
    if (given == state.end()) user_error("upload_optimizer_state: missing: {}", name);
    if (given->second.dtype() != array.dtype() || given->second.shape() != array.shape())
      user_error("upload_optimizer_state: '{}' is {}{}, the array is {}{}", name, tensorgrad::name(array.dtype()),
                 array.shape().text(), tensorgrad::name(given->second.dtype()), given->second.shape().text());
  }
  for (const auto& [name, array] : state)
    if (!now.count(name)) user_error("upload_optimizer_state: there is no state '{}'", name);
  if (const std::int32_t step = state.at(kStepEntry).ints()[0]; step < 0)
    user_error("upload_optimizer_state: '{}' counts steps and is not negative: {}", kStepEntry, step);
  const auto put = [&](std::int64_t offset, const std::string& name) {
    const Array& array = state.at(name);
    device_->upload(*state_buffer_, offset,
                    array.dtype() == DType::f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints()));
  };
  for (const auto& entry : state_layout_.entries()) {
    if (entry.name == optim::kFailedState) continue;
    if (!is_flat(entry)) put(entry.offset, entry.name);
    else
      for (const ParamRecord& p : params_)
        if (!p.frozen) put(entry.offset + param_layout_.find(p.name)->offset, state_name(entry, p));
  }
  steps_ = state.at(kStepEntry).ints()[0];
}

std::string Session::fingerprint() const {
  std::lock_guard lock(*mutex_);
  Sha256 sha;
  const NamedArrays values = download(Space::parameters);
  for (const ParamRecord& p : params_) {
    sha.update(std::as_bytes(std::span(p.name.c_str(), p.name.size() + 1)));
    sha.update(std::as_bytes(values.at(p.name).floats()));
  }
  return sha.finish();
}

void Session::reset(Program& program, std::optional<std::uint32_t> seed) {
  std::lock_guard lock(*mutex_);
  device_->clear(*program.faults);
  device_->clear(*gradient_buffer_);
  device_->clear(*state_buffer_);
  program.runs = 0;
  if (seed) seed_ = *seed;
  pending_.clear();
  steps_ = 0;
  initialise();
}

void Session::set_lr(Schedule lr) {
  std::lock_guard lock(*mutex_);
  lr_ = std::move(lr);
}

double Session::next_lr() const {
  std::lock_guard lock(*mutex_);
  return lr_.at(next_update());
}

std::int64_t Session::steps() const {
  std::lock_guard lock(*mutex_);
  return steps_;
}

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

// The nodes that the wanted results need.
template <class Wanted>
std::vector<bool> needed_by(const ir::Graph& graph, Wanted wanted) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.size()), false);
  for (const ir::Result& result : graph.results)
    if (wanted(result)) needed[static_cast<std::size_t>(result.node)] = true;
  for (ir::NodeId id = graph.size() - 1; id >= 0; --id)
    if (needed[static_cast<std::size_t>(id)])
      for (const ir::NodeId input : graph[id].inputs) needed[static_cast<std::size_t>(input)] = true;
  return needed;
}

// Fusion joins the end of one phase with the beginning of the next: a kernel counts to the earliest it is needed in.
std::vector<std::string> phases_of(const schedule::Plan& plan) {
  using Kind = ir::Result::Kind;
  const auto forward = needed_by(plan.graph, [](const ir::Result& result) {
    return result.kind == Kind::capture || (result.kind == Kind::output && !result.name.starts_with('$'));
  });
  const auto backward =
      needed_by(plan.graph, [](const ir::Result& result) { return result.kind == Kind::gradient; });
  std::vector<std::string> out;
  for (const schedule::Step& step : plan.steps) {
    const auto stores = [&](const std::vector<bool>& needed) {
      return std::any_of(step.stored.begin(), step.stored.end(), [&](const schedule::Stored& stored) {
        return needed[static_cast<std::size_t>(stored.node)];
      });
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
    PlannedKernel kernel{.kind = std::string(step.kind()), .phase = phases[out.size()], .stage = step.stage, .ops = {}, .operations = step.operations,
                         .bytes_read = step.bytes_read, .bytes_written = step.bytes_written, .writes = {}};
    for (const ir::NodeId id : step.group.nodes) kernel.ops.emplace_back(plan.graph[id].op->name);
    for (const schedule::Stored& stored : step.stored) {
      const ir::Type& type = plan.graph[stored.node].type;
      kernel.writes.push_back({type.text(), ir::name(stored.place.space), 4 * stored.place.offset, 4 * type.shape.count(),
                               stored.last_use, stored.over >= 0});
    }
    out.push_back(std::move(kernel));
  }
  return out;
}

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
      for (const ir::NodeId id : plan.steps[s].group.nodes) out += "  " + ir::print_node(plan.graph, id) + "\n";
    }
    return out;
  }
  if (stage == "wgsl") return wgsl_text(program.main->kernels);
  for (const ir::Kernel& kernel : program.main->kernels) out += kernel.text();
  return out;
}

}  // namespace tensorgrad::detail
