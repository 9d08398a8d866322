#include "compile/options.h"

#include <algorithm>
#include <cstdlib>

#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::detail {

std::vector<std::string> passes_left_out(std::vector<std::string> without) {
  if (const char* more = std::getenv("TENSORGRAD_WITHOUT"))
    for (std::string& name : split(more, ','))
      if (!name.empty()) without.push_back(std::move(name));
  std::vector<std::string> known;
  for (const PassInfo& pass : compiler_passes()) known.emplace_back(pass.name);
  for (const std::string& name : without)
    if (std::find(known.begin(), known.end(), name) == known.end())
      user_error("compile: there is no pass '{}' to leave out\n  hint: {}", name,
                 join(known, ", "));
  return without;
}

int threads_asked_for(int threads) {
  const char* text = threads == 0 ? std::getenv("TENSORGRAD_THREADS") : nullptr;
  if (!text || !*text) return threads;
  char* end = nullptr;
  const long wanted = std::strtol(text, &end, 10);
  if (*end || wanted < 1 || wanted > 1024)
    user_error("TENSORGRAD_THREADS: '{}' is not a number between 1 and 1024", text);
  return static_cast<int>(wanted);
}

namespace {

void check_filter(const char* what, const NameFilter& filter, const Parameters& parameters) {
  const std::vector<std::string> names = parameters.names();
  for (const std::string& pattern : filter)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches(pattern, name); }))
      throw UserError(user_message("compile",
                                   fmt::format("{} names no parameter: '{}'", what, pattern),
                                   name_hint(pattern, names), "", "", 0));
}

bool updates(const Optimizer& optimizer) { return !std::holds_alternative<NoOptimizer>(optimizer); }

struct RateOf {
  template <class O>
  Schedule operator()(const O& optimizer) const {
    return optimizer.lr;
  }
  Schedule operator()(const NoOptimizer&) const { return 0.0; }
};

}  // namespace

void check_options(const TrainingOptions& options, const Parameters& parameters) {
  if (options.accumulate < 1)
    user_error("compile: accumulate must be at least 1: {}", options.accumulate);
  if (!(options.clip_grad_norm >= 0))
    user_error("compile: clip_grad_norm must not be negative: {}", options.clip_grad_norm);
  optim::check_optimizer(options.optimizer);
  if (!updates(options.optimizer) && options.accumulate > 1)
    user_error("compile: accumulate needs an optimizer, NoOptimizer updates nothing");
  check_filter("freeze", options.freeze, parameters);
  check_filter("normalize_grads", options.normalize_grads, parameters);
  if (options.train_only) check_filter("train_only", *options.train_only, parameters);
  if (options.decay) check_filter("decay", *options.decay, parameters);
}

Schedule rate_of(const Optimizer& optimizer) { return std::visit(RateOf{}, optimizer); }

Request training_request(const TrainingOptions& options, const Parameters& parameters,
                         const ParameterLayout& layout, std::uint64_t model) {
  Request request;
  request.trace = {.inputs = options.inputs, .training = true, .wants_loss = true, .model = model};
  for (const Parameter& p : parameters.list)
    if (!p.frozen)
      request.trained.push_back({p.name, p.shape, layout.layout.find(p.name)->offset, p.decay,
                                 matches_any(options.normalize_grads, p.name)});
  if (!request.trains())
    user_error("compile: {}", parameters.list.empty()
                                  ? "the model has no parameters to train\n  hint: compile_forward?"
                                  : "all parameters are frozen");
  request.flat_elements = layout.trained_elements;
  request.update = {.optimizer = options.optimizer,
                    .clip_grad_norm = options.clip_grad_norm,
                    .non_finite = options.non_finite,
                    .accumulate = options.accumulate};
  request.without = passes_left_out(options.without);
  return request;
}

Request forward_request(const AttachOptions& options, std::uint64_t model) {
  Request request;
  request.trace = {.inputs = options.inputs, .training = options.training, .model = model};
  request.without = passes_left_out(options.without);
  return request;
}

}  // namespace tensorgrad::detail
