// Runs programs: submits kernels in order and reports failures to the results they belong to.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "compile/session.h"
#include "ir/primitive.h"
#include "runtime/blocking.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

using ir::Space;
namespace blocking = runtime::blocking;

namespace {

float bits_of(std::int32_t value) {
  float bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

runtime::Spaces Session::spaces(Program& program, Executable& executable) const {
  runtime::Spaces out{};
  const auto set = [&](Space space, const std::shared_ptr<runtime::Buffer>& buffer) {
    out[usize(space)] = buffer.get();
  };
  set(Space::parameters, param_buffer_);
  set(Space::gradients, gradient_buffer_);
  set(Space::state, state_buffer_);
  set(Space::inputs, program.input_buffer);
  set(Space::outputs, executable.outputs);
  for (int i = 0; i < ir::kArenas; ++i) set(ir::arena(i), executable.arenas[usize(i)]);
  out.faults = program.faults.get();
  return out;
}

Array Session::read_array(const runtime::Buffer& buffer, std::int64_t offset, const ir::Type& type,
                          std::string_view what) const {
  return host_array(type, what, [&](std::span<std::byte> bytes) {
    blocking::read(*device_, buffer, offset, bytes);
  });
}

// Copies results of the earlier run that are still wanted, before this run overwrites them.
void Session::submit(Program& program, Executable& executable) {
  initialise();
  if (const auto earlier = executable.latest.lock()) {
    earlier->snapshot();
    if (earlier->bytes && 4 * executable.made.plan.outputs.elements() > runtime::Device::kSnapshot)
      earlier->bytes->wait();
  }
  blocking::submit(*device_, *executable.made.loaded, spaces(program, executable));
}

std::shared_ptr<Outcome> Session::expect_outcome(const std::shared_ptr<Program>& program,
                                                 Executable& executable, bool captures) {
  auto outcome = std::make_shared<Outcome>();
  outcome->mutex = mutex_;
  outcome->session = shared_from_this();
  outcome->program = program;
  outcome->executable = &executable;
  outcome->with_captures = captures;
  outcome->step = program->training ? steps_ : -1;
  executable.latest = outcome;
  return outcome;
}

std::optional<runtime::IndexFailure> Session::failure_of(const Program& program) const {
  std::array<std::byte, 4 * runtime::kFaultElements> bytes{};
  blocking::read(*device_, *program.faults, 0, bytes);
  return runtime::Device::failure_in(bytes);
}

namespace {

// Exclusive upper bound of the ids of a node.
std::int64_t id_extent(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  switch (node.op->core) {
    case ir::Core::gather:
      return graph[node.inputs[0]].type.shape[0];
    case ir::Core::take:
      return graph[node.inputs[0]].type.shape[node.as<ir::AxisAttrs>().axis];
    case ir::Core::segment_sum:
      return node.as<ir::RowsAttrs>().rows;
    case ir::Core::scatter_add:
      return node.as<ir::ScatterAttrs>().size;
    default:
      return node.as<ir::CheckAttrs>().size;
  }
}

std::string broken_rule(const ir::Graph& graph, const runtime::IndexFailure& failure) {
  if (const std::string_view own = graph[failure.node].op->broken; !own.empty())
    return std::string(own);
  const std::int64_t extent = id_extent(graph, failure.node);
  const std::string range =
      extent > 0 ? fmt::format("ids are 0 to {}", extent - 1) : "there are none";
  return fmt::format("id {} is out of range: {}", failure.value, range);
}

}  // namespace

// Throws the error of the op that met a bad id. That step, and every step behind it, had no effect.
void Session::raise_failure(Program& program, const runtime::IndexFailure& failure,
                            std::int64_t step) {
  for (const auto& each : {&program.main, &program.with_captures, &program.accumulating,
                           &program.accumulating_captures})
    if (*each)
      if (const auto behind = (*each)->latest.lock()) {  // reading it reports the same error
        behind->snapshot();
        behind->told = true;
      }
  const std::array<std::int32_t, runtime::kFaultElements> none{};
  device_->upload(*program.faults, 0, std::as_bytes(std::span(none)));
  if (program.training) {
    if (step >= 0) steps_ = std::min(steps_, step);
    notice();
  }
  const Executable* executable = program.executable(static_cast<Program::Kind>(failure.tag));
  if (!executable)
    internal_error("a bad id was reported for an unknown program: {}", failure.value);
  const ir::Graph& graph = executable->made.plan.graph;
  const ir::Node& node = graph[failure.node];
  const ir::CallSite& site = graph.sites[usize(node.site)];
  const std::string op = site.composite.empty() ? std::string(node.op->name) : site.composite;
  const std::string text =
      user_message(op, broken_rule(graph, failure), "", site.scope, site.file, site.line);
  const bool late = program.training && !device_->immediate();
  throw UserError(late ? fmt::format("step {}: {}", steps_, text) : text);
}

std::shared_ptr<Outcome> Session::step(const std::shared_ptr<Program>& program, const Feed& feed,
                                       const RunOptions& options) {
  std::lock_guard lock(*mutex_);
  raise_pending();
  check_feed(*program, feed);
  const double rate = next_rate();
  if (!(rate >= 0 && rate <= std::numeric_limits<float>::max()))
    user_error(
        "step: the learning rate of update {} is {}\n  hint: rates must be finite and not negative",
        next_update(), rate);
  const bool accumulating = accumulate_ > 1 && (steps_ + 1) % accumulate_ != 0;
  Executable& executable = choose(*program, options.captures, accumulating);
  drop_stale_sums();
  feed_inputs(*program, feed);
  feed_scalar(*program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(*program, ops::Builder::kStepInput, bits_of(static_cast<std::int32_t>(steps_)));
  feed_scalar(*program, ops::Builder::kRateInput, static_cast<float>(rate));
  submit(*program, executable);
  auto outcome = expect_outcome(program, executable, options.captures);
  ++steps_;
  if (device_->immediate()) outcome->settle();
  return outcome;
}

std::shared_ptr<Outcome> Session::run(const std::shared_ptr<Program>& program, const Feed& feed,
                                      const RunOptions& options) {
  std::lock_guard lock(*mutex_);
  raise_pending();
  check_feed(*program, feed);
  Executable& executable = choose(*program, options.captures, false);
  feed_inputs(*program, feed);
  feed_scalar(*program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(*program, ops::Builder::kStepInput,
              bits_of(static_cast<std::int32_t>(program->runs)));
  submit(*program, executable);
  auto outcome = expect_outcome(program, executable, options.captures);
  if (device_->immediate()) outcome->settle();
  ++program->runs;
  return outcome;
}

namespace {

// Replaces the kernels of an executable by the same kernels with their own dispatches.
class Apart {
 public:
  Apart(runtime::Device& device, Executable* executable) : executable_(executable) {
    if (!executable) return;
    together_ = executable->made.loaded;
    executable->made.loaded = blocking::load(device, executable->made.emitted,
                                             executable->made.progress, runtime::Combine::apart);
  }
  ~Apart() {
    if (executable_) executable_->made.loaded = together_;
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

 private:
  Executable* executable_;
  std::shared_ptr<runtime::Loaded> together_;
};

}  // namespace

std::vector<DispatchTime> Session::profile(const std::shared_ptr<Program>& program, int steps) {
  std::lock_guard lock(*mutex_);
  if (steps < 1) user_error("profile: at least one step: {}", steps);
  std::vector<DispatchTime> best;
  const Apart main(*device_, program->main.get());
  const Apart accumulating(*device_, program->accumulating.get());
  for (int i = 0; i < steps;) {
    blocking::finish(*device_);
    struct Profiling {
      runtime::Device& device;
      explicit Profiling(runtime::Device& d) : device(d) { device.profile(true); }
      ~Profiling() { device.profile(false); }
    } profiling(*device_);
    const auto outcome = program->training ? step(program, {}, {}) : run(program, {}, {});
    const auto times = wait_for(*device_, device_->take_times(*outcome->executable->made.loaded),
                                "measuring a run");
    if (outcome->executable != program->main.get())
      continue;  // a step that only accumulates is not part of the plan
    ++i;
    if (best.empty())
      for (const auto& time : times) best.push_back({time.kernel, time.name, time.microseconds});
    for (std::size_t j = 0; j < times.size(); ++j)
      best[j].microseconds = std::min(best[j].microseconds, times[j].microseconds);
  }
  return best;
}

void Session::wait(Program& program) {
  std::lock_guard lock(*mutex_);
  blocking::finish(*device_);
  for (const auto& executable : {&program.main, &program.with_captures, &program.accumulating,
                                 &program.accumulating_captures})
    if (*executable)
      if (const auto latest = (*executable)->latest.lock(); latest && !latest->told)
        latest->settle();
  if (const auto failure = failure_of(program)) raise_failure(program, *failure, -1);
  notice();
  raise_pending();
}

void Session::raise_pending() {
  std::lock_guard lock(*mutex_);
  if (pending_.empty()) return;
  const std::string text = pending_;
  acknowledge(pending_step_);
  throw NonFiniteError(text);
}

void Session::acknowledge(std::int64_t step) {
  std::lock_guard lock(*mutex_);
  if (pending_.empty() || pending_step_ != step) return;  // older, already reported
  pending_.clear();
  write_counter(optim::kFailedState, 0);
  write_counter(optim::kStepsState, steps_);
}

// A failed step leaves the sums of its round unchanged. If it was the last of the round, the sums
// are dropped when the next round starts.
void Session::drop_stale_sums() {
  if (!stale_sums_ || steps_ % accumulate_ != 0) return;
  stale_sums_ = false;
  const auto* entry = state_layout_.find_flat(optim::kSumsState);
  if (!entry) return;
  const std::vector<float> zeros(usize(entry->type.shape.count()));
  device_->upload(*state_buffer_, entry->offset, std::as_bytes(std::span(zeros)));
}

void Session::write_counter(const char* name, std::int64_t value) {
  const auto number = static_cast<std::int32_t>(value);
  if (const auto* entry = state_layout_.find(name))
    device_->upload(*state_buffer_, entry->offset, std::as_bytes(std::span(&number, 1)));
}

std::optional<std::int64_t> Session::read_counter(const char* name) const {
  const auto* entry = state_layout_.find(name);
  if (!entry) return {};
  std::int32_t number = 0;
  blocking::read(*device_, *state_buffer_, entry->offset,
                 std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

namespace {

std::string short_failure(std::int64_t step) {
  return fmt::format("step {}: the loss, a gradient or the update is not finite", step);
}

}  // namespace

// On asynchronous devices: reads the device's counters for the steps so far, whether or not their
// results have been read.
void Session::notice() {
  if (device_->immediate()) return;
  if (const auto made = read_counter(optim::kStepsState)) steps_ = std::min(steps_, *made);
  const auto behind = non_finite_ == NonFinite::fail && pending_.empty()
                          ? read_counter(optim::kFailedState)
                          : std::nullopt;
  if (!behind || *behind == 0) return;
  pending_step_ = steps_ - *behind;
  steps_ = pending_step_ + 1;
  stale_sums_ = true;
  pending_ = short_failure(pending_step_);
}

// Records that step `step` was not finite. Its inputs and parameters still exist if it was the
// last.
std::string Session::note_failure(Program& program, std::int64_t step) {
  if (non_finite_ != NonFinite::fail || !pending_.empty()) return pending_;
  const bool later = step + 1 != steps_;
  steps_ = std::min(steps_, step + 1);  // the steps behind it changed nothing
  stale_sums_ = true;
  pending_step_ = step;
  pending_ = short_failure(step);
  if (later) return pending_;
  try {
    pending_ = fmt::format("step {}: {}", step, diagnose(program));
  } catch (const DeviceError&) {  // no memory to keep every value: use the short text
  }
  return pending_;
}

}  // namespace tensorgrad::detail
