// Fusing, second part: work that is cheaper where it is read moves there and has no memory.
#include "schedule/fuser.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Node;
using ir::NodeId;

// Elementwise work on positions and numbers alone (masks, mostly) reads no memory: it is cheaper
// to do again wherever it is wanted.
void Fuser::find_numbers(const std::vector<bool>& live) {
  std::vector<bool> in_memory(usize(graph_.size()), false);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    for (std::size_t i = 0; live[usize(id)] && computes(node) && i < node.inputs.size(); ++i) {
      const Operand seen = operand_of(graph_, node.inputs[i]);
      bool padded = false;  // the fill is for the value, not for what it is made of
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
    if (!numbers || total > 8) continue;
    work[usize(id)] = total;
    out_.inlined[usize(id)] = true;
  }
}

// Elementwise work on what is kept anyway would be one more tensor in memory: on a product, when
// only rows and columns read it, and on rows, when one other group of rows does. It leaves the
// group.
void Fuser::evict_kept_twice() {
  std::vector<std::vector<NodeId>> users(usize(graph_.size()));
  for (NodeId id = 0; id < graph_.size(); ++id)
    for (const Operand& operand : operands_[usize(id)]) users[usize(operand.base)].push_back(id);
  const int n = static_cast<int>(out_.groups.size());
  for (int g = 0; g < n; ++g) {
    const bool rows = group(g).kind == Group::Kind::rows;
    if (!rows && group(g).kind != Group::Kind::matmul) continue;
    const std::vector<NodeId> nodes = group(g).nodes;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const NodeId id = *it;
      if (graph_[id].op->core != Core::elementwise || held_[usize(id)] || users[usize(id)].empty())
        continue;
      if (rows &&
          (out_.line[usize(id)] || users[usize(id)].size() > 1 || group(g).nodes.size() < 2))
        continue;
      const bool read_by_rows =
          std::all_of(users[usize(id)].begin(), users[usize(id)].end(), [&](NodeId user) {
            const Core core = graph_[user].op->core;
            return out_.group[usize(user)] != g &&
                   group(out_.group[usize(user)]).kind != Group::Kind::matmul &&
                   (core == Core::elementwise || core == Core::reduce);
          });
      const bool kept_anyway = std::all_of(
          operands_[usize(id)].begin(), operands_[usize(id)].end(), [&](const Operand& o) {
            if (out_.group[usize(o.base)] != g) return !rows;  // rows would read one tensor more
            if (held_[usize(o.base)]) return true;
            return std::any_of(
                users[usize(o.base)].begin(), users[usize(o.base)].end(),
                [&](NodeId user) { return user != id && out_.group[usize(user)] != g; });
          });
      if (!read_by_rows || !kept_anyway) continue;
      auto& left = group(g).nodes;
      left.erase(std::find(left.begin(), left.end(), id));
      out_.product[usize(id)] = -1;
      start(id);
    }
  }
  find_needs();
}

// From the start: a group that lost a node no longer needs what only that node read.
void Fuser::find_needs() {
  needs_ = {};
  for (std::size_t g = 0; g < out_.groups.size(); ++g) needs_.add();
  for (NodeId id = 0; id < graph_.size(); ++id)
    for (const Operand& operand : operands_[usize(id)])
      each_source(operand, [&](int source) {
        if (source >= 0) needs_.link(out_.group[usize(id)], source);
      });
}

// An elementwise group with one reader: its work is done where it is read.
void Fuser::inline_producers() {
  for (int g = static_cast<int>(out_.groups.size()) - 1; g >= 0; --g) {
    Group& from = group(g);
    if (from.kind != Group::Kind::rows || from.reduces || from.nodes.empty()) continue;
    NodeId sink = -1;
    bool fits = true;
    for (const NodeId id : from.nodes) {
      if (graph_[id].op->core != Core::elementwise || held_[usize(id)]) fits = false;
      int inside = 0;
      for (const NodeId other : from.nodes)
        for (const Operand& operand : operands_[usize(other)]) inside += operand.base == id;
      if (inside == uses_[usize(id)]) continue;
      if (sink >= 0 || uses_[usize(id)] - inside != 1) fits = false;
      sink = id;
    }
    if (!fits || sink < 0) continue;
    const auto [reader, index] = reader_of(sink, g);
    if (reader < 0 || !takes_program(reader, index, from)) continue;
    const int to = out_.group[usize(reader)];
    if (group(to).nodes.size() + from.nodes.size() > kMostNodes) continue;
    needs_.merge(to, g);
    for (const NodeId id : from.nodes) {
      out_.inlined[usize(id)] = true;
      out_.group[usize(id)] = to;
    }
    Group& into = group(to);
    into.nodes.insert(into.nodes.begin(), from.nodes.begin(), from.nodes.end());
    std::sort(into.nodes.begin(), into.nodes.end());
    from.nodes.clear();
  }
}

std::pair<NodeId, std::size_t> Fuser::reader_of(NodeId id, int own) const {
  for (NodeId other = id + 1; other < graph_.size(); ++other) {
    if (out_.group[usize(other)] == own) continue;
    for (std::size_t i = 0; i < operands_[usize(other)].size(); ++i)
      if (operands_[usize(other)][i].base == id) return {other, i};
  }
  return {-1, 0};
}

bool Fuser::takes_program(NodeId reader, std::size_t index, const Group& from) {
  const Operand& operand = operands_[usize(reader)][index];
  for (const ir::Layer& layer : operand.map.layers())
    if (!layer.guards.empty()) return false;  // a pad fills with its own value
  if (operand.map.shape().count() != count(operand.base))
    return false;  // computed once, not repeated
  const bool cheap =
      from.nodes.size() <= 4 && std::none_of(from.nodes.begin(), from.nodes.end(),
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
      // Packing computes it again for every tile of the other operand. A matrix times a vector adds
      // in an order that depends on how the matrix lies in memory: it always lies there, whether a
      // capture keeps it or not.
      const Shape& shape = graph_[reader].type.shape;
      const std::int64_t again = index == 0 ? shape[-1] : shape[-2];
      if (again == 1) return false;
      return again <= 128 || cheap;
    }
    default:
      return false;
  }
}
}  // namespace tensorgrad::schedule
