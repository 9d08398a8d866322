#include "schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/primitive.h"
#include "passes/expand.h"
#include "passes/materialise.h"
#include "support/fail.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::NodeId;
using ir::Place;
using ir::Result;
using ir::Space;

namespace {

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

// First fit over lifetimes: tensors in the order they are born, each in the lowest gap between
// those that live at the same time.
class Arena {
 public:
  std::int64_t place(std::int64_t elements, int born, int dies) {
    const std::int64_t size = aligned(elements);
    std::vector<const Block*> beside;
    for (const Block& b : blocks_)
      if (b.born <= dies && born <= b.dies) beside.push_back(&b);
    std::sort(beside.begin(), beside.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    std::int64_t offset = 0;
    for (const Block* b : beside) {
      if (offset + size <= b->offset) break;
      offset = std::max(offset, b->offset + b->size);
    }
    blocks_.push_back({offset, size, born, dies});
    top_ = std::max(top_, offset + size);
    return offset;
  }
  std::int64_t elements() const { return top_; }

 private:
  struct Block {
    std::int64_t offset, size;
    int born, dies;
  };
  std::vector<Block> blocks_;
  std::int64_t top_ = 0;
};

class Planner {
 public:
  Planner(Graph graph, const Layouts& layouts, const PlanOptions& options)
      : parameters_(layouts.parameters), state_(layouts.state), inputs_(layouts.inputs), options_(options) {
    plan_.graph = std::move(graph);
  }

  Plan run() {
    const Graph& graph = plan_.graph;
    plan_.places.resize(at(graph.size()));
    plan_.fused = fuse(graph, options_.fuse);
    for (const Group& group : plan_.fused.groups) plan_.steps.push_back({group, {}, -1});
    place_leaves();
    find_reads();
    place_results();
    place_temporaries();
    plan_.elements[static_cast<std::size_t>(Space::parameters)] = parameters_.elements();
    plan_.elements[static_cast<std::size_t>(Space::gradients)] = parameters_.elements();
    plan_.elements[static_cast<std::size_t>(Space::state)] = state_.elements();
    plan_.elements[static_cast<std::size_t>(Space::inputs)] = inputs_.elements();
    plan_.elements[static_cast<std::size_t>(Space::outputs)] = plan_.outputs.elements();
    return std::move(plan_);
  }

 private:
  void place_leaves() {
    const Graph& graph = plan_.graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const ir::Node& node = graph[id];
      if (node.op->core != Core::leaf) continue;
      const auto& leaf = node.as<ir::LeafAttrs>();
      if (node.op->name == "input") {
        plan_.places[at(id)] = Place{Space::inputs, inputs_.place(leaf.name, node.type)};
      } else if (node.op->name == "state") {
        plan_.places[at(id)] = Place{Space::state, state_.place(leaf.name, node.type)};
      } else if (leaf.name == ir::kFlat) {
        plan_.places[at(id)] = Place{Space::parameters, 0};
      } else {
        const Layout::Entry* entry = parameters_.find(leaf.name);
        if (!entry) internal_error("the graph reads a parameter that the model lacks: {}", leaf.name);
        plan_.places[at(id)] = Place{Space::parameters, entry->offset};
      }
    }
  }

  // For each node the last step that reads it from memory, and whether any does.
  void find_reads() {
    const Graph& graph = plan_.graph;
    last_read_.assign(at(graph.size()), -1);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      for (const NodeId node : plan_.steps[s].group.nodes)
        for (const NodeId input : graph[node].inputs) {
          const NodeId base = base_of(graph, input);
          const bool inside = plan_.fused.group[at(base)] == static_cast<int>(s);
          if (!inside) last_read_[at(base)] = std::max(last_read_[at(base)], static_cast<int>(s));
        }
  }

  int born(NodeId id) const { return plan_.fused.inlined[at(id)] ? -1 : plan_.fused.group[at(id)]; }

  // Whether the step that makes `id` may write over `leaf`: nobody reads the old value afterwards,
  // and the step itself reads it, if at all, at the very element it writes.
  bool may_overwrite(NodeId leaf, NodeId id) const {
    const int step = born(id);
    if (last_read_[at(leaf)] != step) return last_read_[at(leaf)] < step;
    const Group& group = plan_.steps[static_cast<std::size_t>(step)].group;
    if (group.kind == Group::Kind::matmul || group.kind == Group::Kind::single) return false;
    // A row is read as a whole before any of it is written, a block of lines likewise.
    const bool line = plan_.fused.line[at(id)];
    for (const NodeId node : group.nodes) {
      const Core core = plan_.graph[node].op->core;
      for (const NodeId input : plan_.graph[node].inputs) {
        const NodeId base = base_of(plan_.graph, input);
        // The leaf, or something inlined that comes from it, seen through a view that moves.
        if (base != leaf && !comes_from(base, leaf)) continue;
        if (!is_alias(plan_.graph, input) || (core != Core::elementwise && core != Core::reduce)) return false;
        const bool reads_line = core != Core::reduce && plan_.fused.line[at(node)];
        if (!plan_.fused.inlined[at(node)] && reads_line != line) return false;
      }
    }
    return true;
  }

  bool comes_from(NodeId id, NodeId leaf) const {
    if (!plan_.fused.inlined[at(id)]) return false;
    for (const NodeId input : plan_.graph[id].inputs) {
      const NodeId base = base_of(plan_.graph, input);
      if (base == leaf || comes_from(base, leaf)) return true;
    }
    return false;
  }

  Place target(const Result& result) {
    const ir::Type& type = plan_.graph[result.node].type;
    switch (result.kind) {
      case Result::Kind::gradient:
        return {Space::gradients, result.name == ir::kFlat ? 0 : parameters_.find(result.name)->offset};
      case Result::Kind::update:
        if (result.name == ir::kFlat) return {Space::parameters, 0};
        for (const ir::Node& node : plan_.graph.nodes)
          if (node.op->name == "state" && node.as<ir::LeafAttrs>().name == result.name)
            return {Space::state, state_.place(result.name, type)};
        if (const Layout::Entry* entry = parameters_.find(result.name)) return {Space::parameters, entry->offset};
        return {Space::state, state_.place(result.name, type)};
      case Result::Kind::output: return {Space::outputs, plan_.outputs.place("output:" + result.name, type)};
      case Result::Kind::capture: return {Space::outputs, plan_.outputs.place("capture:" + result.name, type)};
    }
    return {};
  }

  NodeId leaf_at(const Place& place) const {
    for (NodeId id = 0; id < plan_.graph.size(); ++id)
      if (plan_.graph[id].op->core == Core::leaf && plan_.graph[id].op->name != "input" && plan_.places[at(id)] == place) return id;
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
      if (plan_.fused.joined[at(base)]) {
        plan_.places[at(base)] = place;
        continue;
      }
      if (born(base) < 0 || plan_.places[at(base)])
        internal_error("a result is not the memory of a node of its own: {}", ir::print_node(graph, result.node));
      const NodeId leaf = result.kind == Result::Kind::update ? leaf_at(place) : -1;
      if (leaf < 0 || may_overwrite(leaf, base)) {
        plan_.places[at(base)] = place;
      } else {
        late.push_back({{}, {{base, place, 0}}, base});
        last_read_[at(base)] = std::numeric_limits<int>::max();
      }
    }
    for (Step& copy : late) plan_.steps.push_back(std::move(copy));
  }

  void place_temporaries() {
    Arena arena;
    const int end = static_cast<int>(plan_.steps.size());
    for (int s = 0; s < end; ++s) {
      Step& step = plan_.steps[static_cast<std::size_t>(s)];
      if (step.copied >= 0) continue;
      for (const NodeId id : step.group.nodes) {
        if (plan_.fused.inlined[at(id)]) continue;
        auto& place = plan_.places[at(id)];
        if (!place && last_read_[at(id)] < 0) continue;  // only its own group reads it
        const int last = place ? end : std::clamp(last_read_[at(id)], s, end);
        if (!place) {
          const std::int64_t count = plan_.graph[id].type.shape.count();
          const bool all = options_.keep_all;
          place = Place{Space::arena, arena.place(count, all ? 0 : s, all ? end : last)};
        }
        step.stored.push_back({id, *place, last});
      }
    }
    plan_.elements[static_cast<std::size_t>(Space::arena)] = arena.elements();
  }

  Plan plan_;
  const Layout& parameters_;
  Layout& state_;
  Layout& inputs_;
  const PlanOptions& options_;
  std::vector<int> last_read_;
};

}  // namespace

Plan plan(const Graph& graph, const Layouts& layouts, const PlanOptions& options) {
  // What a kernel can be: no composites, results in memory of their own.
  return Planner(passes::materialise(passes::expand(graph)), layouts, options).run();
}

std::string Plan::text() const {
  std::string out = fmt::format("plan: {} kernels, arena {} bytes\n", steps.size(), bytes(Space::arena));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    const char* const kinds[] = {"rows", "columns", "matmul", "single"};
    std::vector<std::string_view> names;
    for (const NodeId id : step.group.nodes) names.push_back(graph[id].op->name);
    out += fmt::format("{:4} {:8} {}\n", s, step.copied >= 0 ? "copy" : kinds[static_cast<int>(step.group.kind)],
                       fmt::join(names, " "));
    for (const Stored& stored : step.stored)
      out += fmt::format("       %{:<5} {:20} -> {}+{} until {}\n", stored.node, graph[stored.node].type.text(),
                         ir::name(stored.place.space), stored.place.offset, stored.last_use);
  }
  return out;
}

}  // namespace tensorgrad::schedule
