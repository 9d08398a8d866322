// Fusing, second part: inlines nodes that are cheaper to compute in their readers. They need no
// memory.
#include "schedule/fuser.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Node;
using ir::NodeId;

// Elementwise ops on positions and constants (mostly masks) read no memory. Recomputing them in
// each reader is cheaper.
void Fuser::find_numbers(const std::vector<bool>& live) {
  std::vector<bool> in_memory(usize(graph_.size()), false);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    for (std::size_t i = 0; live[usize(id)] && computes(node) && i < node.inputs.size(); ++i) {
      const Operand seen = operand_of(graph_, node.inputs[i]);
      bool padded = false;  // the fill replaces the value, not the operands of its node
      for (const ir::Layer& layer : seen.map.layers()) padded = padded || !layer.guards.empty();
      if (padded || reads_memory(node.op->core, i)) in_memory[usize(seen.base)] = true;
    }
  }
  std::vector<int> work(usize(graph_.size()), 0);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    if (!live[usize(id)] || node.op->core != Core::elementwise || held_[usize(id)] ||
        in_memory[usize(id)] || is_costly(graph_, id))
      continue;
    int total = 1;
    bool numbers = true;
    for (const NodeId input : node.inputs) {
      const NodeId base = base_of(graph_, input);
      const Core core = graph_[base].op->core;
      numbers =
          numbers && (core == Core::constant || core == Core::iota || out_.inlined[usize(base)]);
      total += work[usize(base)];
    }
    if (!numbers || total > model_.recompute.constants) continue;
    work[usize(id)] = total;
    out_.inlined[usize(id)] = true;
  }
}

// An elementwise op on values that are stored anyway would store one more tensor. It leaves the
// group.
void Fuser::evict_kept_twice() {
  const int n = static_cast<int>(out_.groups.size());
  for (int g = 0; g < n; ++g) {
    if (group(g).kind != Group::Kind::rows && group(g).kind != Group::Kind::matmul) continue;
    const std::vector<NodeId> nodes = group(g).nodes;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const NodeId id = *it;
      if (!is_kept_twice(id, g)) continue;
      auto& left = group(g).nodes;
      left.erase(std::find(left.begin(), left.end(), id));
      out_.product[usize(id)] = -1;
      start(id);
    }
  }
  find_dependencies();
}

// An epilogue op of a matmul that only rows and columns read, or an op in rows that one other group
// of rows or columns reads.
bool Fuser::is_kept_twice(NodeId id, int g) {
  const bool rows = group(g).kind == Group::Kind::rows;
  const auto& users = users_[usize(id)];
  if (graph_[id].op->core != Core::elementwise || held_[usize(id)] || users.empty()) return false;
  if (rows && (out_.line[usize(id)] || users.size() > 1 || group(g).nodes.size() < 2)) return false;
  const bool read_by_rows = std::all_of(users.begin(), users.end(), [&](const Use& use) {
    const Core core = graph_[use.reader].op->core;
    const int reader = out_.group[usize(use.reader)];
    return reader != g && group(reader).kind != Group::Kind::matmul &&
           (core == Core::elementwise || core == Core::reduce);
  });
  if (!read_by_rows) return false;
  return std::all_of(operands_[usize(id)].begin(), operands_[usize(id)].end(),
                     [&](const Operand& o) {
                       if (out_.group[usize(o.base)] != g)
                         return !rows;  // rows would read one more tensor
                       if (held_[usize(o.base)]) return true;
                       const auto& others = users_[usize(o.base)];
                       return std::any_of(others.begin(), others.end(), [&](const Use& use) {
                         return use.reader != id && out_.group[usize(use.reader)] != g;
                       });
                     });
}

// Rebuilds all edges: a group that lost a node no longer needs the operands of that node.
void Fuser::find_dependencies() {
  std::vector<Dependencies::Edge> edges;
  for (NodeId id = 0; id < graph_.size(); ++id)
    for (const Operand& operand : operands_[usize(id)])
      each_source(operand, [&](int source) {
        if (source >= 0) edges.emplace_back(out_.group[usize(id)], source);
      });
  dependencies_ = Dependencies(static_cast<int>(out_.groups.size()), edges);
}

// Inlines an elementwise group into the group that reads its one value, if that computes no more
// elements than the value has: one reader takes all of it, or several take parts of it (the
// elements of pooling windows). A node is written once for each of its readers, and again for each
// of theirs: without a limit, sums of halves of sums would double a program at each level.
void Fuser::inline_producers() {
  std::vector<std::size_t> copies(usize(graph_.size()), 1);  // of a node in its group's program
  const auto length = [&](int g) {
    std::size_t sum = 0;
    for (const NodeId id : group(g).nodes) sum += copies[usize(id)];
    return sum;
  };
  for (int g = static_cast<int>(out_.groups.size()) - 1; g >= 0; --g) {
    Group& from = group(g);
    const NodeId value = only_value_read_outside(g);
    if (value < 0) continue;
    const std::vector<Use> uses = uses_outside(value, g);
    const int to = out_.group[usize(uses[0].reader)];
    std::int64_t computed = 0;
    std::size_t times = 0;
    bool taken = true;
    for (const Use& use : uses) {
      const Operand& operand = operands_[usize(use.reader)][use.operand];
      computed += operand.map.shape().count();
      times += copies[usize(use.reader)];
      taken = taken && out_.group[usize(use.reader)] == to &&
              takes_program(use.reader, use.operand, from);
    }
    const bool whole = uses.size() == 1 ? computed == count(value) : computed <= count(value);
    if (!taken || !whole) continue;
    if (length(to) + times * length(g) > kMostNodes) continue;
    dependencies_.merge(to, g);
    for (const NodeId id : from.nodes) {
      copies[usize(id)] *= times;
      out_.inlined[usize(id)] = true;
      out_.group[usize(id)] = to;
    }
    Group& into = group(to);
    into.nodes.insert(into.nodes.begin(), from.nodes.begin(), from.nodes.end());
    std::sort(into.nodes.begin(), into.nodes.end());
    from.nodes.clear();
  }
}

// The one value of an elementwise group that is read outside; -1 for other groups.
NodeId Fuser::only_value_read_outside(int g) const {
  const Group& from = out_.groups[usize(g)];
  if (from.kind != Group::Kind::rows || from.reduces) return -1;
  NodeId value = -1;
  for (const NodeId id : from.nodes) {
    if (graph_[id].op->core != Core::elementwise || held_[usize(id)]) return -1;
    if (uses_outside(id, g).empty()) continue;
    if (value >= 0) return -1;
    value = id;
  }
  return value;
}

std::vector<Fuser::Use> Fuser::uses_outside(NodeId id, int own) const {
  std::vector<Use> out;
  for (const Use& use : users_[usize(id)])
    if (out_.group[usize(use.reader)] != own) out.push_back(use);
  return out;
}

bool Fuser::takes_program(NodeId reader, std::size_t index, const Group& from) {
  const Operand& operand = operands_[usize(reader)][index];
  for (const ir::Layer& layer : operand.map.layers())
    if (!layer.guards.empty()) return false;  // a pad has its own fill value
  const bool cheap = from.nodes.size() <= model_.recompute.ops &&
                     std::none_of(from.nodes.begin(), from.nodes.end(),
                                  [&](NodeId id) { return is_costly(graph_, id); });
  if (out_.inlined[usize(reader)] && group(out_.group[usize(reader)]).kind == Group::Kind::matmul &&
      !cheap)
    return false;
  switch (graph_[reader].op->core) {
    case Core::elementwise:
    case Core::concat:
    case Core::reduce:
    case Core::arg_reduce:
    case Core::scan:
      return true;
    case Core::gather:
    case Core::take:
      return index == 1;
    case Core::matmul: {
      // Packing recomputes the operand for every tile of the other operand. The order of additions
      // in a matrix-vector product depends on the memory layout of the matrix, so the matrix is
      // always stored, whether a capture keeps it or not.
      const Shape& shape = graph_[reader].type.shape;
      const std::int64_t again = index == 0 ? shape[-1] : shape[-2];
      if (again == 1) return false;
      return again <= model_.recompute.matmul_reads || cheap;
    }
    default:
      return false;
  }
}
}  // namespace tensorgrad::schedule
