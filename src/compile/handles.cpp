// The public handles: they check that they are not empty and forward the call.
#include <array>
#include <new>

#include "compile/session.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad {

using detail::Outcome;

FeedValue::FeedValue(const Array& array) : dtype_(array.dtype()), shape_(array.shape()) {
  if (dtype_ == DType::f32)
    floats_ = array.floats();
  else
    ints_ = array.ints();
}

FeedValue::FeedValue(Array&& array) {
  const auto own = std::make_shared<const Array>(std::move(array));
  *this = FeedValue(*own);
  owner_ = own;
}

namespace {

Outcome& behind(const std::shared_ptr<Outcome>& outcome, const char* call) {
  if (!outcome) user_error("{}: this result was moved from", call);
  return *outcome;
}

// Returns the outcome with all values read. Blocks. Throws the error of the run.
const Outcome& numbers(const std::shared_ptr<Outcome>& outcome, const char* call) {
  behind(outcome, call).resolve();
  outcome->check();
  return *outcome;
}

// Returns the outcome of a finished run; its values stay on the device. Throws the error of the
// run.
const Outcome& settled(const std::shared_ptr<Outcome>& outcome, const char* call) {
  behind(outcome, call).settle();
  outcome->check();
  return *outcome;
}

std::vector<std::string> names_of(const NamedArrays& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays)
    if (name[0] != '$') names.push_back(name);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

float Result::loss() const {
  const NamedArrays& outputs = numbers(outcome_, "loss").outputs;
  const auto found = outputs.find(trace::kLossOutput);
  if (found == outputs.end()) user_error("loss: this program has no loss\n  hint: output()");
  return found->second.floats()[0];
}

const Array& Result::output() const& {
  const NamedArrays& outputs = numbers(outcome_, "output").outputs;
  const std::vector<std::string> names = names_of(outputs);
  if (names.size() != 1)
    user_error("output: there are several outputs: {}\n  hint: result[\"{}\"]", join(names, ", "),
               names.front());
  return outputs.at(names.front());
}

const Array& Result::operator[](std::string_view name) const& {
  const NamedArrays& outputs = numbers(outcome_, "output").outputs;
  const auto found = outputs.find(std::string(name));
  if (found != outputs.end()) return found->second;
  user_error("output: there is no output '{}': the outputs are {}", name,
             listed(names_of(outputs)));
}

const NamedArrays& Result::captures() const& {
  const Outcome& outcome = numbers(outcome_, "captures");
  if (!outcome.with_captures)
    user_error(
        "captures: they were not requested\n  hint: step(feed, {{.captures = true}}) or run(feed, "
        "{{.captures = true}})");
  return outcome.captures;
}

const Array& Result::capture(std::string_view name) const& {
  const NamedArrays& all = captures();
  const auto found = all.find(std::string(name));
  if (found != all.end()) return found->second;
  user_error("capture: there is no capture '{}': the captures are {}", name, listed(names_of(all)));
}

namespace {

Array copy_of(const Array& array, std::string_view what) {
  try {
    return array;
  } catch (const std::bad_alloc&) {
    throw detail::no_host_memory({array.dtype(), array.shape()}, what);
  }
}

}  // namespace

Array Result::output() && { return copy_of(std::as_const(*this).output(), "a copy of the output"); }
Array Result::operator[](std::string_view name) && {
  return copy_of(std::as_const(*this)[name], fmt::format("a copy of output '{}'", name));
}
Array Result::capture(std::string_view name) && {
  return copy_of(std::as_const(*this).capture(name), fmt::format("a copy of capture '{}'", name));
}
NamedArrays Result::captures() && {
  NamedArrays out;
  for (const auto& [name, array] : std::as_const(*this).captures())
    out.emplace(name, copy_of(array, fmt::format("a copy of capture '{}'", name)));
  return out;
}

float Result::grad_norm() const {
  const NamedArrays& outputs = numbers(outcome_, "grad_norm").outputs;
  const auto found = outputs.find(optim::kNormOutput);
  if (found == outputs.end())
    user_error(
        "grad_norm: only steps that clip gradients compute their norm\n  hint: "
        ".clip_grad_norm");
  return found->second.floats()[0];
}

bool Result::finite() const { return settled(outcome_, "finite").finite; }

void Result::wait() const { settled(outcome_, "wait"); }

detail::Session& ProgramHandle::session(const char* call) const {
  if (!session_) user_error("{}: this program was moved from", call);
  return *session_;
}

detail::Program& ProgramHandle::program(const char* call) const {
  session(call);
  return *program_;
}

void ProgramHandle::set_input(const std::string& name, const FeedValue& value) {
  session("set_input").set_input(program("set_input"), name, value);
}
std::vector<ParamInfo> ProgramHandle::parameters() const {
  return session("parameters").parameters();
}
std::vector<TensorInfo> ProgramHandle::inputs() const {
  std::vector<TensorInfo> out;
  for (const InputSpec& spec : program("inputs").specs)
    out.push_back({spec.name, spec.shape, spec.dtype});
  return out;
}
std::vector<TensorInfo> ProgramHandle::outputs() const {
  return program("outputs").results(ir::Result::Kind::output);
}
std::vector<TensorInfo> ProgramHandle::captures() const {
  return program("captures").results(ir::Result::Kind::capture);
}
NamedArrays ProgramHandle::download() const {
  return session("download").download(ir::Space::parameters);
}
void ProgramHandle::upload(const NamedArrays& values, Upload mode) {
  session("upload").upload(values, mode);
}
std::string ProgramHandle::fingerprint() const { return session("fingerprint").fingerprint(); }
Counts ProgramHandle::counts() const { return session("counts").counts(program("counts")); }
double ProgramHandle::compile_ms() const { return program("compile_ms").compile_ms; }
std::string ProgramHandle::device() const { return session("device").device().name(); }
int ProgramHandle::threads() const { return session("threads").device().threads(); }
std::string ProgramHandle::show(std::string_view stage) const {
  return session("show").show(program("show"), stage);
}

std::vector<PlannedKernel> ProgramHandle::plan() const {
  return session("plan").plan(program("plan"));
}

std::vector<DispatchTime> ProgramHandle::profile(int steps) {
  return session("profile").profile((program("profile"), program_), steps);
}

std::vector<StageTime> ProgramHandle::stage_times() const {
  return session("stage_times").stage_times(program("stage_times"));
}

Result TrainingHandle::step(const Feed& feed, const RunOptions& options) {
  return Result(session("step").step((program("step"), program_), feed, options));
}
NamedArrays TrainingHandle::gradients() const {
  return session("gradients").download(ir::Space::gradients);
}
NamedArrays TrainingHandle::optimizer_state() const {
  return session("optimizer_state").optimizer_state();
}
void TrainingHandle::upload_optimizer_state(const NamedArrays& state) {
  session("upload_optimizer_state").upload_optimizer_state(state);
}
void TrainingHandle::restore(const NamedArrays& parameters, const NamedArrays& optimizer_state) {
  session("restore").restore(parameters, optimizer_state);
}
void TrainingHandle::reset(std::optional<std::uint32_t> seed) {
  session("reset").reset(program("reset"), seed);
}
void TrainingHandle::reset_optimizer() {
  session("reset_optimizer").reset_optimizer(program("reset_optimizer"));
}
void TrainingHandle::set_lr(Schedule lr) { session("set_lr").set_lr(std::move(lr)); }
double TrainingHandle::lr() const { return session("lr").next_lr(); }
std::int64_t TrainingHandle::steps() const { return session("steps").steps(); }
void TrainingHandle::wait() { session("wait").wait(program("wait")); }

Result ForwardHandle::run(const Feed& feed, const RunOptions& options) {
  return Result(session("run").run((program("run"), program_), feed, options));
}

namespace detail {

Compiled compile_training(const FoundParams& params, const TrainingOptions& options,
                          const Trace& trace) {
  auto session = std::make_shared<Session>(params, options.device, options.threads, options.seed);
  auto program = session->build_training(options, trace);
  return {session, program};
}

Compiled compile_forward(const FoundParams& params, const ForwardOptions& options,
                         const Trace& trace) {
  auto session = std::make_shared<Session>(params, options.device, options.threads, options.seed);
  auto program = session->build_forward(
      {.inputs = options.inputs, .without = options.without, .progress = options.progress}, trace);
  return {session, program};
}

Compiled attach(const std::shared_ptr<Session>& session, const AttachOptions& options,
                const Trace& trace) {
  return {session, session->build_forward(options, trace)};
}

}  // namespace detail

}  // namespace tensorgrad
