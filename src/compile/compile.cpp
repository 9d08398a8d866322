// compile(), compile_forward() and attach(): options are checked and the function is traced in the
// call. The rest is a task.
#include <atomic>
#include <utility>

#include "compile/options.h"
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

}  // namespace

Future<Compiled> compile_training(const FoundParams& params, const TrainingOptions& options,
                                  const Trace& trace) {
  const auto driver = make_driver(params, options, [&](Parameters& parameters) {
    passes_left_out(options.without);  // names are checked before anything else
    check_options(options, parameters);
    select_trained(parameters, options);
  });
  return compile(driver, std::make_shared<TrainingProgram>(*driver, options, trace),
                 place(*driver));
}

Future<Compiled> compile_forward(const FoundParams& params, const ForwardOptions& options,
                                 const Trace& trace) {
  const auto driver = make_driver(params, options, [](Parameters&) {});
  const Request request =
      forward_request({.inputs = options.inputs, .without = options.without}, driver->id());
  return compile(driver, std::make_shared<Program>(*driver, request, trace, options.progress),
                 place(*driver));
}

Future<Compiled> attach(const std::shared_ptr<Driver>& driver, const AttachOptions& options,
                        const Trace& trace) {
  const auto program = std::make_shared<Program>(*driver, forward_request(options, driver->id()),
                                                 trace, options.progress);
  return compile(driver, program, {});
}

}  // namespace tensorgrad::detail
