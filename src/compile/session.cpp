#include "compile/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "autodiff/differentiate.h"
#include "compile/initialise.h"
#include "kernels/lower.h"
#include "passes/pipeline.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The graph without the captures that nobody asked for, and without what only they needed.
ir::Graph simplify(ir::Graph graph, bool captures, const std::vector<std::string>& without) {
  if (!captures) std::erase_if(graph.results, [](const Result& r) { return r.kind == Result::Kind::capture; });
  return passes::simplify(std::move(graph), without);
}

// The passes to leave out: those asked for, and those that TENSORGRAD_WITHOUT names.
std::vector<std::string> left_out(std::vector<std::string> without) {
  if (const char* more = std::getenv("TENSORGRAD_WITHOUT"))
    for (std::string& name : split(more, ','))
      if (!name.empty()) without.push_back(std::move(name));
  std::vector<std::string> known;
  for (const PassInfo& pass : compiler_passes()) known.emplace_back(pass.name);
  for (const std::string& name : without)
    if (std::find(known.begin(), known.end(), name) == known.end())
      user_error("compile: there is no pass '{}' to leave out\n  hint: {}", name, join(known, ", "));
  return without;
}

// One per core, unless TENSORGRAD_THREADS says otherwise.
int default_threads(int threads) {
  const char* text = threads == 0 ? std::getenv("TENSORGRAD_THREADS") : nullptr;
  if (!text || !*text) return threads;
  char* end = nullptr;
  const long wanted = std::strtol(text, &end, 10);
  if (*end || wanted < 1 || wanted > 1024) user_error("TENSORGRAD_THREADS: '{}' is not a number between 1 and 1024", text);
  return static_cast<int>(wanted);
}

// Whether a gradient flows from the loss to one of the wanted nodes.
bool depends_on(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  std::vector<bool> reached(static_cast<std::size_t>(graph.size()), false);
  reached[static_cast<std::size_t>(loss)] = true;
  for (ir::NodeId id = loss; id >= 0; --id) {
    const ir::Node& node = graph[id];
    if (!reached[static_cast<std::size_t>(id)] || !node.op->gradient || node.type.dtype != DType::f32) continue;
    for (const ir::NodeId input : node.inputs) reached[static_cast<std::size_t>(input)] = true;
  }
  return std::any_of(wanted.begin(), wanted.end(), [&](ir::NodeId id) { return reached[static_cast<std::size_t>(id)]; });
}

void check_depends(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  if (depends_on(graph, loss, wanted)) return;
  const ir::CallSite& site = graph.sites[static_cast<std::size_t>(graph[loss].site)];
  throw UserError(user_message("compile", "the loss does not depend on any trained parameter",
                               "do stop_gradient, an integer op or a frozen parameter stand between?", site.scope,
                               site.file, site.line));
}

float bits_of(std::int32_t value) {
  float bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

Session::Session(const FoundParams& params, const std::string& device, int threads, std::uint32_t seed)
    : device_(runtime::open_device(device, default_threads(threads))), seed_(seed) {
  static std::atomic<std::uint64_t> next{1};
  id_ = next++;
  std::map<const void*, int> tied;
  for (const auto& [path, param] : params) {
    const std::string name = path.empty() ? "param" : path;
    if (const void* tie = ParamAccess::tie(*param)) {
      const auto [found, is_new] = tied.emplace(tie, static_cast<int>(params_.size()));
      if (!is_new) {
        const ParamRecord& first = params_[static_cast<std::size_t>(found->second)];
        if (first.shape != param->shape())
          internal_error("{} and {} are tied but differ in shape: {} against {}", first.name, name, first.shape.text(),
                         param->shape().text());  // a tie is copied with its shape
        ParamAccess::bind(*param, first.name, id_, found->second);
        aliases_.emplace(name, first.name);
        continue;
      }
    }
    ParamAccess::bind(*param, name, id_, static_cast<int>(params_.size()));
    params_.push_back({name, param->shape(), param->init(), param->decays(), param->frozen()});
  }
}

// Trained parameters first, those that decay before the others: the optimizer sees one flat tensor.
void Session::lay_out_parameters() {
  const auto place = [&](auto wanted) {
    for (const ParamRecord& p : params_)
      if (wanted(p)) param_layout_.place(p.name, {DType::f32, p.shape});
  };
  place([](const ParamRecord& p) { return !p.frozen && p.decay; });
  place([](const ParamRecord& p) { return !p.frozen && !p.decay; });
  flat_elements_ = param_layout_.elements();
  place([](const ParamRecord& p) { return p.frozen; });
  param_buffer_ = device_->allocate(param_layout_.elements());
  initialise();
}

void Session::initialise() {
  for (const ParamRecord& p : params_) {
    const std::vector<float> values = compile_stage::initial_values(p.init, p.shape, p.name, seed_);
    device_->upload(*param_buffer_, param_layout_.find(p.name)->offset, std::as_bytes(std::span(values)));
  }
}

std::unique_ptr<Variant> Session::compile(const ir::Graph& graph, Program& program, bool captures,
                                          const std::vector<std::string>& without) {
  auto variant = std::make_unique<Variant>();
  variant->plan = schedule::plan(simplify(graph, captures, without), {param_layout_, state_layout_, program.inputs}, without);
  variant->kernels = kernels::lower(variant->plan);
  variant->loaded = device_->load(variant->kernels);
  variant->outputs = device_->allocate(variant->plan.elements[static_cast<std::size_t>(Space::outputs)]);
  variant->arena = device_->allocate(variant->plan.elements[static_cast<std::size_t>(Space::arena)]);
  return variant;
}

std::shared_ptr<Program> Session::build_training(const TrainingOptions& options, const Trace& function) {
  auto program = std::make_shared<Program>();
  program->training = true;
  program->specs = options.inputs;
  program->without = left_out(options.without);
  accumulate_ = options.accumulate;
  if (accumulate_ < 1) user_error("compile: accumulate must be at least 1: {}", accumulate_);
  if (!(options.clip_grad_norm >= 0))
    user_error("compile: clip_grad_norm must not be negative: {}", options.clip_grad_norm);
  optim::check_optimizer(options.optimizer);
  non_finite_ = options.non_finite;
  lr_ = std::visit([](const auto& optimizer) { return optimizer.lr; }, options.optimizer);

  const auto check_filter = [&](const char* what, const NameFilter& filter) {
    for (const std::string& pattern : filter)
      if (std::none_of(params_.begin(), params_.end(), [&](const ParamRecord& p) { return matches(pattern, p.name); })) {
        std::vector<std::string> names;
        for (const ParamRecord& p : params_) names.push_back(p.name);
        throw UserError(user_message("compile", fmt::format("{} names no parameter: '{}'", what, pattern),
                                     name_hint(pattern, names), "", "", 0));
      }
  };
  check_filter("freeze", options.freeze);
  check_filter("normalize_grads", options.normalize_grads);
  if (options.train_only) check_filter("train_only", *options.train_only);
  if (options.decay) check_filter("decay", *options.decay);
  for (ParamRecord& p : params_) {
    if (options.decay) p.decay = matches_any(*options.decay, p.name);
    if (matches_any(options.freeze, p.name)) p.frozen = true;
    if (options.train_only && !matches_any(*options.train_only, p.name)) p.frozen = true;
  }

  lay_out_parameters();
  const auto start = Clock::now();
  trace::Traced traced = trace::trace(
      {.inputs = options.inputs, .training = true, .wants_loss = true, .model = id_}, function);
  program->stages.trace = traced.builder.graph;

  std::vector<optim::Trained> trained;
  std::vector<ir::NodeId> wanted;
  {
    ops::BuildScope scope(traced.builder);
    for (const ParamRecord& p : params_) {
      if (p.frozen) continue;
      const Tensor value = traced.builder.leaf("parameter", p.name, {DType::f32, p.shape});
      wanted.push_back(TensorAccess::node(value));
      trained.push_back({p.name, param_layout_.find(p.name)->offset, {}, p.decay,
                         matches_any(options.normalize_grads, p.name)});
    }
  }
  if (trained.empty())
    user_error("compile: {}", params_.empty() ? "the model has no parameters to train\n  hint: compile_forward?"
                                              : "all parameters are frozen");
  check_depends(traced.builder.graph, TensorAccess::node(traced.loss), wanted);
  const std::vector<Tensor> gradients = autodiff::differentiate(traced.builder, traced.loss, wanted);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    trained[i].gradient = gradients[i];
    traced.builder.graph.results.push_back({Result::Kind::gradient, trained[i].name, TensorAccess::node(gradients[i])});
  }
  program->stages.differentiate = traced.builder.graph;

  std::sort(trained.begin(), trained.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  optim::UpdateOptions update{options.optimizer, options.clip_grad_norm, options.non_finite, options.accumulate, true};
  if (accumulate_ > 1) {
    ops::Builder copy = traced.builder;
    update.applies = false;
    optim::append_update(copy, traced.loss, trained, flat_elements_, update);
    program->stages.accumulate = std::move(copy.graph);
    update.applies = true;
  }
  optim::append_update(traced.builder, traced.loss, trained, flat_elements_, update);
  program->stages.update = std::move(traced.builder.graph);
  program->stages.simplify = simplify(program->stages.update, false, program->without);

  for (const InputSpec& spec : options.inputs) program->inputs.place(spec.name, {spec.dtype, spec.shape});
  program->main = compile(program->stages.update, *program, false, program->without);
  if (accumulate_ > 1) program->accumulating = compile(program->stages.accumulate, *program, false, program->without);
  program->input_buffer = device_->allocate(program->inputs.elements());
  gradient_buffer_ = device_->allocate(param_layout_.elements());
  grow_state();
  program->compile_ms = ms_since(start);
  return program;
}

std::shared_ptr<Program> Session::build_forward(const std::vector<InputSpec>& inputs, bool training,
                                                const std::vector<std::string>& without, const Trace& function) {
  std::lock_guard lock(mutex_);
  const auto start = Clock::now();
  if (!param_buffer_) lay_out_parameters();
  auto program = std::make_shared<Program>();
  program->specs = inputs;
  program->without = left_out(without);
  trace::Traced traced = trace::trace({.inputs = inputs, .training = training, .model = id_}, function);
  program->stages.trace = std::move(traced.builder.graph);
  program->stages.simplify = simplify(program->stages.trace, false, program->without);
  for (const InputSpec& spec : inputs) program->inputs.place(spec.name, {spec.dtype, spec.shape});
  program->main = compile(program->stages.trace, *program, false, program->without);
  program->input_buffer = device_->allocate(program->inputs.elements());
  program->compile_ms = ms_since(start);
  return program;
}

// Optimizer state starts as zeros.
void Session::grow_state() {
  if (state_buffer_ && state_capacity_ >= state_layout_.elements()) return;
  state_buffer_ = device_->allocate(state_layout_.elements());
  state_capacity_ = state_layout_.elements();
}

Variant& Session::choose(Program& program, bool captures, bool accumulating) {
  if (!captures) return accumulating ? *program.accumulating : *program.main;
  std::unique_ptr<Variant>& variant = accumulating ? program.accumulating_captures : program.with_captures;
  if (!variant) {
    const ir::Graph& graph = accumulating       ? program.stages.accumulate
                             : program.training ? program.stages.update
                                                : program.stages.trace;
    const std::int64_t before = program.inputs.elements();
    variant = compile(graph, program, true, program.without);
    // A capture may read an input that nothing else did; all declared inputs have a place already.
    if (program.inputs.elements() != before) {
      program.input_buffer = device_->allocate(program.inputs.elements());
      for (auto& [name, held] : program.held) held.current = false;
    }
  }
  return *variant;
}

void Session::check_feed(const Program& program, const Feed& feed) const {
  std::vector<std::string> names;
  for (const InputSpec& spec : program.specs) names.push_back(spec.name);
  const auto& items = feed.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [name, value] = items[i];
    const auto spec = std::find_if(program.specs.begin(), program.specs.end(),
                                   [&, &own = name](const InputSpec& s) { return s.name == own; });
    if (spec == program.specs.end()) {
      const std::string near = nearest_name(name, names);
      user_error("input: there is no input '{}': the inputs are {}{}", name, names.empty() ? "none" : join(names, ", "),
                 near.empty() ? "" : fmt::format("\n  hint: '{}'?", near));
    }
    for (std::size_t j = 0; j < i; ++j)
      if (items[j].first == name) user_error("input: '{}' is fed twice", name);
    const bool wants_real = spec->dtype == DType::f32, is_real = value.dtype() == DType::f32;
    if (wants_real != is_real)
      user_error("input: '{}' is {}{}, {} values were fed", name, tensorgrad::name(spec->dtype), spec->shape.text(),
                 tensorgrad::name(value.dtype()));
    const std::size_t count = is_real ? value.floats().size() : value.ints().size();
    if (static_cast<std::int64_t>(count) != spec->shape.count())
      user_error("input: '{}' is {}{} and needs {} values, {} were fed", name, tensorgrad::name(spec->dtype),
                 spec->shape.text(), spec->shape.count(), count);
    if (value.shape() && *value.shape() != spec->shape)
      user_error("input: '{}' is {}{}, an array of shape {} was fed", name, tensorgrad::name(spec->dtype),
                 spec->shape.text(), value.shape()->text());
    if (spec->dtype == DType::boolean)
      for (const std::int32_t v : value.ints())
        if (v != 0 && v != 1) user_error("input: '{}' is bool and takes 0 and 1: {} was fed", name, v);
  }
  for (const InputSpec& spec : program.specs) {
    const bool fed = std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.first == spec.name; });
    if (!fed && !program.held.count(spec.name))
      user_error("input: '{}' is missing: it is {}{}\n  hint: feed it, or set_input() once", spec.name,
                 tensorgrad::name(spec.dtype), spec.shape.text());
  }
}

namespace {

std::span<const std::byte> bytes_of(const FeedValue& value) {
  return value.dtype() == DType::f32 ? std::as_bytes(value.floats()) : std::as_bytes(value.ints());
}

}  // namespace

void Session::feed_inputs(Program& program, const Feed& feed) {
  for (const auto& [name, value] : feed.items()) {
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, bytes_of(value));
    if (const auto held = program.held.find(name); held != program.held.end()) held->second.current = false;
  }
  for (auto& [name, held] : program.held) {
    const bool fed = std::any_of(feed.items().begin(), feed.items().end(),
                                 [&, &own = name](const auto& item) { return item.first == own; });
    if (fed || held.current) continue;
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, held.bytes);
    held.current = true;
  }
}

void Session::feed_scalar(Program& program, const char* name, float bits) {
  if (const auto* entry = program.inputs.find(name))
    device_->upload(*program.input_buffer, entry->offset, std::as_bytes(std::span(&bits, 1)));
}

void Session::set_input(Program& program, const std::string& name, const FeedValue& value) {
  std::lock_guard lock(mutex_);
  Program only;
  only.specs = program.specs;
  std::erase_if(only.specs, [&](const InputSpec& spec) { return spec.name != name; });
  if (only.specs.empty()) only.specs = program.specs;
  check_feed(only, {{name, value}});
  const auto bytes = bytes_of(value);
  program.held[name] = {{bytes.begin(), bytes.end()}, false};
}

runtime::Spaces Session::spaces(Program& program, Variant& variant) const {
  runtime::Spaces out{};
  const auto set = [&](Space space, const std::unique_ptr<runtime::Buffer>& buffer) {
    out[static_cast<std::size_t>(space)] = buffer.get();
  };
  set(Space::parameters, param_buffer_);
  set(Space::gradients, gradient_buffer_);
  set(Space::state, state_buffer_);
  set(Space::inputs, program.input_buffer);
  set(Space::outputs, variant.outputs);
  set(Space::arena, variant.arena);
  return out;
}

void Session::submit(Program& program, Variant& variant) {
  try {
    device_->submit(*variant.loaded, spaces(program, variant));
  } catch (const runtime::IndexFailure& failure) {
    const ir::Graph& graph = variant.plan.graph;
    const ir::Node& node = graph[failure.node];
    const ir::CallSite& site = graph.sites[static_cast<std::size_t>(node.site)];
    const std::string op = site.composite.empty() ? std::string(node.op->name) : site.composite;
    const std::string range = failure.extent > 0 ? fmt::format("ids are 0 to {}", failure.extent - 1) : "there are none";
    throw UserError(user_message(op, fmt::format("id {} is out of range: {}", failure.value, range), "", site.scope,
                                 site.file, site.line));
  }
}

Array Session::read_array(const runtime::Buffer& buffer, std::int64_t offset, const ir::Type& type) const {
  const auto count = static_cast<std::size_t>(type.shape.count());
  if (type.dtype == DType::f32) {
    std::vector<float> values(count);
    device_->read(buffer, offset, std::as_writable_bytes(std::span(values)));
    return {type.shape, std::move(values)};
  }
  std::vector<std::int32_t> values(count);
  device_->read(buffer, offset, std::as_writable_bytes(std::span(values)));
  return {type.shape, std::move(values), type.dtype};
}

std::shared_ptr<Outcome> Session::collect(const Variant& variant, bool captures) const {
  auto outcome = std::make_shared<Outcome>();
  outcome->with_captures = captures;
  const ir::Graph& graph = variant.plan.graph;
  for (std::size_t i = 0; i < graph.results.size(); ++i) {
    const Result& result = graph.results[i];
    if (result.kind != Result::Kind::output && result.kind != Result::Kind::capture) continue;
    Array array = read_array(*variant.outputs, variant.plan.results[i].offset, graph[result.node].type);
    (result.kind == Result::Kind::output ? outcome->outputs : outcome->captures).emplace(result.name, std::move(array));
  }
  return outcome;
}

std::shared_ptr<Outcome> Session::step(Program& program, const Feed& feed, const RunOptions& options) {
  std::lock_guard lock(mutex_);
  raise_pending();
  check_feed(program, feed);
  const double rate = lr_.at(next_update());
  if (!(rate >= 0 && rate <= std::numeric_limits<float>::max()))
    user_error("step: the learning rate of update {} is {}\n  hint: rates are finite and not negative", next_update(), rate);
  const bool accumulating = accumulate_ > 1 && (steps_ + 1) % accumulate_ != 0;
  Variant& variant = choose(program, options.captures, accumulating);
  feed_inputs(program, feed);
  feed_scalar(program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(program, ops::Builder::kStepInput, bits_of(static_cast<std::int32_t>(steps_)));
  feed_scalar(program, ops::Builder::kRateInput, static_cast<float>(rate));
  submit(program, variant);
  auto outcome = collect(variant, options.captures);
  outcome->session = weak_from_this();
  if (const auto finite = outcome->outputs.find(optim::kFiniteOutput); finite != outcome->outputs.end()) {
    outcome->finite = finite->second.ints()[0] != 0;
    outcome->outputs.erase(finite);
    if (!outcome->finite && non_finite_ == NonFinite::fail) {
      outcome->error = pending_ = fmt::format("step {}: the loss or a gradient is not finite", steps_);
      try {
        outcome->error = pending_ = fmt::format("step {}: {}", steps_, diagnose(program));
      } catch (const DeviceError&) {  // no memory to keep every value: the short text has to do
      }
    }
  }
  ++steps_;
  return outcome;
}

std::shared_ptr<Outcome> Session::run(Program& program, const Feed& feed, const RunOptions& options) {
  std::lock_guard lock(mutex_);
  raise_pending();
  check_feed(program, feed);
  Variant& variant = choose(program, options.captures, false);
  feed_inputs(program, feed);
  feed_scalar(program, ops::Builder::kSeedInput, bits_of(static_cast<std::int32_t>(seed_)));
  feed_scalar(program, ops::Builder::kStepInput, bits_of(static_cast<std::int32_t>(program.runs)));
  submit(program, variant);
  ++program.runs;
  return collect(variant, options.captures);
}

void Session::raise_pending() {
  std::lock_guard lock(mutex_);
  if (pending_.empty()) return;
  const std::string text = pending_;
  acknowledge(text);
  throw NonFiniteError(text);
}

void Session::acknowledge(const std::string& error) {
  std::lock_guard lock(mutex_);
  if (pending_ != error) return;  // an older one, seen before
  pending_.clear();
  const std::int32_t zero = 0;
  if (const auto* entry = state_layout_.find(optim::kFailedState))
    device_->upload(*state_buffer_, entry->offset, std::as_bytes(std::span(&zero, 1)));
}

void Outcome::check() const {
  if (error.empty()) return;
  if (const auto owner = session.lock()) owner->acknowledge(error);
  throw NonFiniteError(error);
}

}  // namespace tensorgrad::detail
