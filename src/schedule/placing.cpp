// Assigns an address to every tensor of a plan.
#include "schedule/placing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "ir/primitive.h"
#include "schedule/arena.h"
#include "schedule/cost.h"
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
        on_(parts_without(without)),
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
    for (Step& step : plan_.steps) {
      const Cost cost = cost_of(plan_, step);
      step.operations = cost.operations;
      step.bytes_read = cost.bytes_read, step.bytes_written = cost.bytes_written;
    }
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
      plan_.places[usize(id)] = place_of_leaf(node);
      if (ir::is_writable(node)) writable_.emplace(ir::target_of(node), id);
    }
  }

  Place place_of_leaf(const ir::Node& node) {
    const std::string& name = node.as<ir::LeafAttrs>().name;
    switch (node.op->core) {
      case Core::input:
        return {Space::inputs, inputs_.place(name, node.type)};
      case Core::state:
        return {Space::state, state_.place(name, node.type)};
      case Core::flat_state:
        return {Space::state, state_.place_flat(name, node.type)};
      case Core::flat_parameters:
        return {Space::parameters, flat_offset()};
      default:
        return {Space::parameters, parameter_offset(name)};
    }
  }

  std::int64_t parameter_offset(const std::string& name) const {
    const Layout::Entry* entry = parameters_.find(name);
    if (!entry) internal_error("the graph uses a parameter that is not in the model: {}", name);
    return entry->offset;
  }

  // The offset of the flat parameters. The ranges give the location of each parameter.
  std::int64_t flat_offset() const {
    const std::vector<ir::FlatRange>& ranges = plan_.graph.flat;
    if (ranges.empty()) internal_error("flat parameters without ranges");
    const std::int64_t start = parameter_offset(ranges[0].parameter) - ranges[0].offset;
    for (const ir::FlatRange& range : ranges)
      if (parameter_offset(range.parameter) != start + range.offset)
        internal_error("{} does not lie at its range of the flat parameters", range.parameter);
    return start;
  }

  // Finds the last step that reads each node from memory, if any.
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

  // The stage of a step. Before the first step it is -1; after the last step it is the last stage
  // plus one.
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

  std::int64_t count(NodeId id) const { return plan_.graph[id].type.shape.count(); }

  // Whether `old` has no reader after the step that computes `id` overwrites it.
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
        return {Space::gradients, parameter_offset(result.name)};
      case Result::Kind::flat_gradient:
        return {Space::gradients, flat_offset()};
      case Result::Kind::update:
      case Result::Kind::flat_update:
        return *plan_.places[usize(leaf_of(result))];
      case Result::Kind::output:
        return {Space::outputs, plan_.outputs.place("output:" + result.name, type)};
      case Result::Kind::capture:
        return {Space::outputs, plan_.outputs.place("capture:" + result.name, type)};
    }
    return {};
  }

  // The leaf that an update overwrites.
  NodeId leaf_of(const Result& update) const {
    const auto leaf = writable_.find(ir::target_of(update));
    if (leaf == writable_.end()) internal_error("no leaf is called {}", update.name);
    return leaf->second;
  }

  // Results are written directly to their final address. An update whose old value still has
  // readers is copied there at the end.
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
        internal_error("a result does not have its own memory: {}",
                       ir::print_node(graph, result.node));
      const NodeId leaf = ir::is_update(result) ? leaf_of(result) : -1;
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
        if (!place) add_block(step, stored, stage(s), blocks, block_of);
        step.stored.push_back(stored);
      }
    }
    if (!on_.reuse)
      for (Block& block : blocks) block.born = 0, block.dies = stage(end);
    place_blocks(pack(blocks, piece_));
    const Peak peak = schedule::most_alive(blocks);
    plan_.most_alive = peak.elements;
    plan_.peak_stage = peak.when;
  }

  // Assigns a new block to the value, or the block of an operand that it overwrites.
  void add_block(const Step& step, Stored& stored, int born, std::vector<Block>& blocks,
                 std::vector<int>& block_of) {
    const NodeId id = stored.node;
    stored.over = on_.reuse && on_.in_place ? operand_to_overwrite(step, id, block_of) : -1;
    if (stored.over >= 0) {
      block_of[usize(id)] = std::exchange(block_of[usize(stored.over)], -1);
      blocks[usize(block_of[usize(id)])].dies = stage(stored.last_use);
    } else {
      block_of[usize(id)] = static_cast<int>(blocks.size());
      blocks.push_back({count(id), born, stage(stored.last_use)});
    }
    temporaries_.emplace_back(id, block_of[usize(id)]);
  }

  void place_blocks(const Packing& packing) {
    for (const auto& [id, block] : temporaries_) {
      const std::int64_t offset = packing.offsets[usize(block)];
      const std::int64_t number = std::min<std::int64_t>(offset / piece_, ir::kArenas - 1);
      const Place place{ir::arena(static_cast<int>(number)), offset - number * piece_};
      plan_.places[usize(id)] = place;
      std::int64_t& elements = plan_.elements[usize(place.space)];
      elements = std::max(elements, place.offset + aligned(count(id)));
    }
    for (Step& step : plan_.steps)
      for (Stored& stored : step.stored)
        if (step.copied < 0) stored.place = *plan_.places[usize(stored.node)];
  }

  // A temporary of the same size whose last reader is this step, and which may be overwritten; -1
  // if there is none.
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

  Plan plan_;
  const Layout& parameters_;
  Layout& state_;
  Layout& inputs_;
  const Parts on_;
  const std::int64_t piece_;
  std::vector<int> last_read_;
  std::vector<bool> shared_;  // another step of the stage of the last read reads it too
  std::vector<std::pair<NodeId, int>> temporaries_;  // and the block of each
  std::map<ir::Target, NodeId> writable_;            // the leaf of each target
};

}  // namespace

Plan place(const Graph& graph, Fused fused, const Layouts& layouts,
           const std::vector<std::string>& without, std::int64_t piece) {
  return Planner(graph, std::move(fused), layouts, without, piece).run();
}

}  // namespace tensorgrad::schedule
