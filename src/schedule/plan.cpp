#include "schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/primitive.h"
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
    for (Group& group : fuse(graph, options_.fuse)) {
      Step step;
      step.group = std::move(group);
      plan_.steps.push_back(std::move(step));
    }
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
      } else {
        const Layout::Entry* entry = parameters_.find(leaf.name);
        if (!entry) internal_error("the graph reads a parameter that the model lacks: {}", leaf.name);
        plan_.places[at(id)] = Place{Space::parameters, entry->offset};
      }
    }
  }

  // For each node in memory the first and last step that reads it.
  void find_reads() {
    const Graph& graph = plan_.graph;
    born_.assign(at(graph.size()), -1);
    last_read_.assign(at(graph.size()), -1);
    std::vector<bool> in_memory(at(graph.size()), false);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      in_memory[at(plan_.steps[s].group.root)] = true;
      born_[at(plan_.steps[s].group.root)] = static_cast<int>(s);
    }
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].op->core == Core::leaf) in_memory[at(id)] = true;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      for (const NodeId node : plan_.steps[s].group.nodes)
        for (const NodeId input : graph[node].inputs)
          if (in_memory[at(input)]) last_read_[at(input)] = static_cast<int>(s);
  }

  // Whether the step that makes `id` may write over `leaf`: nobody reads the old value afterwards,
  // and the step itself reads it, if at all, at the very element it writes.
  bool may_overwrite(NodeId leaf, NodeId id) const {
    const int step = born_[at(id)];
    if (last_read_[at(leaf)] != step) return last_read_[at(leaf)] < step;
    for (const NodeId node : plan_.steps[static_cast<std::size_t>(step)].group.nodes) {
      const ir::Node& n = plan_.graph[node];
      switch (n.op->core) {
        case Core::elementwise:
        case Core::constant:
        case Core::iota: break;
        case Core::view: {
          // A view of the leaf, or of something computed here from it, may move elements.
          const NodeId base = base_of(plan_.graph, node);
          if (base == leaf || (born_[at(base)] < 0 && plan_.graph[base].op->core == Core::elementwise)) return false;
          break;
        }
        default: return false;
      }
    }
    return true;
  }

  Place target(const Result& result) {
    const ir::Type& type = plan_.graph[result.node].type;
    switch (result.kind) {
      case Result::Kind::gradient: return {Space::gradients, parameters_.find(result.name)->offset};
      case Result::Kind::update:
        if (const Layout::Entry* entry = parameters_.find(result.name)) return {Space::parameters, entry->offset};
        return {Space::state, state_.place(result.name, type)};
      case Result::Kind::output: return {Space::outputs, plan_.outputs.place(result.name, type)};
      case Result::Kind::capture: return {Space::outputs, plan_.outputs.place("capture " + result.name, type)};
    }
    return {};
  }

  NodeId leaf_at(const Place& place) const {
    for (NodeId id = 0; id < plan_.graph.size(); ++id)
      if (plan_.graph[id].op->core == Core::leaf && plan_.places[at(id)] == place) return id;
    return -1;
  }

  // A result is computed straight into its place where that is free; else it is copied there:
  // leaves before anything can overwrite them, the rest at the end.
  void place_results() {
    const Graph& graph = plan_.graph;
    std::vector<Step> before, after;
    for (const Result& result : graph.results) {
      const Place place = target(result);
      plan_.results.push_back(place);
      NodeId root = result.node;
      if (born_[at(root)] < 0) root = base_of(graph, root);
      bool direct = born_[at(root)] >= 0 && !plan_.places[at(root)];
      if (direct && result.kind == Result::Kind::update) {
        const NodeId leaf = leaf_at(place);
        direct = leaf < 0 || may_overwrite(leaf, root);
      }
      if (direct) {
        plan_.places[at(root)] = place;
        continue;
      }
      const bool is_leaf = graph[root].op->core == Core::leaf;
      if (is_leaf && result.kind == Result::Kind::update)
        internal_error("an update of {} with a leaf: {}", result.name, ir::print_node(graph, result.node));
      Step copy;
      copy.group = {result.node, {result.node}};
      copy.place = place;
      copy.copy = true;
      (is_leaf ? before : after).push_back(std::move(copy));
      if (!is_leaf) last_read_[at(root)] = std::numeric_limits<int>::max();
    }
    first_ = static_cast<int>(before.size());
    plan_.steps.insert(plan_.steps.begin(), before.begin(), before.end());
    plan_.steps.insert(plan_.steps.end(), after.begin(), after.end());
  }

  void place_temporaries() {
    Arena arena;
    const int end = static_cast<int>(plan_.steps.size());
    for (int s = 0; s < end; ++s) {
      Step& step = plan_.steps[static_cast<std::size_t>(s)];
      if (step.copy) continue;
      auto& place = plan_.places[at(step.group.root)];
      step.last_use = place ? end : std::clamp(last_read_[at(step.group.root)], s - first_, end - first_) + first_;
      if (!place) {
        const std::int64_t count = plan_.graph[step.group.root].type.shape.count();
        place = Place{Space::arena, arena.place(count, options_.keep_all ? 0 : s, options_.keep_all ? end : step.last_use)};
      }
      step.place = *place;
    }
    plan_.elements[static_cast<std::size_t>(Space::arena)] = arena.elements();
  }

  Plan plan_;
  const Layout& parameters_;
  Layout& state_;
  Layout& inputs_;
  const PlanOptions& options_;
  std::vector<int> born_, last_read_;  // by step, copies not counted
  int first_ = 0;                      // copies before the first step
};

}  // namespace

Plan plan(Graph graph, const Layouts& layouts, const PlanOptions& options) {
  return Planner(std::move(graph), layouts, options).run();
}

std::string Plan::text() const {
  std::string out = fmt::format("plan: {} steps, arena {} bytes\n", steps.size(), bytes(Space::arena));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    std::vector<std::string_view> names;
    for (const NodeId id : step.group.nodes)
      if (graph[id].op->core != Core::constant && graph[id].op->core != Core::view)
        names.push_back(graph[id].op->name);
    out += fmt::format("  {:4} %{:<5} {:24} -> {}+{} until {}{} : {}\n", s, step.group.root,
                       graph[step.group.root].type.text(), ir::name(step.place.space), step.place.offset,
                       step.last_use, step.copy ? " (copy)" : "", fmt::join(names, " "));
  }
  return out;
}

}  // namespace tensorgrad::schedule
