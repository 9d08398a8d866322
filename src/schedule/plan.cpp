#include "schedule/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "ir/primitive.h"
#include "passes/expand.h"
#include "passes/materialise.h"
#include "schedule/arena.h"
#include "schedule/in_place.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::NodeId;
using ir::Place;
using ir::Result;
using ir::Space;

namespace {

class Planner {
 public:
  Planner(const Graph& graph, Fused fused, const Layouts& layouts,
          const std::vector<std::string>& without, std::int64_t piece)
      : parameters_(layouts.parameters),
        state_(layouts.state),
        inputs_(layouts.inputs),
        without_(without),
        piece_(std::max(kAlignment, piece / kAlignment * kAlignment)) {
    plan_.graph = graph;
    plan_.fused = std::move(fused);
  }

  Plan run() {
    const Graph& graph = plan_.graph;
    plan_.places.resize(usize(graph.size()));
    for (const Group& group : plan_.fused.groups)
      plan_.steps.push_back({.group = group, .stored = {}, .stage = group.stage});
    place_leaves();
    find_reads();
    place_results();
    place_temporaries();
    for (Step& step : plan_.steps) measure(step);
    plan_.elements[usize(Space::parameters)] = parameters_.elements();
    plan_.elements[usize(Space::gradients)] = parameters_.elements();
    plan_.elements[usize(Space::state)] = state_.elements();
    plan_.elements[usize(Space::inputs)] = inputs_.elements();
    plan_.elements[usize(Space::outputs)] = plan_.outputs.elements();
    return std::move(plan_);
  }

 private:
  void place_leaves() {
    const Graph& graph = plan_.graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const ir::Node& node = graph[id];
      if (!ir::is_leaf(node)) continue;
      const auto& leaf = node.as<ir::LeafAttrs>();
      if (node.op->core == Core::input) {
        plan_.places[usize(id)] = Place{Space::inputs, inputs_.place(leaf.name, node.type)};
      } else if (node.op->core == Core::state) {
        plan_.places[usize(id)] = Place{Space::state, state_.place(leaf.name, node.type)};
      } else if (leaf.name == ir::kFlat) {
        plan_.places[usize(id)] = Place{Space::parameters, 0};
      } else {
        const Layout::Entry* entry = parameters_.find(leaf.name);
        if (!entry)
          internal_error("the graph reads a parameter that the model lacks: {}", leaf.name);
        plan_.places[usize(id)] = Place{Space::parameters, entry->offset};
      }
    }
  }

  // For each node the last step that reads it from memory, and whether any does.
  void find_reads() {
    const Graph& graph = plan_.graph;
    last_read_.assign(usize(graph.size()), -1);
    shared_.assign(usize(graph.size()), false);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      for (const NodeId node : plan_.steps[s].group.nodes)
        for (const NodeId input : graph[node].inputs) {
          const NodeId base = base_of(graph, input);
          const bool inside = plan_.fused.group[usize(base)] == static_cast<int>(s);
          if (inside || last_read_[usize(base)] == static_cast<int>(s)) continue;
          shared_[usize(base)] = stage(last_read_[usize(base)]) == stage(static_cast<int>(s));
          last_read_[usize(base)] = static_cast<int>(s);
        }
  }

  // Of a step; before the first and behind the last there is nothing.
  int stage(int step) const {
    if (step < 0) return -1;
    const auto s = usize(step);
    return s < plan_.steps.size() ? plan_.steps[s].stage
           : plan_.steps.empty()  ? 0
                                  : plan_.steps.back().stage + 1;
  }

  int born(NodeId id) const {
    return plan_.fused.inlined[usize(id)] ? -1 : plan_.fused.group[usize(id)];
  }

  bool on(std::string_view name) const {
    return std::find(without_.begin(), without_.end(), name) == without_.end();
  }
  std::int64_t count(NodeId id) const { return plan_.graph[id].type.shape.count(); }

  // Whether nobody reads `old` once the step that makes `id` writes over it.
  bool is_free(NodeId old, NodeId id) const {
    const int last = last_read_[usize(old)];
    if (stage(last) != stage(born(id))) return last < born(id);
    return last == born(id) && !shared_[usize(old)] &&
           may_overwrite(plan_.graph, plan_.fused, old, id);
  }

  Place target(const Result& result) {
    const ir::Type& type = plan_.graph[result.node].type;
    switch (result.kind) {
      case Result::Kind::gradient:
        return {Space::gradients,
                result.name == ir::kFlat ? 0 : parameters_.find(result.name)->offset};
      case Result::Kind::update:
        if (result.name == ir::kFlat) return {Space::parameters, 0};
        for (const ir::Node& node : plan_.graph.nodes)
          if (node.op->core == Core::state && node.as<ir::LeafAttrs>().name == result.name)
            return {Space::state, state_.place(result.name, type)};
        if (const Layout::Entry* entry = parameters_.find(result.name))
          return {Space::parameters, entry->offset};
        return {Space::state, state_.place(result.name, type)};
      case Result::Kind::output:
        return {Space::outputs, plan_.outputs.place("output:" + result.name, type)};
      case Result::Kind::capture:
        return {Space::outputs, plan_.outputs.place("capture:" + result.name, type)};
    }
    return {};
  }

  NodeId leaf_at(const Place& place) const {
    for (NodeId id = 0; id < plan_.graph.size(); ++id)
      if (ir::is_writable(plan_.graph[id]) && plan_.places[usize(id)] == place) return id;
    return -1;
  }

  // A result is computed straight into its place; an update that still has readers of the old value
  // is copied there at the end.
  void place_results() {
    const Graph& graph = plan_.graph;
    std::vector<Step> late;
    for (const Result& result : graph.results) {
      const Place place = target(result);
      plan_.results.push_back(place);
      const NodeId base = base_of(graph, result.node);
      if (plan_.fused.joined[usize(base)]) {
        plan_.places[usize(base)] = place;
        continue;
      }
      if (born(base) < 0 || plan_.places[usize(base)])
        internal_error("a result is not the memory of a node of its own: {}",
                       ir::print_node(graph, result.node));
      const NodeId leaf = result.kind == Result::Kind::update ? leaf_at(place) : -1;
      if (leaf < 0 || is_free(leaf, base)) {
        plan_.places[usize(base)] = place;
      } else {
        late.push_back({.group = {}, .stored = {{base, place, 0, -1}}, .copied = base});
        last_read_[usize(base)] = std::numeric_limits<int>::max();
      }
    }
    for (Step& copy : late) {
      copy.stage = stage(static_cast<int>(plan_.steps.size()));
      plan_.steps.push_back(std::move(copy));
    }
  }

  void place_temporaries() {
    std::vector<Block> blocks;
    std::vector<int> block_of(usize(plan_.graph.size()), -1);
    const int end = static_cast<int>(plan_.steps.size());
    for (int s = 0; s < end; ++s) {
      Step& step = plan_.steps[usize(s)];
      for (const NodeId id : step.group.nodes) {
        if (plan_.fused.inlined[usize(id)]) continue;
        const auto& place = plan_.places[usize(id)];
        if (!place && last_read_[usize(id)] < 0) continue;  // only its own group reads it
        Stored stored{id, place ? *place : Place{},
                      place ? end : std::clamp(last_read_[usize(id)], s, end), -1};
        if (!place) {
          stored.over =
              on("reuse") && on("in_place") ? operand_to_overwrite(step, id, block_of) : -1;
          if (stored.over >= 0) {
            block_of[usize(id)] = std::exchange(block_of[usize(stored.over)], -1);
            blocks[usize(block_of[usize(id)])].dies = stage(stored.last_use);
          } else {
            block_of[usize(id)] = static_cast<int>(blocks.size());
            blocks.push_back({count(id), stage(s), stage(stored.last_use)});
          }
          offsets_wanted_.emplace_back(id, block_of[usize(id)]);
        }
        step.stored.push_back(stored);
      }
    }
    if (!on("reuse"))
      for (Block& block : blocks) block.born = 0, block.dies = stage(end);
    const Packing packing = pack(blocks, piece_);
    for (const auto& [id, block] : offsets_wanted_) {
      const std::int64_t offset = packing.offsets[usize(block)];
      const std::int64_t number = std::min<std::int64_t>(offset / piece_, ir::kArenas - 1);
      const Place place{ir::arena(static_cast<int>(number)), offset - number * piece_};
      plan_.places[usize(id)] = place;
      std::int64_t& elements = plan_.elements[usize(place.space)];
      elements = std::max(elements, place.offset + aligned(count(id)));
    }
    for (Step& step : plan_.steps)
      for (Stored& stored : step.stored) {
        if (step.copied < 0) stored.place = *plan_.places[usize(stored.node)];
      }
    const Peak peak = schedule::most_alive(blocks);
    plan_.most_alive = peak.elements;
    plan_.peak_stage = peak.when;
  }

  // A temporary of the same size that this step is the last to read, and reads where it writes; -1:
  // none.
  NodeId operand_to_overwrite(const Step& step, NodeId id, const std::vector<int>& block_of) const {
    for (const NodeId node : step.group.nodes)
      for (const NodeId input : plan_.graph[node].inputs) {
        const NodeId base = base_of(plan_.graph, input);
        if (block_of[usize(base)] >= 0 && last_read_[usize(base)] == born(id) &&
            !shared_[usize(base)] && born(base) < born(id) && count(base) == count(id) &&
            may_overwrite(plan_.graph, plan_.fused, base, id))
          return base;
      }
    return -1;
  }

  void measure(Step& step) const {
    const Graph& graph = plan_.graph;
    // Elements of each tensor in memory: those of all views of it together, at most all.
    std::map<NodeId, std::int64_t> read;
    std::set<NodeId> views;
    const auto reads = [&](NodeId view, std::int64_t seen) {
      const NodeId base = base_of(graph, view);
      if (plan_.places[usize(base)] && views.insert(view).second)
        read[base] = std::min(read[base] + seen, count(base));
    };
    if (step.copied >= 0) reads(step.copied, count(step.copied));
    for (const NodeId id : step.group.nodes) {
      const ir::Node& node = graph[id];
      for (const NodeId input : node.inputs) {
        const NodeId base = base_of(graph, input);
        const bool inside =
            born(base) >= 0 && plan_.fused.group[usize(base)] == plan_.fused.group[usize(id)];
        const bool by_id = node.op->core == Core::gather || node.op->core == Core::take;
        if (!inside) reads(input, by_id && input == node.inputs[0] ? count(id) : count(input));
      }
      switch (node.op->core) {
        case Core::elementwise:
          step.operations += count(id) * operations(graph, id);
          break;
        case Core::matmul:
          step.operations += 2 * count(id) * graph[node.inputs[0]].type.shape.back();
          break;
        case Core::gather:
        case Core::take:
        case Core::concat:
          break;
        case Core::attention:
          step.operations += 2 * scores(id) * (head(id, 0) + head(id, 2));
          break;
        // Scores again, of q and k and of the gradient and v; then the gradients of all three.
        case Core::attention_gradient:
          step.operations += 2 * scores(id) * (3 * head(id, 0) + 2 * head(id, 2));
          break;
        case Core::selective_scan:
          step.operations += 6 * states(id);
          break;
        case Core::selective_scan_gradient:
          step.operations += 18 * states(id);
          break;
        default:
          step.operations += count(node.inputs[0]);
          break;  // one for each operand added or compared
      }
    }
    for (const auto& [base, elements] : read) step.bytes_read += 4 * elements;
    for (const Stored& stored : step.stored) step.bytes_written += 4 * count(stored.node);
  }

  // Attention: pairs of a query and a key that it sees (all, where the start is not known); the
  // size of a head.
  std::int64_t scores(NodeId id) const {
    const ir::Node& node = plan_.graph[id];
    const Shape &q = plan_.graph[node.inputs[0]].type.shape,
                &k = plan_.graph[node.inputs[1]].type.shape;
    const bool cached = node.inputs.size() == (node.op->core == Core::attention ? 4u : 6u);
    const std::int64_t hidden =
        node.as<ir::AttentionAttrs>().causal && !cached ? q[2] * (q[2] - 1) / 2 : 0;
    return q[0] * q[1] * (q[2] * k[2] - hidden);
  }
  std::int64_t head(NodeId id, std::size_t operand) const {
    return plan_.graph[plan_.graph[id].inputs[operand]].type.shape[3];
  }
  // Selective scan: steps of all states.
  std::int64_t states(NodeId id) const {
    const ir::Node& node = plan_.graph[id];
    return count(node.inputs[0]) * plan_.graph[node.inputs[2]].type.shape[1];
  }

  Plan plan_;
  const Layout& parameters_;
  Layout& state_;
  Layout& inputs_;
  const std::vector<std::string>& without_;
  const std::int64_t piece_;
  std::vector<int> last_read_;
  std::vector<bool> shared_;  // other steps of the same stage read it, too, when it is read last
  std::vector<std::pair<NodeId, int>> offsets_wanted_;  // temporaries, and the block each lies in
};

}  // namespace

std::int64_t Plan::arena_bytes() const {
  std::int64_t out = 0;
  for (int i = 0; i < ir::kArenas; ++i) out += bytes(ir::arena(i));
  return out;
}

namespace {

// The groups of one stage one after the other, those that write least first.
Fused apart(const Plan& plan, int stage) {
  Fused out = plan.fused;
  const auto first = std::find_if(out.groups.begin(), out.groups.end(),
                                  [&](const Group& g) { return g.stage == stage; });
  const auto last =
      std::find_if(first, out.groups.end(), [&](const Group& g) { return g.stage != stage; });
  std::vector<std::size_t> order;
  for (auto g = first; g != last; ++g) order.push_back(usize(g - out.groups.begin()));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.steps[a].bytes_written < plan.steps[b].bytes_written;
  });
  std::vector<int> renamed(out.groups.size());
  for (std::size_t g = 0; g < renamed.size(); ++g) renamed[g] = static_cast<int>(g);
  std::vector<Group> sorted(out.groups.begin(), first);
  int turn = 0;
  for (const std::size_t g : order) {
    renamed[g] = static_cast<int>(sorted.size());
    sorted.push_back(plan.fused.groups[g]);
    sorted.back().stage = stage + turn++;
  }
  for (auto g = last; g != out.groups.end(); ++g) {
    sorted.push_back(*g);
    sorted.back().stage += turn - 1;
  }
  out.groups = std::move(sorted);
  for (int& g : out.group)
    if (g >= 0) g = renamed[usize(g)];
  return out;
}

bool shares_stage(const Plan& plan, int stage) {
  return std::count_if(plan.fused.groups.begin(), plan.fused.groups.end(),
                       [&](const Group& g) { return g.stage == stage; }) > 1;
}

// Bytes that are worth a stage more.
std::int64_t worthwhile(std::int64_t arena_bytes) {
  return std::max<std::int64_t>(1 << 19, arena_bytes / 256);
}

}  // namespace

Plan plan(const Graph& graph, const Layouts& layouts, const std::vector<std::string>& without,
          std::int64_t piece) {
  // What a kernel can be: no composites, results in memory of their own.
  const Graph ready = passes::materialise(passes::expand(graph));
  const auto made = [&](Fused fused) {
    return Planner(ready, std::move(fused), layouts, without, piece).run();
  };
  Plan best = made(fuse(ready, without));
  // Kernels that run at the same time need their memory at the same time. Where that decides how
  // much is needed, they take turns.
  while (shares_stage(best, best.peak_stage)) {
    Plan other = made(apart(best, best.peak_stage));
    if (other.arena_bytes() + worthwhile(best.arena_bytes()) > best.arena_bytes()) break;
    best = std::move(other);
  }
  return best;
}

}  // namespace tensorgrad::schedule
