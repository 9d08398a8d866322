#include "checks/eval_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "checks/planned.h"
#include "ir/primitive.h"
#include "kernels/lower.h"
#include "passes/pipeline.h"
#include "runtime/blocking.h"
#include "schedule/plan.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::eval {
namespace {

namespace blocking = runtime::blocking;
using ir::Kernel;
using ir::NodeId;
using ir::Place;
using ir::Space;
using reference::Leaves;
using reference::Value;
using Word = std::uint32_t;

constexpr Word kPoison = 0x7fc0dead;  // a NaN, and as an id far out of range
constexpr std::int64_t kGap = schedule::kAlignment;

// Devices stay open, because starting threads for each of a thousand graphs would take longer than
// running them. The last programs stay loaded, so that their shaders are not compiled again for the
// next program.
struct Open {
  std::shared_ptr<runtime::Device> device;
  std::deque<std::shared_ptr<runtime::Loaded>> loaded;
};
constexpr std::size_t kLoaded = 3;

Open& open(const EvalOptions& options) {
  // Never destroyed: drivers have problems with calls at exit.
  static auto& all = *new std::map<std::pair<std::string, int>, Open>;
  Open& open = all[{options.device, options.device == "cpu" ? options.threads : 0}];
  if (!open.device) open.device = runtime::blocking::open_device(options.device, options.threads);
  if (open.loaded.size() >= kLoaded) open.loaded.pop_front();
  return open;
}

Word word_of(double value, DType dtype) {
  Word word;
  if (dtype == DType::f32) {
    const auto number = static_cast<float>(value);
    std::memcpy(&word, &number, sizeof word);
  } else {
    const auto number = static_cast<std::int32_t>(value);
    std::memcpy(&word, &number, sizeof word);
  }
  return word;
}

double value_of(Word word, DType dtype) {
  if (dtype == DType::f32) {
    float number;
    std::memcpy(&number, &word, sizeof number);
    return number;
  }
  std::int32_t number;
  std::memcpy(&number, &word, sizeof number);
  return number;
}

// Moves every tensor of a plan to new memory with a gap before it. The plan must not reuse memory.
class Spreader {
 public:
  explicit Spreader(schedule::Plan& plan) : plan_(plan) {
    const ir::Graph& graph = plan.graph;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (plan.places[usize(id)]) note(*plan.places[usize(id)], graph[id].type);
    for (std::size_t i = 0; i < graph.results.size(); ++i)
      note(plan.results[i], graph[graph.results[i].node].type);
  }

  void run() {
    std::array<std::int64_t, ir::kSpaces> end{};
    end.fill(kGap);
    for (auto& [place, tensor] : tensors_) {
      std::int64_t& next = end[usize(place.first)];
      tensor.moved = next;
      next += schedule::aligned(tensor.count) + kGap;
    }
    plan_.elements = end;
    for (auto& place : plan_.places)
      if (place) move(*place);
    for (Place& place : plan_.results) move(place);
    for (schedule::Step& step : plan_.steps)
      for (schedule::Stored& stored : step.stored) move(stored.place);
  }

 private:
  struct Tensor {
    std::int64_t count = 0, moved = 0;
  };
  using Key = std::pair<int, std::int64_t>;  // space, offset

  static Key key(const Place& place) { return {static_cast<int>(place.space), place.offset}; }
  void note(const Place& place, const ir::Type& type) {
    std::int64_t& count = tensors_[key(place)].count;
    count = std::max(count, type.shape.count());
  }
  void move(Place& place) const { place.offset = tensors_.at(key(place)).moved; }

  schedule::Plan& plan_;
  std::map<Key, Tensor> tensors_;
};

schedule::Plan make_plan(const ir::Graph& graph, const ir::DeviceModel& model,
                         const EvalOptions& options) {
  schedule::Layout parameters, state, inputs;
  if (options.parameters) parameters = *options.parameters;
  for (const ir::Node& node : graph.nodes)
    if (node.op->core == ir::Core::parameter)
      parameters.place(node.as<ir::LeafAttrs>().name, node.type);
  for (const ir::Result& result : graph.results)  // also of a parameter that nothing reads
    if (result.kind == ir::Result::Kind::gradient)
      parameters.place(result.name, graph[result.node].type);
  std::vector<std::string> without = options.without;
  if (options.guards) without.push_back("reuse");
  schedule::Plan plan = planned(options.simplify ? passes::simplify(graph, model, without) : graph,
                                {parameters, state, inputs}, without, options.piece, model);
  if (options.guards) Spreader(plan).run();
  return plan;
}

using Image = std::array<std::vector<Word>, ir::kSpaces>;

Image initial_memory(const schedule::Plan& plan, const Leaves& leaves, const EvalOptions& options) {
  Image image;
  for (std::size_t s = 0; s < image.size(); ++s) image[s].assign(usize(plan.elements[s]), kPoison);
  if (options.parameters) {  // the flat gradient has gaps, which a session zeroes once
    std::vector<Word>& gradients = image[usize(Space::gradients)];
    std::fill(gradients.begin(), gradients.end(), 0);
    for (const schedule::Layout::Entry& entry : options.parameters->entries())
      std::fill_n(gradients.begin() + entry.offset, entry.type.shape.count(), kPoison);
  }
  for (NodeId id = 0; id < plan.graph.size(); ++id) {
    const ir::Node& node = plan.graph[id];
    if (!ir::is_leaf(node)) continue;
    const std::string name = fmt::format("{}:{}", node.op->name, node.as<ir::LeafAttrs>().name);
    const auto leaf = leaves.find(name);
    if (leaf == leaves.end()) user_error("evaluate: no value for {}", name);
    const Place& place = *plan.places[usize(id)];
    Word* to = image[usize(place.space)].data() + place.offset;
    for (const double value : leaf->second.data) *to++ = word_of(value, node.type.dtype);
  }
  return image;
}

std::string find_damage(const schedule::Plan& plan, const std::vector<Kernel>& kernels,
                        const Image& before, const Image& after) {
  std::array<std::vector<bool>, ir::kSpaces> owned;
  for (std::size_t s = 0; s < owned.size(); ++s) owned[s].resize(before[s].size());
  const auto own = [&](const ir::Store& store) {
    const auto begin = owned[usize(store.place.space)].begin() + store.place.offset;
    std::fill(begin, begin + store.elements, true);
  };
  for (const Kernel& kernel : kernels) ir::for_each_store(kernel, own);
  for (std::size_t s = 0; s < owned.size(); ++s)
    for (std::size_t i = 0; i < owned[s].size(); ++i)
      if (!owned[s][i] && after[s][i] != before[s][i])
        return fmt::format("{}+{} changed from {:08x} to {:08x}\n{}", name(static_cast<Space>(s)),
                           i, before[s][i], after[s][i], plan.text());
  return "";
}

}  // namespace

namespace {

// An evaluation under way. The completions of the device keep it alive.
struct Work {
  runtime::Device& device;
  schedule::Plan plan;
  std::vector<Kernel> kernels;
  Image before, after;
  std::shared_ptr<runtime::Loaded> loaded = {};
  std::array<std::shared_ptr<runtime::Buffer>, ir::kSpaces> buffers = {};
  std::shared_ptr<runtime::Buffer> faults = {};
  std::array<std::byte, 4 * runtime::kFaultElements> noted = {};
};

Completion<Done> allocate(const std::shared_ptr<Work>& work) {
  std::vector<Completion<Done>> all_of;
  const auto get = [&](std::int64_t elements, std::string_view what, auto& to) {
    all_of.push_back(work->device.allocate(elements, what).map([work, &to](const auto& buffer) {
      to = buffer;
      return Done{};
    }));
  };
  for (std::size_t s = 0; s < work->buffers.size(); ++s)
    get(work->plan.elements[s], "memory", work->buffers[s]);
  get(runtime::kFaultElements, "bad ids", work->faults);
  return all(all_of);
}

// Uploads, runs, and reads everything back.
Completion<Done> submit(const std::shared_ptr<Work>& work) {
  runtime::Device& device = work->device;
  runtime::Spaces spaces{};
  for (std::size_t s = 0; s < work->buffers.size(); ++s) {
    device.upload(*work->buffers[s], 0, std::as_bytes(std::span(work->before[s])));
    spaces[s] = work->buffers[s];
  }
  spaces.faults = work->faults;
  device.submit(work->loaded, spaces);
  std::vector<Completion<Done>> reads{device.read(*work->faults, 0, work->noted, work)};
  work->after = work->before;
  for (std::size_t s = 0; s < work->buffers.size(); ++s)
    reads.push_back(
        device.read(*work->buffers[s], 0, std::as_writable_bytes(std::span(work->after[s])), work));
  return all(reads);
}

Evaluated results_of(const Work& work) {
  if (const auto failure = runtime::Device::failure_in(work.noted)) throw *failure;
  Evaluated out;
  out.damage = find_damage(work.plan, work.kernels, work.before, work.after);
  const ir::Graph& graph = work.plan.graph;
  for (std::size_t i = 0; i < graph.results.size(); ++i) {
    const ir::Type& type = graph[graph.results[i].node].type;
    const Place& place = work.plan.results[i];
    const Word* from = work.after[usize(place.space)].data() + place.offset;
    out.bits.emplace_back(from, from + type.shape.count());
    Value value{type, {}};
    for (const Word word : out.bits.back()) value.data.push_back(value_of(word, type.dtype));
    out.results.push_back(std::move(value));
  }
  return out;
}

// `keep` receives what was loaded.
Completion<Evaluated> start(runtime::Device& device, const ir::Graph& graph, const Leaves& leaves,
                            const EvalOptions& options,
                            std::function<void(std::shared_ptr<runtime::Loaded>)> keep = {}) {
  schedule::Plan plan = make_plan(graph, device.model(), options);
  std::vector<Kernel> kernels = kernels::lower(plan, device.model());
  for (auto first = kernels.begin(); options.backwards && first != kernels.end();) {
    const auto last = std::find_if(first, kernels.end(),
                                   [&](const Kernel& k) { return k.stage != first->stage; });
    std::reverse(first, last);
    first = last;
  }
  Image before = initial_memory(plan, leaves, options);
  const auto work = std::make_shared<Work>(
      Work{device, std::move(plan), std::move(kernels), std::move(before), {}});
  return device.emit(work->kernels, 0, options.progress)
      .map([work, progress = options.progress](const auto& emitted) {
        return work->device.load(emitted, progress);
      })
      .map([work, keep = std::move(keep)](const auto& loaded) {
        work->loaded = loaded;
        if (keep) keep(loaded);
        return allocate(work);
      })
      .map([work](Done) { return submit(work); })
      .map([work](Done) { return results_of(*work); });
}

Evaluated wait_for_results(runtime::Device& device, const Completion<Evaluated>& results) {
  return std::move(wait_for(device, results, "an evaluation"));
}

}  // namespace

Evaluated evaluate(const ir::Graph& graph, const Leaves& leaves, const EvalOptions& options) {
  Open& kept = open(options);
  return wait_for_results(*kept.device,
                          start(*kept.device, graph, leaves, options,
                                [&](auto loaded) { kept.loaded.push_back(std::move(loaded)); }));
}

Evaluated evaluate_on(runtime::Device& device, const ir::Graph& graph, const Leaves& leaves,
                      const EvalOptions& options) {
  return wait_for_results(device, start(device, graph, leaves, options));
}

Completion<Evaluated> evaluate_later(runtime::Device& device, const ir::Graph& graph,
                                     const Leaves& leaves, const EvalOptions& options) {
  return start(device, graph, leaves, options);
}

std::vector<Value> interpret_results(const ir::Graph& graph, const Leaves& leaves) {
  std::vector<Value> values = reference::interpret(graph, leaves), results;
  for (const ir::Result& result : graph.results) results.push_back(values[usize(result.node)]);
  return results;
}

std::string Mismatch::text() const {
  return fmt::format("element {} of {}: {} instead of {} (off by {:.2e}, allowed {:.2e})", element,
                     type.text(), got, want, error, allowed);
}

Comparison compare(const Value& got, const Value& want, double tolerance) {
  const bool real = want.type.dtype == DType::f32;
  constexpr double kLargest = std::numeric_limits<float>::max();
  double scale = 1;
  for (const double w : want.data)
    if (std::abs(w) <= kLargest) scale = std::max(scale, std::abs(w));
  const double allowed = real ? tolerance * scale : 0;
  Comparison out;
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    const double g = got.data[i];
    double w = want.data[i];
    if (real && std::abs(w) > kLargest) w = std::copysign(HUGE_VAL, w);
    if (std::isnan(w) ? std::isnan(g) : g == w) continue;
    const double error = std::abs(g - w), share = error / allowed;
    out.worst = std::max(out.worst, std::isnan(share) ? HUGE_VAL : share);
    if (!(error <= allowed)) out.wrong.push_back({i, want.type, g, w, error, allowed});
  }
  return out;
}

std::string difference(const Value& got, const Value& want, double tolerance) {
  if (got.type != want.type)
    return fmt::format("the type is {}, not {}", got.type.text(), want.type.text());
  const Comparison found = compare(got, want, tolerance);
  return found.wrong.empty() ? "" : found.wrong.front().text();
}

}  // namespace tensorgrad::eval
