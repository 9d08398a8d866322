// compile(), compile_forward() and attach(): options are checked and the function is traced in the
// call. The rest is a task. A Recording does the same around ops that its caller calls.
#include <atomic>
#include <utility>

#include "compile/options.h"
#include "compile/recording.h"
#include "compile/training.h"
#include "runtime/device.h"

namespace tensorgrad::detail {

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

Future<Compiled> compile(const std::shared_ptr<Driver>& driver,
                         const std::shared_ptr<Program>& program, std::vector<TaskStep> before) {
  std::vector<TaskStep> steps = std::move(before);
  for (TaskStep& step : program->compile_steps()) steps.push_back(std::move(step));
  return driver
      ->start(
          std::move(steps), [program] { return program; }, "compiling")
      .map([driver = std::weak_ptr(driver)](const std::shared_ptr<Program>& made) {
        return Compiled{driver.lock(), made};
      });
}

// `select` checks the options and says which parameters are trained.
template <class Options, class Select>
std::shared_ptr<Driver> make_driver(const FoundParams& params, const Options& options,
                                    Select select) {
  runtime::Opening opening =
      runtime::open_device(options.device, threads_asked_for(options.threads));
  const std::uint64_t id = next_id();
  Parameters parameters = collect_parameters(params, id);
  select(parameters);
  prepare_initialisers(parameters, options.seed);
  return Driver::make(std::move(opening), std::move(parameters), id, options.seed);
}

// Opens the device and allocates the parameters.
std::vector<TaskStep> place(Driver& driver) {
  return {[&driver] { return driver.open(); },
          [&driver] { return driver.state().place(driver.shared_device()); }};
}

std::shared_ptr<Driver> driver_for(const FoundParams& params, const TrainingOptions& options) {
  return make_driver(params, options, [&](Parameters& parameters) {
    passes_left_out(options.without);  // names are checked before anything else
    check_options(options, parameters);
    select_trained(parameters, options);
  });
}

Request request_for(const Driver& driver, const TrainingOptions& options) {
  return training_request(options, driver.state().parameters(), driver.state().layout(),
                          driver.id());
}

AttachOptions as_attached(const ForwardOptions& options) {
  return {.inputs = options.inputs, .without = options.without, .progress = options.progress};
}

trace::Source source_of(const Trace& function) {
  return
      [&function](const trace::TraceOptions& options) { return trace::trace(options, function); };
}

}  // namespace

Future<Compiled> compile_training(const FoundParams& params, const TrainingOptions& options,
                                  const Trace& trace) {
  const auto driver = driver_for(params, options);
  return compile(driver,
                 std::make_shared<TrainingProgram>(*driver, options, request_for(*driver, options),
                                                   source_of(trace)),
                 place(*driver));
}

Future<Compiled> compile_forward(const FoundParams& params, const ForwardOptions& options,
                                 const Trace& trace) {
  const auto driver = make_driver(params, options, [](Parameters&) {});
  return compile(
      driver,
      std::make_shared<Program>(*driver, forward_request(as_attached(options), driver->id()),
                                source_of(trace), options.progress),
      place(*driver));
}

Future<Compiled> attach(const std::shared_ptr<Driver>& driver, const AttachOptions& options,
                        const Trace& trace) {
  return compile(driver,
                 std::make_shared<Program>(*driver, forward_request(options, driver->id()),
                                           source_of(trace), options.progress),
                 {});
}

// ---- programs whose ops the caller calls

Recording::Recording(std::shared_ptr<Driver> driver, Request request, std::vector<TaskStep> before,
                     Make make)
    : driver_(std::move(driver)),
      request_(std::move(request)),
      before_(std::move(before)),
      make_(std::move(make)),
      tracer_(request_.trace) {}

Recording Recording::of_training(const FoundParams& params, const TrainingOptions& options) {
  const auto driver = driver_for(params, options);
  return {driver, request_for(*driver, options), place(*driver),
          [options](Driver& own, Request request, const trace::Source& source) {
            return std::make_shared<TrainingProgram>(own, options, std::move(request), source);
          }};
}

Recording Recording::of_forward(const FoundParams& params, const ForwardOptions& options) {
  const auto driver = make_driver(params, options, [](Parameters&) {});
  Recording attached = of_attached(driver, as_attached(options));
  attached.before_ = place(*driver);
  return attached;
}

Recording Recording::of_attached(const std::shared_ptr<Driver>& driver,
                                 const AttachOptions& options) {
  return {driver,
          forward_request(options, driver->id()),
          {},
          [progress = options.progress](Driver& own, Request request, const trace::Source& source) {
            return std::make_shared<Program>(own, std::move(request), source, progress);
          }};
}

Future<Compiled> Recording::finish(const Outputs& outputs) && {
  const trace::Source source = [&](const trace::TraceOptions&) {
    return std::move(tracer_).finish(outputs);
  };
  const auto program = make_(*driver_, std::move(request_), source);
  return compile(driver_, program, std::move(before_));
}

}  // namespace tensorgrad::detail
