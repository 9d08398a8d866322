#include "compile/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "compile/initialise.h"
#include "compile/options.h"
#include "runtime/blocking.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;
namespace blocking = runtime::blocking;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_diagnosing(Program::Kind kind) {
  return kind == Program::Kind::diagnosing || kind == Program::Kind::diagnosing_update;
}

// The update that an executable of a training program makes.
std::optional<optim::Purpose> purpose_of(Program::Kind kind) {
  switch (kind) {
    case Program::Kind::main:
    case Program::Kind::with_captures:
      return optim::Purpose::apply;
    case Program::Kind::accumulating:
    case Program::Kind::accumulating_captures:
      return optim::Purpose::accumulate;
    case Program::Kind::diagnosing:
      return {};
    case Program::Kind::diagnosing_update:
      return optim::Purpose::candidate;
  }
  return {};
}

}  // namespace

std::vector<TensorInfo> Program::results(Result::Kind kind) const {
  std::vector<TensorInfo> out;
  for (const Result& result : front.traced->results) {
    const ir::Type& type = (*front.traced)[result.node].type;
    if (result.kind == kind) out.push_back({result.name, type.shape, type.dtype});
  }
  return out;
}

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

}  // namespace

Session::Session(const FoundParams& params, const std::string& device, int threads,
                 std::uint32_t seed)
    : id_(next_id()),
      device_(runtime::open_device(device, threads_asked_for(threads))),
      params_(collect_parameters(params, id_)),
      has_values_(params_.list.size(), false),
      seed_(seed) {}

void Session::place_parameters() {
  layout_ = lay_out(params_);
  param_buffer_ = allocate(Space::parameters, layout_.layout.elements(), nullptr,
                           [&] { return tenants(layout_.layout); });
  prepare_initialisers(params_, seed_);
}

std::shared_ptr<runtime::Buffer> Session::allocate(
    Space space, std::int64_t elements, const schedule::Plan* plan,
    const std::function<std::vector<Tenant>()>& tenants) const {
  try {
    return blocking::allocate(*device_, elements, word(space));
  } catch (const OutOfMemoryError& error) {
    const bool of_the_model =
        space == Space::parameters || space == Space::gradients || space == Space::state;
    throw explained(error, tenants(), plan,
                    of_the_model ? "a smaller model, or a device with more room"
                                 : "a smaller batch, or a device with more room");
  }
}

void Session::initialise() {
  for (std::size_t i = 0; i < params_.list.size(); ++i) {
    if (has_values_[i]) continue;
    const Parameter& p = params_.list[i];
    const std::vector<float> values = compile_stage::initial_values(p.init, p.shape, p.name, seed_);
    device_->upload(*param_buffer_, layout_.layout.find(p.name)->offset,
                    std::as_bytes(std::span(values)));
    has_values_[i] = true;
  }
}

// The stages after those that all executables of a program share.
std::unique_ptr<Executable> Session::compile(Program& program, Program::Kind kind) {
  auto executable = std::make_unique<Executable>();
  Compilation& made = executable->made;
  made = program.front;
  made.captures =
      kind == Program::Kind::with_captures || kind == Program::Kind::accumulating_captures;
  if (program.training) made.purpose = purpose_of(kind);
  made.tag = static_cast<int>(kind);
  made.device = device_.get();
  made.parameters = &layout_.layout, made.state = &state_layout_, made.inputs = &program.inputs;
  if (is_diagnosing(kind))
    made.request.without = {"fuse", "reuse"};  // keeps every value
  else
    made.progress = program.progress;
  run_stages(made, Stage::Id::update, Stage::Id::lower);
  // Allocate before the kernels are compiled, which takes a while, so that lack of memory fails
  // early.
  const schedule::Plan& plan = made.plan;
  const auto elements = [&](Space space) { return plan.elements[usize(space)]; };
  executable->outputs = allocate(Space::outputs, elements(Space::outputs), &plan,
                                 [&] { return tenants(plan.outputs); });
  for (int i = 0; i < ir::kArenas; ++i)
    executable->arenas[usize(i)] =
        allocate(ir::arena(i), elements(ir::arena(i)), &plan, [&] { return tenants(plan); });
  run_stages(made, Stage::Id::emit, Stage::Id::load);
  if (!program.faults)
    program.faults = blocking::allocate(*device_, runtime::kFaultElements, "bad ids");
  return executable;
}

// Traces the user's function, and differentiates the loss.
void Session::run_front(Program& program, const Trace& function) {
  program.front.function = &function;
  run_stages(program.front, Stage::Id::trace, Stage::Id::differentiate);
  program.front.function = nullptr;
  for (const InputSpec& spec : program.specs)
    program.inputs.place(spec.name, {spec.dtype, spec.shape});
}

std::shared_ptr<Program> Session::build_training(const TrainingOptions& options,
                                                 const Trace& function) {
  auto program = std::make_shared<Program>();
  program->training = true;
  program->specs = options.inputs;
  program->progress = options.progress;
  passes_left_out(options.without);  // names are checked before anything else
  check_options(options, params_);
  select_trained(params_, options);
  accumulate_ = options.accumulate;
  non_finite_ = options.non_finite;
  updates_ = !std::holds_alternative<NoOptimizer>(options.optimizer);
  lr_ = rate_of(options.optimizer);
  place_parameters();
  const auto start = Clock::now();
  program->front.request = training_request(options, params_, layout_, id_);
  run_front(*program, function);
  program->main = compile(*program, Program::Kind::main);
  if (accumulate_ > 1) program->accumulating = compile(*program, Program::Kind::accumulating);
  allocate_inputs(*program);
  gradient_buffer_ = allocate(Space::gradients, layout_.layout.elements(),
                              &program->main->made.plan, [&] { return tenants(layout_.layout); });
  grow_state(*program);
  program->compile_ms = ms_since(start);
  return program;
}

std::shared_ptr<Program> Session::build_forward(const AttachOptions& options,
                                                const Trace& function) {
  std::lock_guard lock(*mutex_);
  const auto start = Clock::now();
  if (!param_buffer_) place_parameters();
  auto program = std::make_shared<Program>();
  program->specs = options.inputs;
  program->progress = options.progress;
  program->front.request.trace = {
      .inputs = options.inputs, .training = options.training, .model = id_};
  program->front.request.without = passes_left_out(options.without);
  run_front(*program, function);
  program->main = compile(*program, Program::Kind::main);
  allocate_inputs(*program);
  program->compile_ms = ms_since(start);
  return program;
}

void Session::allocate_inputs(Program& program) const {
  program.input_buffer =
      allocate(Space::inputs, program.inputs.elements(), &program.main->made.plan,
               [&] { return tenants(program.inputs); });
  program.input_capacity = program.inputs.elements();
}

// Optimizer state starts as zeros.
void Session::grow_state(const Program& program) {
  if (state_buffer_ && state_capacity_ >= state_layout_.elements()) return;
  state_buffer_ = allocate(Space::state, state_layout_.elements(), &program.main->made.plan,
                           [&] { return tenants(layout_.layout); });
  state_capacity_ = state_layout_.elements();
}

Executable& Session::choose(Program& program, bool captures, bool accumulating) {
  if (!captures) return accumulating ? *program.accumulating : *program.main;
  if (program.results(Result::Kind::capture).empty())
    user_error(
        "captures: this program has none\n  hint: capture(\"name\", tensor) in the traced function "
        "names one");
  std::unique_ptr<Executable>& executable =
      accumulating ? program.accumulating_captures : program.with_captures;
  if (!executable) {
    // A capture may read an input that nothing else read; all declared inputs have a place already.
    // If memory is lacking, the program stays as it was.
    const schedule::Layout before = program.inputs;
    try {
      executable = compile(program, accumulating ? Program::Kind::accumulating_captures
                                                 : Program::Kind::with_captures);
      if (program.inputs.elements() != program.input_capacity) {
        allocate_inputs(program);
        program.scalars.clear();
        for (auto& [name, held] : program.held) held.current = false;
      }
    } catch (...) {
      program.inputs = before;
      executable.reset();
      throw;
    }
  }
  return *executable;
}

}  // namespace tensorgrad::detail
