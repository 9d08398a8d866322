// Running programs: inputs in, kernels submitted, results read when somebody asks for them.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "compile/session.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;

namespace {

float bits_of(std::int32_t value) {
  float bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

void Session::check_feed(const Program& program, const Feed& feed) const {
  std::vector<std::string> names;
  for (const InputSpec& spec : program.specs) names.push_back(spec.name);
  const auto& items = feed.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [name, value] = items[i];
    const auto spec = std::find_if(program.specs.begin(), program.specs.end(),
                                   [&, &own = name](const InputSpec& s) { return s.name == own; });
    if (spec == program.specs.end()) {
      const std::string near = nearest_name(name, names);
      user_error("input: there is no input '{}': the inputs are {}{}", name, names.empty() ? "none" : join(names, ", "),
                 near.empty() ? "" : fmt::format("\n  hint: '{}'?", near));
    }
    for (std::size_t j = 0; j < i; ++j)
      if (items[j].first == name) user_error("input: '{}' is fed twice", name);
    const bool wants_real = spec->dtype == DType::f32, is_real = value.dtype() == DType::f32;
    if (wants_real != is_real)
      user_error("input: '{}' is {}{}, {} values were fed", name, tensorgrad::name(spec->dtype), spec->shape.text(),
                 tensorgrad::name(value.dtype()));
    const std::size_t count = is_real ? value.floats().size() : value.ints().size();
    if (static_cast<std::int64_t>(count) != spec->shape.count())
      user_error("input: '{}' is {}{} and needs {} values, {} were fed", name, tensorgrad::name(spec->dtype),
                 spec->shape.text(), spec->shape.count(), count);
    if (value.shape() && *value.shape() != spec->shape)
      user_error("input: '{}' is {}{}, an array of shape {} was fed", name, tensorgrad::name(spec->dtype),
                 spec->shape.text(), value.shape()->text());
    if (spec->dtype == DType::boolean)
      for (const std::int32_t v : value.ints())
        if (v != 0 && v != 1) user_error("input: '{}' is bool and takes 0 and 1: {} was fed", name, v);
  }
  for (const InputSpec& spec : program.specs) {
    const bool fed = std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.first == spec.name; });
    if (!fed && !program.held.count(spec.name))
      user_error("input: '{}' is missing: it is {}{}\n  hint: feed it, or set_input() once", spec.name,
                 tensorgrad::name(spec.dtype), spec.shape.text());
  }
}

namespace {

std::span<const std::byte> bytes_of(const FeedValue& value) {
  return value.dtype() == DType::f32 ? std::as_bytes(value.floats()) : std::as_bytes(value.ints());
}

}  // namespace

void Session::feed_inputs(Program& program, const Feed& feed) {
  for (const auto& [name, value] : feed.items()) {
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, bytes_of(value));
    if (const auto held = program.held.find(name); held != program.held.end()) held->second.current = false;
  }
  for (auto& [name, held] : program.held) {
    const bool fed = std::any_of(feed.items().begin(), feed.items().end(),
                                 [&, &own = name](const auto& item) { return item.first == own; });
    if (fed || held.current) continue;
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, held.bytes);
    held.current = true;
  }
}

void Session::feed_scalar(Program& program, const char* name, float value) {
  const auto* entry = program.inputs.find(name);
  if (!entry) return;
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto last = program.scalars.try_emplace(name, ~bits).first;
  if (last->second == bits) return;  // it is there already
  device_->upload(*program.input_buffer, entry->offset, std::as_bytes(std::span(&bits, 1)));
  last->second = bits;
}

void Session::set_input(Program& program, const std::string& name, const FeedValue& value) {
  std::lock_guard lock(mutex_);
  Program only;
  only.specs = program.specs;
  std::erase_if(only.specs, [&](const InputSpec& spec) { return spec.name != name; });
  if (only.specs.empty()) only.specs = program.specs;
  check_feed(only, {{name, value}});
  const auto bytes = bytes_of(value);
  program.held[name] = {{bytes.begin(), bytes.end()}, false};
}

runtime::Spaces Session::spaces(Program& program, Variant& variant) const {
  runtime::Spaces out{};
  const auto set = [&](Space space, const std::unique_ptr<runtime::Buffer>& buffer) {
    out[static_cast<std::size_t>(space)] = buffer.get();
  };
  set(Space::parameters, param_buffer_);
  set(Space::gradients, gradient_buffer_);
  set(Space::state, state_buffer_);
  set(Space::inputs, program.input_buffer);
  set(Space::outputs, variant.outputs);
  set(Space::arena, variant.arena);
  out.faults = program.faults.get();
  return out;
}

Array Session::read_array(const runtime::Buffer& buffer, std::int64_t offset, const ir::Type& type) const {
  const auto count = static_cast<std::size_t>(type.shape.count());
  if (type.dtype == DType::f32) {
    std::vector<float> values(count);
    device_->read(buffer, offset, std::as_writable_bytes(std::span(values)));
    return {type.shape, std::move(values)};
  }
  std::vector<std::int32_t> values(count);
  device_->read(buffer, offset, std::as_writable_bytes(std::span(values)));
  return {type.shape, std::move(values), type.dtype};
}

// The numbers of an earlier run that somebody still wants, before this one writes over them.
void Session::submit(Program& program, Variant& variant) {
  if (const auto earlier = variant.latest.lock()) earlier->snapshot();
  device_->submit(*variant.loaded, spaces(program, variant));
}

std::shared_ptr<Outcome> Session::expect_outcome(const std::shared_ptr<Program>& program, Variant& variant, bool captures) {
  auto outcome = std::make_shared<Outcome>();
  outcome->session = shared_from_this();
  outcome->program = program;
  outcome->variant = &variant;
  outcome->with_captures = captures;
  outcome->step = program->training ? steps_ : -1;
  variant.latest = outcome;
  return outcome;
}

std::optional<runtime::IndexFailure> Session::failure_of(const Program& program) const {
  std::array<std::byte, 4 * runtime::kFaultElements> bytes{};
  device_->read(*program.faults, 0, bytes);
  return runtime::Device::failure_in(bytes);
}

namespace {

// The ids of a node are below this.
std::int64_t id_extent(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  switch (node.op->core) {
    case ir::Core::gather: return graph[node.inputs[0]].type.shape[0];
    case ir::Core::take: return graph[node.inputs[0]].type.shape[node.as<ir::AxisAttrs>().axis];
    case ir::Core::segment_sum: return node.as<ir::RowsAttrs>().rows;
    case ir::Core::scatter_add: return node.as<ir::ScatterAttrs>().size;
    default: return node.as<ir::CheckAttrs>().size;
  }
}

}  // namespace

// A bad id, in the words of the op that met it. The step has not happened, nor has any behind it.
void Session::raise_failure(Program& program, const runtime::IndexFailure& failure, std::int64_t step) {
  for (const auto& each : {&program.main, &program.with_captures, &program.accumulating, &program.accumulating_captures})
    if (*each)
      if (const auto behind = (*each)->latest.lock()) behind->snapshot();  // it is told the same
  const std::array<std::int32_t, runtime::kFaultElements> none{};
  device_->upload(*program.faults, 0, std::as_bytes(std::span(none)));
  if (program.training && step >= 0) steps_ = std::min(steps_, step);
  const Variant* variant = program.variant(static_cast<Program::Kind>(failure.tag));
  if (!variant) internal_error("a bad id of an unknown program: {}", failure.value);
  const ir::Graph& graph = variant->plan.graph;
  const ir::Node& node = graph[failure.node];
  const ir::CallSite& site = graph.sites[static_cast<std::size_t>(node.site)];
  const std::string op = site.composite.empty() ? std::string(node.op->name) : site.composite;
  const std::int64_t extent = id_extent(graph, failure.node);
  const std::string range = extent > 0 ? fmt::format("ids are 0 to {}", extent - 1) : "there are none";
  throw UserError(user_message(op, fmt::format("id {} is out of range: {}", failure.value, range), "", site.scope,
                               site.file, site.line));
}

std::shared_ptr<Outcome> Session::step(const std::shared_ptr<Program>& program, const Feed& feed, const RunOptions& options) {
  std::lock_guard lock(mutex_);
  raise_pending();
  check_feed(*program, feed);
  const double rate = lr_.at(next_update());
  if (!(rate >= 0 && rate <= std::numeric_limits<float>::max()))
    user_error("step: the learning rate of update {} is {}\n  hint: rates are finite and not negative", next_update(), rate);
  const bool accumulating = accumulate_ > 1 && (steps_ + 1) % accumulate_ != 0;
  Variant& variant = choose(*program, options.captures, accumulating);
  feed_inputs(*program, feed);
  feed_scalar(*program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(*program, ops::Builder::kStepInput, bits_of(static_cast<std::int32_t>(steps_)));
  feed_scalar(*program, ops::Builder::kRateInput, static_cast<float>(rate));
  submit(*program, variant);
  auto outcome = expect_outcome(program, variant, options.captures);
  ++steps_;
  if (device_->immediate()) outcome->settle();
  return outcome;
}

std::shared_ptr<Outcome> Session::run(const std::shared_ptr<Program>& program, const Feed& feed, const RunOptions& options) {
  std::lock_guard lock(mutex_);
  raise_pending();
  check_feed(*program, feed);
  Variant& variant = choose(*program, options.captures, false);
  feed_inputs(*program, feed);
  feed_scalar(*program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(*program, ops::Builder::kStepInput, bits_of(static_cast<std::int32_t>(program->runs)));
  submit(*program, variant);
  auto outcome = expect_outcome(program, variant, options.captures);
  if (device_->immediate()) outcome->settle();
  ++program->runs;
  return outcome;
}

std::vector<DispatchTime> Session::profile(const std::shared_ptr<Program>& program, int steps) {
  std::lock_guard lock(mutex_);
  if (steps < 1) user_error("profile: at least one step: {}", steps);
  std::vector<DispatchTime> best;
  for (int i = 0; i < steps; ++i) {
    device_->wait();
    struct Profiling {
      runtime::Device& device;
      explicit Profiling(runtime::Device& d) : device(d) { device.profile(true); }
      ~Profiling() { device.profile(false); }
    } profiling(*device_);
    const auto outcome = program->training ? step(program, {}, {}) : run(program, {}, {});
    const auto times = device_->take_times(*outcome->variant->loaded);
    if (best.size() > times.size()) best.clear();  // a step that only accumulates is another program
    if (best.empty())
      for (const auto& time : times) best.push_back({time.kernel, time.name, time.microseconds});
    for (std::size_t j = 0; j < times.size(); ++j) best[j].microseconds = std::min(best[j].microseconds, times[j].microseconds);
  }
  return best;
}

void Session::wait(Program& program) {
  std::lock_guard lock(mutex_);
  device_->wait();
  for (const auto& variant : {&program.main, &program.with_captures, &program.accumulating, &program.accumulating_captures})
    if (*variant)
      if (const auto latest = (*variant)->latest.lock()) latest->settle();
  if (const auto failure = failure_of(program)) raise_failure(program, *failure, -1);
  raise_pending();
}

void Session::raise_pending() {
  std::lock_guard lock(mutex_);
  if (pending_.empty()) return;
  const std::string text = pending_;
  acknowledge(pending_step_);
  throw NonFiniteError(text);
}

void Session::acknowledge(std::int64_t step) {
  std::lock_guard lock(mutex_);
  if (pending_.empty() || pending_step_ != step) return;  // an older one, seen before
  pending_.clear();
  const std::int32_t zero = 0;
  if (const auto* entry = state_layout_.find(optim::kFailedState))
    device_->upload(*state_buffer_, entry->offset, std::as_bytes(std::span(&zero, 1)));
}

// The step was not finite. Its inputs and parameters are still there if no other came after it.
std::string Session::note_failure(Outcome& outcome) {
  if (non_finite_ != NonFinite::fail || !pending_.empty()) return pending_;
  const bool later = outcome.step + 1 != steps_;
  steps_ = std::min(steps_, outcome.step + 1);  // those behind it changed nothing
  pending_step_ = outcome.step;
  pending_ = fmt::format("step {}: the loss or a gradient is not finite", outcome.step);
  if (later) return pending_;
  try {
    pending_ = fmt::format("step {}: {}", outcome.step, diagnose(*outcome.program));
  } catch (const DeviceError&) {  // no memory to keep every value: the short text has to do
  }
  return pending_;
}

// ---- outcomes

// The bytes of the outputs as they are now; read at once where that costs no waiting.
void Outcome::snapshot() {
  if (done || bytes) return;
  const std::int64_t elements = variant->plan.outputs.elements();
  if (elements > 0) bytes = session->device_->read_later(*variant->outputs, 0, 4 * elements);
  if (!settled) faults = session->device_->read_later(*program->faults, 0, 4 * runtime::kFaultElements);
}

// Looks at the flags of the step, and at what kernels reported.
void Outcome::settle() {
  if (settled) return;
  std::lock_guard lock(session->mutex_);
  if (!faults) session->device_->wait();
  const auto failure = faults ? runtime::Device::failure_in(faults->wait()) : session->failure_of(*program);
  if (failure) session->raise_failure(*program, *failure, step);
  settled = true;
  const schedule::Plan& plan = variant->plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output || result.name != optim::kFiniteOutput) continue;
    const Array flag = read(plan.results[i].offset, plan.graph[result.node].type);
    finite = flag.ints()[0] != 0;
  }
  if (!finite && step >= 0) error = session->note_failure(*this);
}

void Outcome::resolve() {
  if (done) return;
  const std::shared_ptr<Session> owner = session;  // released below
  std::lock_guard lock(owner->mutex_);
  if (!owner->device_->immediate()) snapshot();  // all of it in one read
  settle();
  const schedule::Plan& plan = variant->plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output && result.kind != Result::Kind::capture) continue;
    if (result.name == optim::kFiniteOutput) continue;
    Array array = read(plan.results[i].offset, plan.graph[result.node].type);
    (result.kind == Result::Kind::output ? outputs : captures).emplace(result.name, std::move(array));
  }
  done = true;
  bytes.reset();
  faults.reset();
  watched = owner;
  session.reset();
  program.reset();
}

Array Outcome::read(std::int64_t offset, const ir::Type& type) {
  if (!bytes) return session->read_array(*variant->outputs, offset, type);
  const auto all = bytes->wait();
  const auto count = static_cast<std::size_t>(type.shape.count());
  const std::byte* from = all.data() + 4 * offset;
  if (type.dtype == DType::f32) {
    std::vector<float> values(count);
    if (count) std::memcpy(values.data(), from, 4 * count);
    return {type.shape, std::move(values)};
  }
  std::vector<std::int32_t> values(count);
  if (count) std::memcpy(values.data(), from, 4 * count);
  return {type.shape, std::move(values), type.dtype};
}

void Outcome::check() {
  if (error.empty()) return;
  if (const auto owner = session ? session : watched.lock()) owner->acknowledge(step);
  throw NonFiniteError(error);
}

}  // namespace tensorgrad::detail
