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
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Returns the learning-rate schedule of an optimizer.
struct RateOf {
  template <class O>
  Schedule operator()(const O& optimizer) const {
    return optimizer.lr;
  }
  Schedule operator()(const NoOptimizer&) const { return 0.0; }
};

// Simplifies the graph; without `captures`, drops the captures and the nodes that only they need.
ir::Graph simplify(ir::Graph graph, bool captures, const std::vector<std::string>& without) {
  if (!captures)
    std::erase_if(graph.results, [](const Result& r) { return r.kind == Result::Kind::capture; });
  return passes::simplify(std::move(graph), without);
}

// The passes to leave out: those in `without`, and those in TENSORGRAD_WITHOUT.
std::vector<std::string> left_out(std::vector<std::string> without) {
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

// One thread per core, unless TENSORGRAD_THREADS is set.
int default_threads(int threads) {
  const char* text = threads == 0 ? std::getenv("TENSORGRAD_THREADS") : nullptr;
  if (!text || !*text) return threads;
  char* end = nullptr;
  const long wanted = std::strtol(text, &end, 10);
  if (*end || wanted < 1 || wanted > 1024)
    user_error("TENSORGRAD_THREADS: '{}' is not a number between 1 and 1024", text);
  return static_cast<int>(wanted);
}

// Whether a gradient flows from the loss to one of the wanted nodes.
bool depends_on(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  std::vector<bool> reached(usize(graph.size()), false);
  reached[usize(loss)] = true;
  for (ir::NodeId id = loss; id >= 0; --id) {
    const ir::Node& node = graph[id];
    if (!reached[usize(id)] || !node.op->gradient || node.type.dtype != DType::f32) continue;
    for (const ir::NodeId input : node.inputs) reached[usize(input)] = true;
  }
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](ir::NodeId id) { return reached[usize(id)]; });
}

void check_depends(const ir::Graph& graph, ir::NodeId loss, const std::vector<ir::NodeId>& wanted) {
  if (depends_on(graph, loss, wanted)) return;
  const ir::CallSite& site = graph.sites[usize(graph[loss].site)];
  throw UserError(
      user_message("compile", "the loss does not depend on any trained parameter",
                   "do stop_gradient, an integer op or a frozen parameter stand between?",
                   site.scope, site.file, site.line));
}

}  // namespace

std::vector<TensorInfo> Program::results(Result::Kind kind) const {
  std::vector<TensorInfo> out;
  for (const Result& result : stages.trace.results) {
    const ir::Type& type = stages.trace[result.node].type;
    if (result.kind == kind) out.push_back({result.name, type.shape, type.dtype});
  }
  return out;
}

Session::Session(const FoundParams& params, const std::string& device, int threads,
                 std::uint32_t seed)
    : device_(runtime::open_device(device, default_threads(threads))), seed_(seed) {
  static std::atomic<std::uint64_t> next{1};
  id_ = next++;
  std::map<const void*, int> tied;
  for (const auto& [path, param] : params) {
    const std::string name = path.empty() ? "param" : path;
    if (const void* tie = ParamAccess::tie(*param)) {
      const auto [found, is_new] = tied.emplace(tie, static_cast<int>(params_.size()));
      if (!is_new) {
        const ParamRecord& first = params_[usize(found->second)];
        if (first.shape != param->shape())
          internal_error("{} and {} are tied but differ in shape: {} against {}", first.name, name,
                         first.shape.text(),
                         param->shape().text());  // a bug: a tie copies the shape
        ParamAccess::bind(*param, first.name, id_, found->second);
        aliases_.emplace(name, first.name);
        continue;
      }
    }
    ParamAccess::bind(*param, name, id_, static_cast<int>(params_.size()));
    params_.push_back({name, param->shape(), param->init(), param->decays(), param->frozen()});
  }
}

// Trained parameters come first, those that decay before the others: the optimizer uses one flat
// tensor.
void Session::lay_out_parameters() {
  const auto place = [&](auto wanted) {
    for (const ParamRecord& p : params_)
      if (wanted(p)) param_layout_.place(p.name, {DType::f32, p.shape});
  };
  place([](const ParamRecord& p) { return !p.frozen && p.decay; });
  place([](const ParamRecord& p) { return !p.frozen && !p.decay; });
  flat_elements_ = param_layout_.elements();
  place([](const ParamRecord& p) { return p.frozen; });
  param_buffer_ = allocate(Space::parameters, param_layout_.elements(), nullptr,
                           [&] { return tenants(param_layout_); });
  for (ParamRecord& p : params_) {
    compile_stage::check_init(p.init, p.shape, p.name);
    // Evaluate it now: the user's function may refer to objects that are destroyed later.
    if (p.init.kind == Init::Kind::function)
      p.init = init::literal(compile_stage::initial_values(p.init, p.shape, p.name, seed_));
  }
}

std::unique_ptr<runtime::Buffer> Session::allocate(
    Space space, std::int64_t elements, const schedule::Plan* plan,
    const std::function<std::vector<Tenant>()>& tenants) const {
  try {
    return device_->allocate(elements, word(space));
  } catch (const OutOfMemoryError& error) {
    const bool of_the_model =
        space == Space::parameters || space == Space::gradients || space == Space::state;
    throw explained(error, tenants(), plan,
                    of_the_model ? "a smaller model, or a device with more room"
                                 : "a smaller batch, or a device with more room");
  }
}

void Session::initialise() {
  for (ParamRecord& p : params_) {
    if (p.has_values) continue;
    const std::vector<float> values = compile_stage::initial_values(p.init, p.shape, p.name, seed_);
    device_->upload(*param_buffer_, param_layout_.find(p.name)->offset,
                    std::as_bytes(std::span(values)));
    p.has_values = true;
  }
}

std::unique_ptr<Variant> Session::compile(const ir::Graph& graph, Program& program, bool captures,
                                          const std::vector<std::string>& without,
                                          Program::Kind kind) {
  auto variant = std::make_unique<Variant>();
  variant->plan = schedule::plan(simplify(graph, captures, without),
                                 {param_layout_, state_layout_, program.inputs}, without,
                                 device_->largest_buffer());
  variant->kernels = kernels::lower(variant->plan, device_->model());
  const schedule::Plan& plan = variant->plan;
  const auto elements = [&](Space space) { return plan.elements[usize(space)]; };
  // Allocate before the kernels are compiled, which takes a while, so that lack of memory fails
  // early.
  variant->outputs = allocate(Space::outputs, elements(Space::outputs), &plan,
                              [&] { return tenants(plan.outputs); });
  for (int i = 0; i < ir::kArenas; ++i)
    variant->arenas[usize(i)] =
        allocate(ir::arena(i), elements(ir::arena(i)), &plan, [&] { return tenants(plan); });
  variant->loaded =
      device_->load(variant->kernels, static_cast<int>(kind),
                    kind == Program::Kind::diagnosing ? CompileCallback{} : program.progress);
  if (!program.faults) program.faults = device_->allocate(runtime::kFaultElements, "bad ids");
  return variant;
}

std::shared_ptr<Program> Session::build_training(const TrainingOptions& options,
                                                 const Trace& function) {
  auto program = std::make_shared<Program>();
  program->training = true;
  program->specs = options.inputs;
  program->without = left_out(options.without);
  program->progress = options.progress;
  accumulate_ = options.accumulate;
  if (accumulate_ < 1) user_error("compile: accumulate must be at least 1: {}", accumulate_);
  if (!(options.clip_grad_norm >= 0))
    user_error("compile: clip_grad_norm must not be negative: {}", options.clip_grad_norm);
  optim::check_optimizer(options.optimizer);
  non_finite_ = options.non_finite;
  updates_ = !std::holds_alternative<NoOptimizer>(options.optimizer);
  if (!updates_ && accumulate_ > 1)
    user_error("compile: accumulate needs an optimizer, NoOptimizer updates nothing");
  lr_ = std::visit(RateOf{}, options.optimizer);

  const auto check_filter = [&](const char* what, const NameFilter& filter) {
    for (const std::string& pattern : filter)
      if (std::none_of(params_.begin(), params_.end(),
                       [&](const ParamRecord& p) { return matches(pattern, p.name); })) {
        std::vector<std::string> names;
        for (const ParamRecord& p : params_) names.push_back(p.name);
        throw UserError(user_message("compile",
                                     fmt::format("{} names no parameter: '{}'", what, pattern),
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
  traced.builder.graph = passes::recognise(std::move(traced.builder.graph), program->without);
  traced.loss =
      traced.builder.tensor(traced.builder.graph.find(Result::Kind::output, trace::kLossOutput));

  std::vector<optim::Trained> trained;
  std::vector<ir::NodeId> wanted;
  {
    ops::BuildScope scope(traced.builder);
    for (const ParamRecord& p : params_) {
      if (p.frozen) continue;
      const Tensor value = traced.builder.leaf(ir::Core::parameter, p.name, {DType::f32, p.shape});
      wanted.push_back(TensorAccess::node(value));
      trained.push_back({p.name,
                         param_layout_.find(p.name)->offset,
                         {},
                         p.decay,
                         matches_any(options.normalize_grads, p.name)});
    }
  }
  if (trained.empty())
    user_error("compile: {}", params_.empty()
                                  ? "the model has no parameters to train\n  hint: compile_forward?"
                                  : "all parameters are frozen");
  check_depends(traced.builder.graph, TensorAccess::node(traced.loss), wanted);
  const std::vector<Tensor> gradients =
      autodiff::differentiate(traced.builder, traced.loss, wanted);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    trained[i].gradient = gradients[i];
    traced.builder.graph.results.push_back(
        {Result::Kind::gradient, trained[i].name, TensorAccess::node(gradients[i])});
  }
  program->stages.differentiate = traced.builder.graph;

  // An empty parameter has the offset of the next one, and comes first.
  std::sort(trained.begin(), trained.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.gradient.count()) < std::pair(b.offset, b.gradient.count());
  });
  const auto with_update = [&](optim::Purpose purpose) {
    ops::Builder copy = traced.builder;
    optim::append_update(copy, traced.loss, trained, flat_elements_,
                         {options.optimizer, options.clip_grad_norm, options.non_finite,
                          options.accumulate, purpose});
    return std::move(copy.graph);
  };
  if (accumulate_ > 1) program->stages.accumulate = with_update(optim::Purpose::accumulate);
  if (updates_ && non_finite_ == NonFinite::fail)
    program->stages.candidate = with_update(optim::Purpose::candidate);
  program->stages.update = with_update(optim::Purpose::apply);
  program->stages.simplify = simplify(program->stages.update, false, program->without);

  for (const InputSpec& spec : options.inputs)
    program->inputs.place(spec.name, {spec.dtype, spec.shape});
  program->main =
      compile(program->stages.update, *program, false, program->without, Program::Kind::main);
  if (accumulate_ > 1)
    program->accumulating = compile(program->stages.accumulate, *program, false, program->without,
                                    Program::Kind::accumulating);
  allocate_inputs(*program);
  gradient_buffer_ = allocate(Space::gradients, param_layout_.elements(), &program->main->plan,
                              [&] { return tenants(param_layout_); });
  grow_state(*program);
  program->compile_ms = ms_since(start);
  return program;
}

std::shared_ptr<Program> Session::build_forward(const AttachOptions& options,
                                                const Trace& function) {
  std::lock_guard lock(*mutex_);
  const auto start = Clock::now();
  if (!param_buffer_) lay_out_parameters();
  auto program = std::make_shared<Program>();
  program->specs = options.inputs;
  program->without = left_out(options.without);
  program->progress = options.progress;
  trace::Traced traced = trace::trace(
      {.inputs = options.inputs, .training = options.training, .model = id_}, function);
  program->stages.trace = std::move(traced.builder.graph);
  program->stages.recognised = passes::recognise(program->stages.trace, program->without);
  program->stages.simplify = simplify(program->stages.recognised, false, program->without);
  for (const InputSpec& spec : options.inputs)
    program->inputs.place(spec.name, {spec.dtype, spec.shape});
  program->main =
      compile(program->stages.recognised, *program, false, program->without, Program::Kind::main);
  allocate_inputs(*program);
  program->compile_ms = ms_since(start);
  return program;
}

void Session::allocate_inputs(Program& program) const {
  program.input_buffer = allocate(Space::inputs, program.inputs.elements(), &program.main->plan,
                                  [&] { return tenants(program.inputs); });
  program.input_capacity = program.inputs.elements();
}

// Optimizer state starts as zeros.
void Session::grow_state(const Program& program) {
  if (state_buffer_ && state_capacity_ >= state_layout_.elements()) return;
  state_buffer_ = allocate(Space::state, state_layout_.elements(), &program.main->plan,
                           [&] { return tenants(param_layout_); });
  state_capacity_ = state_layout_.elements();
}

Variant& Session::choose(Program& program, bool captures, bool accumulating) {
  if (!captures) return accumulating ? *program.accumulating : *program.main;
  if (program.results(Result::Kind::capture).empty())
    user_error(
        "captures: this program has none\n  hint: capture(\"name\", tensor) in the traced function "
        "names one");
  std::unique_ptr<Variant>& variant =
      accumulating ? program.accumulating_captures : program.with_captures;
  if (!variant) {
    const ir::Graph& graph = accumulating       ? program.stages.accumulate
                             : program.training ? program.stages.update
                                                : program.stages.recognised;
    // A capture may read an input that nothing else read; all declared inputs have a place already.
    // If memory is lacking, the program stays as it was.
    const schedule::Layout before = program.inputs;
    try {
      variant = compile(
          graph, program, true, program.without,
          accumulating ? Program::Kind::accumulating_captures : Program::Kind::with_captures);
      if (program.inputs.elements() != program.input_capacity) {
        allocate_inputs(program);
        program.scalars.clear();
        for (auto& [name, held] : program.held) held.current = false;
      }
    } catch (...) {
      program.inputs = before;
      variant.reset();
      throw;
    }
  }
  return *variant;
}

}  // namespace tensorgrad::detail
