// Options of programs, from JSON. The names are those of the C++ structs.
#include <fmt/format.h>

#include "c/arguments.h"
#include "c/object.h"
#include "support/fail.h"
#include "support/json_text.h"
#include "support/text.h"
#include "support/words.h"

namespace tensorgrad::c {

namespace {

std::vector<InputSpec> read_inputs(Object& options) {
  const Json* list = options.find("inputs");
  if (!list) return {};
  if (!list->is_list()) user_error("inputs must be a list: {}", shown(*list));
  std::vector<InputSpec> inputs;
  for (const Json& item : list->items()) {
    Object input(item, "inputs");
    InputSpec spec{input.require<std::string>("name"), input.require<Shape>("shape")};
    input.read("dtype", spec.dtype);
    input.finish();
    inputs.push_back(std::move(spec));
  }
  return inputs;
}

Optimizer read_optimizer(const Json& json) {
  Object options(json, "optimizer");
  const auto kind = options.require<std::string>("kind");
  const auto finished = [&](auto optimizer) {
    options.finish();
    return optimizer;
  };
  if (kind == "none") return finished(NoOptimizer{});
  if (kind == "sgd") {
    Sgd sgd;
    options.read("lr", sgd.lr);
    options.read("momentum", sgd.momentum);
    options.read("nesterov", sgd.nesterov);
    options.read("weight_decay", sgd.weight_decay);
    return finished(sgd);
  }
  const auto read_adam = [&](auto& adam) {
    options.read("lr", adam.lr);
    options.read("beta1", adam.beta1);
    options.read("beta2", adam.beta2);
    options.read("eps", adam.eps);
  };
  if (kind == "adam") {
    Adam adam;
    read_adam(adam);
    return finished(adam);
  }
  if (kind == "adamw") {
    AdamW adam;
    read_adam(adam);
    options.read("weight_decay", adam.weight_decay);
    return finished(adam);
  }
  user_error("optimizer: unknown kind '{}'\n  hint: sgd, adam, adamw, none", kind);
}

template <class Options>
void read_device(Object& from, Options& options) {
  from.read("seed", options.seed);
  from.read("device", options.device);
  from.read("threads", options.threads);
  from.read("without", options.without);
}

}  // namespace

Schedule read_schedule(const Json& json) {
  if (json.is_number()) return json.number();
  Object options(json, "lr");
  const auto kind = options.require<std::string>("kind");
  const auto finished = [&](Schedule schedule) {
    options.finish();
    return schedule;
  };
  if (kind == "linear" || kind == "cosine") {
    const auto peak = options.require<double>("peak"), last = options.require<double>("last");
    const auto steps = options.require<std::int64_t>("steps");
    return finished(kind == "linear" ? linear(peak, last, steps) : cosine(peak, last, steps));
  }
  if (kind == "warmup") {
    const auto steps = options.require<std::int64_t>("steps");
    return finished(warmup(steps, options.require<Schedule>("after")));
  }
  if (kind == "staircase") {
    const auto rate = options.require<double>("rate"), factor = options.require<double>("factor");
    return finished(staircase(rate, factor, options.require<std::int64_t>("every")));
  }
  if (kind == "multi_step") {
    const auto rate = options.require<double>("rate"), factor = options.require<double>("factor");
    return finished(
        multi_step(rate, factor, options.require<std::vector<std::int64_t>>("milestones")));
  }
  user_error("lr: unknown kind '{}'\n  hint: linear, cosine, warmup, staircase, multi_step", kind);
}

Init read_init(const Json& json, std::span<const float> values) {
  const JsonDocument of_word =
      parse_json(JsonText().begin('{').field("kind", json.text()).end('}').text(), 1);
  Object options(json.is_text() ? of_word.root() : json, "init");
  const auto kind = options.require<std::string>("kind");
  const auto number = [&](const char* name, float otherwise) {
    options.read(name, otherwise);
    return otherwise;
  };
  const auto range = [&](Init (*make)(float, float)) {
    const auto low = options.require<float>("low");
    return make(low, options.require<float>("high"));
  };
  Init made;
  if (kind == "zeros")
    made = init::zeros();
  else if (kind == "ones")
    made = init::ones();
  else if (kind == "constant")
    made = init::constant(options.require<float>("value"));
  else if (kind == "normal")
    made = init::normal(options.require<float>("deviation"), number("mean", 0));
  else if (kind == "uniform")
    made = range(init::uniform);
  else if (kind == "kaiming")
    made = init::kaiming(number("gain", 1.41421356f));
  else if (kind == "kaiming_uniform")
    made = init::kaiming_uniform(number("gain", 1));
  else if (kind == "xavier")
    made = init::xavier(number("gain", 1));
  else if (kind == "log_of_uniform")
    made = range(init::log_of_uniform);
  else if (kind == "step_size")
    made = range(init::step_size);
  else if (kind == "literal")
    made = init::literal({values.begin(), values.end()});
  else
    user_error(
        "init: unknown kind '{}'\n  hint: zeros, ones, constant, normal, uniform, kaiming, "
        "kaiming_uniform, xavier, log_of_uniform, step_size, literal",
        kind);
  options.finish();
  return made;
}

TrainingOptions read_training(const Json& json) {
  Object from(json, "options");
  TrainingOptions options;
  options.inputs = read_inputs(from);
  if (const Json* optimizer = from.find("optimizer"))
    options.optimizer = read_optimizer(*optimizer);
  from.read("clip_grad_norm", options.clip_grad_norm);
  from.read("normalize_grads", options.normalize_grads);
  from.read("accumulate", options.accumulate);
  from.read("freeze", options.freeze);
  from.read("train_only", options.train_only);
  from.read("decay", options.decay);
  from.read("non_finite", options.non_finite);
  read_device(from, options);
  from.finish();
  return options;
}

ForwardOptions read_forward(const Json& json) {
  Object from(json, "options");
  ForwardOptions options;
  options.inputs = read_inputs(from);
  read_device(from, options);
  from.finish();
  return options;
}

AttachOptions read_attach(const Json& json) {
  Object from(json, "options");
  AttachOptions options;
  options.inputs = read_inputs(from);
  from.read("training", options.training);
  from.read("without", options.without);
  from.finish();
  return options;
}

}  // namespace tensorgrad::c
