// The public handles: they check that they are not empty and forward the call.
#include <new>

#include "compile/memory.h"
#include "compile/outcome.h"
#include "compile/training.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/sha256.h"
#include "support/text.h"

namespace tensorgrad {

using detail::Outcome;
using detail::Run;

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

// Returns the run with all values read. Blocks. Throws the error of the run.
const Run& numbers(const std::shared_ptr<Outcome>& outcome, const char* call) {
  return behind(outcome, call).wait(Run::Wanted::values);
}

// Returns the run once it has finished; its values stay on the device. Throws its error.
const Run& finished(const std::shared_ptr<Outcome>& outcome, const char* call) {
  return behind(outcome, call).wait(Run::Wanted::status);
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
  const NamedArrays& outputs = numbers(outcome_, "loss").outputs();
  const auto found = outputs.find(trace::kLossOutput);
  if (found == outputs.end()) user_error("loss: this program has no loss\n  hint: output()");
  return found->second.floats()[0];
}

const Array& Result::output() const& {
  const NamedArrays& outputs = numbers(outcome_, "output").outputs();
  const std::vector<std::string> names = names_of(outputs);
  if (names.size() != 1)
    user_error("output: there are several outputs: {}\n  hint: result[\"{}\"]", join(names, ", "),
               names.front());
  return outputs.at(names.front());
}

const Array& Result::operator[](std::string_view name) const& {
  const NamedArrays& outputs = numbers(outcome_, "output").outputs();
  const auto found = outputs.find(std::string(name));
  if (found != outputs.end()) return found->second;
  user_error("output: there is no output '{}': the outputs are {}", name,
             listed(names_of(outputs)));
}

const NamedArrays& Result::captures() const& {
  const Run& run = numbers(outcome_, "captures");
  if (!run.with_captures())
    user_error(
        "captures: they were not requested\n  hint: step(feed, {{.captures = true}}) or run(feed, "
        "{{.captures = true}})");
  return run.captures();
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
  const NamedArrays& outputs = numbers(outcome_, "grad_norm").outputs();
  const auto found = outputs.find(optim::kNormOutput);
  if (found == outputs.end())
    user_error(
        "grad_norm: only steps that clip gradients compute their norm\n  hint: "
        ".clip_grad_norm");
  return found->second.floats()[0];
}

bool Result::finite() const { return finished(outcome_, "finite").finite(); }

void Result::wait() const { finished(outcome_, "wait"); }

bool Result::ready() const { return behind(outcome_, "ready").ready(); }

void Result::then(std::function<void(const Result&)> callback) const {
  behind(outcome_, "then").then([callback = std::move(callback)](std::shared_ptr<Outcome> ready) {
    callback(Result(std::move(ready)));
  });
}

namespace {

// Reads parameters or gradients.
Future<NamedArrays> read(detail::Driver& driver, ir::Space space) {
  const auto arrays = std::make_shared<NamedArrays>();
  const auto step = [&driver, space, arrays] {
    return driver.state().read(space).map([arrays](NamedArrays& all) {
      *arrays = std::move(all);
      return Done{};
    });
  };
  return driver.start(
      {step}, [arrays] { return std::move(*arrays); }, "reading");
}

}  // namespace

detail::Driver& ProgramHandle::driver(const char* call) const {
  if (!driver_) user_error("{}: this program was moved from", call);
  return *driver_;
}

detail::Program& ProgramHandle::program(const char* call) const {
  driver(call);
  return *program_;
}

void ProgramHandle::set_input(const std::string& name, const FeedValue& value) {
  program("set_input").set_input(name, value);
}
std::vector<ParamInfo> ProgramHandle::parameters() const {
  std::vector<ParamInfo> out;
  for (const detail::Parameter& p : driver("parameters").state().parameters().list)
    out.push_back({p.name, p.shape, p.decay, p.frozen});
  return out;
}
std::vector<TensorInfo> ProgramHandle::inputs() const {
  std::vector<TensorInfo> out;
  for (const InputSpec& spec : program("inputs").inputs())
    out.push_back({spec.name, spec.shape, spec.dtype});
  return out;
}
std::vector<TensorInfo> ProgramHandle::outputs() const {
  return program("outputs").results(ir::Result::Kind::output);
}
std::vector<TensorInfo> ProgramHandle::captures() const {
  return program("captures").results(ir::Result::Kind::capture);
}
Future<NamedArrays> ProgramHandle::download_async() const {
  return read(driver("download"), ir::Space::parameters);
}
std::shared_ptr<Pollable> ProgramHandle::source() const {
  driver("source");
  return driver_;
}
NamedArrays ProgramHandle::download() const { return download_async().take(); }
void ProgramHandle::upload(const NamedArrays& values, Upload mode) {
  detail::Driver& own = driver("upload");
  const std::lock_guard lock(own.turn());
  if (const auto late = own.take_late()) std::rethrow_exception(late);
  own.state().check(values, mode);
  if (own.queue().empty()) return own.state().write(values);
  own.in_order([&own, values] { own.state().write(values); });
}
std::string ProgramHandle::fingerprint() const {
  driver("fingerprint");
  Sha256 sha;
  const NamedArrays values = download();
  for (const ParamInfo& p : parameters()) {
    sha.update(std::as_bytes(std::span(p.name.c_str(), p.name.size() + 1)));
    sha.update(std::as_bytes(values.at(p.name).floats()));
  }
  return sha.finish();
}
Counts ProgramHandle::counts() const { return program("counts").counts(); }
double ProgramHandle::compile_ms() const { return program("compile_ms").compile_ms(); }
std::string ProgramHandle::device() const { return driver("device").device().name(); }
int ProgramHandle::threads() const { return driver("threads").device().threads(); }
std::string ProgramHandle::show(std::string_view stage) const {
  return program("show").show(stage);
}
std::vector<PlannedKernel> ProgramHandle::plan() const { return program("plan").plan(); }
std::vector<DispatchTime> ProgramHandle::profile(int steps, const Feed& feed) {
  return profile_async(steps, feed).take();
}
Future<std::vector<DispatchTime>> ProgramHandle::profile_async(int steps, const Feed& feed) {
  return program("profile").profile_async(steps, feed);
}
std::vector<StageTime> ProgramHandle::stage_times() const {
  return program("stage_times").stage_times();
}

Result ProgramHandle::run_program(const char* call, const Feed& feed,
                                  const RunOptions& options) const {
  auto run = program(call).run(feed, options);
  return Result(std::make_shared<Outcome>(driver_, driver_, std::move(run)));
}
Result ProgramHandle::run_program_async(const char* call, const Feed& feed,
                                        const RunOptions& options) const {
  auto run = program(call).run_async(feed, options);
  return Result(std::make_shared<Outcome>(driver_, driver_, std::move(run)));
}

detail::TrainingProgram& TrainingHandle::training(const char* call) const {
  return static_cast<detail::TrainingProgram&>(program(call));
}

Result TrainingHandle::step(const Feed& feed, const RunOptions& options) {
  return run_program("step", feed, options);
}
Result TrainingHandle::step_async(const Feed& feed, const RunOptions& options) {
  return run_program_async("step", feed, options);
}
Future<NamedArrays> TrainingHandle::gradients_async() const {
  return read(driver("gradients"), ir::Space::gradients);
}
NamedArrays TrainingHandle::gradients() const { return gradients_async().take(); }
Future<NamedArrays> TrainingHandle::optimizer_state_async() const {
  return training("optimizer_state").optimizer_state_async();
}
NamedArrays TrainingHandle::optimizer_state() const { return optimizer_state_async().take(); }
void TrainingHandle::upload_optimizer_state(const NamedArrays& state) {
  training("upload_optimizer_state").restore(nullptr, state);
}
void TrainingHandle::restore(const NamedArrays& parameters, const NamedArrays& optimizer_state) {
  training("restore").restore(&parameters, optimizer_state);
}
Future<Done> TrainingHandle::restore_async(const NamedArrays& parameters,
                                           const NamedArrays& optimizer_state) {
  return training("restore").restore_async(&parameters, optimizer_state);
}
void TrainingHandle::reset(std::optional<std::uint32_t> seed) { training("reset").reset(seed); }
void TrainingHandle::reset_optimizer() { training("reset_optimizer").reset_optimizer(); }
void TrainingHandle::set_lr(Schedule lr) { training("set_lr").set_lr(std::move(lr)); }
double TrainingHandle::lr() const { return training("lr").lr(); }
std::int64_t TrainingHandle::steps() const { return driver("steps").steps(); }
Future<Done> TrainingHandle::wait_async() { return training("wait").wait_async(); }
void TrainingHandle::wait() { wait_async().get(); }

Result ForwardHandle::run(const Feed& feed, const RunOptions& options) {
  return run_program("run", feed, options);
}
Result ForwardHandle::run_async(const Feed& feed, const RunOptions& options) {
  return run_program_async("run", feed, options);
}

}  // namespace tensorgrad
