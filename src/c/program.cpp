// Compiled programs: running, reading, writing.
#include <fmt/format.h>

#include <algorithm>

#include "c/object.h"
#include "c/objects.h"
#include "support/fail.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

namespace {

Json types_of(const std::vector<TensorInfo>& list) {
  Json out = Json::array();
  for (const TensorInfo& info : list)
    out.push_back({{"name", info.name},
                   {"shape", std::vector<std::int64_t>(info.shape)},
                   {"dtype", name(info.dtype)}});
  return out;
}

std::string describe(tg_program& program) {
  const ProgramHandle& handle = program.handle();
  Json parameters = Json::array();
  for (const ParamInfo& info : handle.parameters())
    parameters.push_back({{"name", info.name},
                          {"shape", std::vector<std::int64_t>(info.shape)},
                          {"decay", info.decay},
                          {"frozen", info.frozen}});
  Json kernels = Json::array();
  for (const PlannedKernel& kernel : handle.plan())
    kernels.push_back({{"kind", kernel.kind},
                       {"phase", kernel.phase},
                       {"ops", kernel.ops},
                       {"where", kernel.where}});
  Json stages = Json::object();
  for (const StageTime& time : handle.stage_times())
    stages[std::string(time.stage)] = time.milliseconds;
  const Counts counts = handle.counts();
  return Json{{"trains", program.training != nullptr},
              {"device", handle.device()},
              {"threads", handle.threads()},
              {"parameters", parameters},
              {"inputs", types_of(handle.inputs())},
              {"outputs", types_of(handle.outputs())},
              {"captures", types_of(handle.captures())},
              {"kernels", kernels},
              {"counts",
               {{"kernels", counts.kernels},
                {"dispatches", counts.dispatches},
                {"passes", counts.passes},
                {"submits", counts.submits},
                {"arena_bytes", counts.arena_bytes},
                {"param_bytes", counts.param_bytes},
                {"gradient_bytes", counts.gradient_bytes},
                {"state_bytes", counts.state_bytes},
                {"input_bytes", counts.input_bytes},
                {"operations", counts.operations},
                {"bytes_moved", counts.bytes_moved}}},
              {"compile_ms", handle.compile_ms()},
              {"stage_ms", stages}}
      .dump();
}

// Everything that a result has.
struct Wanted {
  std::vector<TensorInfo> outputs;
  bool captures = false, grad_norm = false;
  Json of_step;  // null for a forward pass
};

void fill_result(tg_value& value, const Result& result, const Wanted& wanted) {
  for (const TensorInfo& output : wanted.outputs)
    value.arrays.values[output.name] = result[output.name];
  value.has_arrays = true;
  if (wanted.captures) value.captures.values = result.captures();
  value.has_captures = wanted.captures;
  if (wanted.of_step.is_null()) return;
  Json text = wanted.of_step;
  text["finite"] = result.finite();
  if (wanted.grad_norm) text["grad_norm"] = result.grad_norm();  // NaN becomes null
  value.text = dump(text);
}

// A result calls back with itself, not with a future.
tg_future* waiting_for(const Result& result, std::function<void(tg_value&, const Result&)> fill) {
  auto made = std::make_unique<tg_future>();
  result.then([state = made->state, fill = std::move(fill)](const Result& done) {
    complete(*state, [&](tg_value& value) { fill(value, done); });
  });
  return made.release();
}

}  // namespace

void tg_program_free(tg_program* program) { free_handle(program); }

const char* tg_program_info(tg_program* program) {
  return guarded(nullptr, [&]() -> const char* {
    program->text = describe(given(program, "program"));
    return program->text.c_str();
  });
}

const char* tg_program_show(tg_program* program, const char* stage) {
  return guarded(nullptr, [&]() -> const char* {
    program->text = given(program, "program").handle().show(text_or(stage));
    return program->text.c_str();
  });
}

tg_future* tg_run(tg_program* handle, const tg_arrays* feed, int captures) {
  return guarded(nullptr, [&]() -> tg_future* {
    tg_program& program = given(handle, "program");
    const RunOptions options{.captures = captures != 0};
    Wanted wanted{.outputs = program.handle().outputs(), .captures = options.captures};
    if (program.training) {
      const std::int64_t step = program.training->steps();
      wanted.of_step = {{"step", step}, {"lr", program.training->lr()}};
      wanted.grad_norm = program.clips && (step + 1) % program.accumulate == 0;
    }
    const Result result = program.training ? program.training->step_async(feed_of(feed), options)
                                           : program.forward->run_async(feed_of(feed), options);
    return waiting_for(result, [wanted = std::move(wanted)](tg_value& value, const Result& done) {
      fill_result(value, done, wanted);
    });
  });
}

int tg_set_inputs(tg_program* handle, const tg_arrays* values) {
  return guarded(0, [&] {
    ProgramHandle& program = given(handle, "program").handle();
    const std::vector<TensorInfo> inputs = program.inputs();
    const auto fits = [&](const std::string& name, const Array& array) {
      return std::any_of(inputs.begin(), inputs.end(), [&](const TensorInfo& input) {
        return input.name == name && input.dtype == array.dtype() && input.shape == array.shape();
      });
    };
    const NamedArrays& all = given(values, "values").values;
    for (const auto& [name, array] : all)
      if (!fits(name, array)) program.set_input(name, FeedValue(array));  // throws
    for (const auto& [name, array] : all) program.set_input(name, FeedValue(array));
    return 1;
  });
}

tg_future* tg_download(tg_program* handle, const char* what) {
  return guarded(nullptr, [&]() -> tg_future* {
    tg_program& program = given(handle, "program");
    const std::string_view part = text_or(what);
    if (part == "parameters") return waiting(program.handle().download_async(), fill_arrays);
    if (part == "gradients")
      return waiting(program.trains("download").gradients_async(), fill_arrays);
    if (part == "optimizer")
      return waiting(program.trains("download").optimizer_state_async(), fill_arrays);
    user_error("download: unknown part '{}'\n  hint: parameters, gradients, optimizer", part);
  });
}

int tg_upload(tg_program* program, const tg_arrays* parameters, int partial) {
  return guarded(0, [&] {
    given(program, "program")
        .handle()
        .upload(given(parameters, "parameters").values, partial ? Upload::partial : Upload::strict);
    return 1;
  });
}

tg_future* tg_restore(tg_program* program, const tg_arrays* parameters,
                      const tg_arrays* optimizer) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(program, "program")
                       .trains("restore")
                       .restore_async(given(parameters, "parameters").values,
                                      given(optimizer, "optimizer").values),
                   [](tg_value&, Done&) {});
  });
}

int tg_reset(tg_program* handle, const char* options) {
  return guarded(0, [&] {
    OpenTraining& training = given(handle, "program").trains("reset");
    const Json json = read_object(options, "reset");
    Object from(json, "reset");
    std::optional<std::uint32_t> seed;
    bool optimizer_only = false;
    if (from.find("seed")) seed = from.require<std::uint32_t>("seed");
    from.read("optimizer", optimizer_only);
    from.finish();
    if (optimizer_only && seed) user_error("reset: 'seed' draws weights, 'optimizer' keeps them");
    if (optimizer_only)
      training.reset_optimizer();
    else
      training.reset(seed);
    return 1;
  });
}

int tg_restart(tg_program* handle, const tg_arrays* parameters) {
  return guarded(0, [&] {
    OpenTraining& training = given(handle, "program").trains("restart");
    training.upload(given(parameters, "parameters").values);  // throws before anything is changed
    training.reset_optimizer();
    return 1;
  });
}

int tg_set_lr(tg_program* program, const char* lr) {
  return guarded(0, [&] {
    const Json json = read_json(text_or(lr), "lr");
    given(program, "program").trains("set_lr").set_lr(read_schedule(json));
    return 1;
  });
}

int64_t tg_steps(tg_program* program) {
  return guarded(-1,
                 [&]() -> int64_t { return given(program, "program").trains("steps").steps(); });
}

int64_t tg_updates(tg_program* program) {
  return guarded(-1, [&]() -> int64_t {
    return given(program, "program").trains("updates").steps() / program->accumulate;
  });
}
