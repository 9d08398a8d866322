// Compiled programs: running, reading, writing.
#include <algorithm>

#include "c/object.h"
#include "c/objects.h"
#include "compile/report_json.h"
#include "support/fail.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

namespace {

void write_types(JsonText& json, const char* key, const std::vector<TensorInfo>& list) {
  json.key(key).begin('[');
  for (const TensorInfo& info : list)
    json.begin('{')
        .field("name", info.name)
        .key("shape")
        .list(info.shape)
        .field("dtype", name(info.dtype))
        .end('}');
  json.end(']');
}

void write_parameters(JsonText& json, const std::vector<ParamInfo>& list) {
  json.key("parameters").begin('[');
  for (const ParamInfo& info : list)
    json.begin('{')
        .field("name", info.name)
        .key("shape")
        .list(info.shape)
        .field("decay", info.decay)
        .field("frozen", info.frozen)
        .end('}');
  json.end(']');
}

void write_kernels(JsonText& json, const std::vector<PlannedKernel>& list) {
  json.key("kernels").begin('[');
  for (const PlannedKernel& kernel : list)
    json.begin('{')
        .field("kind", kernel.kind)
        .field("phase", kernel.phase)
        .key("ops")
        .list(kernel.ops)
        .field("where", kernel.where)
        .end('}');
  json.end(']');
}

std::string describe(tg_program& program) {
  const ProgramHandle& handle = program.handle();
  JsonText json;
  json.begin('{')
      .field("trains", program.training != nullptr)
      .field("device", handle.device())
      .field("threads", handle.threads());
  write_parameters(json, handle.parameters());
  write_types(json, "inputs", handle.inputs());
  write_types(json, "outputs", handle.outputs());
  write_types(json, "captures", handle.captures());
  write_kernels(json, handle.plan());
  json.key("counts");
  detail::write_json(json, handle.counts());
  json.field("compile_ms", handle.compile_ms()).key("stage_ms").begin('{');
  for (const StageTime& time : handle.stage_times()) json.field(time.stage, time.milliseconds);
  return json.end('}').end('}').take();
}

// Everything that a result has.
struct Wanted {
  std::vector<TensorInfo> outputs;
  bool captures = false, grad_norm = false;
  std::int64_t step = -1;  // -1 for a forward pass
  double lr = 0;
};

void fill_result(tg_value& value, const Result& result, const Wanted& wanted) {
  for (const TensorInfo& output : wanted.outputs)
    value.arrays.values[output.name] = result[output.name];
  value.has_arrays = true;
  if (wanted.captures) value.captures.values = result.captures();
  value.has_captures = wanted.captures;
  if (wanted.step < 0) return;
  JsonText json;
  json.begin('{')
      .field("step", wanted.step)
      .field("lr", wanted.lr)
      .field("finite", result.finite());
  if (wanted.grad_norm) json.field("grad_norm", static_cast<double>(result.grad_norm()));
  value.text = json.end('}').take();
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

const char* tg_program_plan(tg_program* program) {
  return guarded(nullptr, [&]() -> const char* {
    program->text = detail::json_of(given(program, "program").handle().plan());
    return program->text.c_str();
  });
}

tg_future* tg_profile(tg_program* program, const tg_arrays* feed, int steps) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(program, "program").handle().profile_async(steps, feed_of(feed)),
                   fill_times);
  });
}

tg_future* tg_run(tg_program* handle, const tg_arrays* feed, int read) {
  return guarded(nullptr, [&]() -> tg_future* {
    tg_program& program = given(handle, "program");
    const RunOptions options{.captures = read == TG_READ_CAPTURES};
    Wanted wanted{.outputs = program.handle().outputs(), .captures = options.captures};
    if (program.training) {
      wanted.step = program.training->steps();
      wanted.lr = program.training->lr();
      wanted.grad_norm = program.clips && (wanted.step + 1) % program.accumulate == 0;
    }
    const Result result = program.training ? program.training->step_async(feed_of(feed), options)
                                           : program.forward->run_async(feed_of(feed), options);
    if (read == TG_READ_NOTHING) {
      auto nothing = std::make_unique<tg_future>();
      nothing->state->ready = true;
      return nothing.release();
    }
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
    const JsonDocument document = read_object(options, "reset");
    Object from(document.root(), "reset");
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
    const JsonDocument document = read_json(text_or(lr), "lr");
    given(program, "program").trains("set_lr").set_lr(read_schedule(document.root()));
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
