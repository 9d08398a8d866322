#include "schedule/fuser.h"

#include <algorithm>
#include <set>

#include "support/integers.h"

namespace tensorgrad::schedule {

namespace {

constexpr Switch kSwitches[] = {
    {"fuse", "nodes are fused into kernels", "fuse", &Parts::fuse},
    {"inline", "cheap values are recomputed in their readers", "fuse", &Parts::inlining},
    {"merge", "row groups connected elementwise are merged", "fuse", &Parts::merge},
    {"side_by_side", "independent kernels of the same form are merged", "fuse",
     &Parts::side_by_side},
    {"ride", "bias gradients are computed while a matmul packs its operand", "fuse", &Parts::ride},
    {"overlap", "small independent kernels may run concurrently", "fuse", &Parts::overlap},
    {"in_place", "a kernel overwrites an operand that has no later reader", "plan",
     &Parts::in_place},
    {"reuse", "temporaries share memory when their lifetimes do not overlap", "plan",
     &Parts::reuse},
};

}  // namespace

std::span<const Switch> switches() { return kSwitches; }

Parts parts_without(const std::vector<std::string>& names) {
  Parts out;
  for (const Switch& one : kSwitches)
    if (std::find(names.begin(), names.end(), one.name) != names.end()) out.*one.part = false;
  return out;
}

using ir::Core;
using ir::Graph;
using ir::IndexMap;
using ir::NodeId;

Fused Fuser::run() {
  const auto n = usize(graph_.size());
  out_.group.assign(n, -1);
  out_.inlined.assign(n, false);
  out_.line.assign(n, false);
  out_.product.assign(n, -1);
  out_.joined.assign(n, false);
  held_.assign(n, false);
  for (const ir::Node& node : graph_.nodes) counts_.push_back(node.type.shape.count());
  for (const ir::Result& result : graph_.results) held_[usize(base_of(graph_, result.node))] = true;
  std::vector<bool> live = ir::live_nodes(graph_);
  if (on_.fuse) {
    if (on_.inlining) find_numbers(live);
    find_joined();
  }
  // Inlined nodes and joined concats are not computed separately.
  for (std::size_t id = 0; id < n; ++id)
    live[id] = live[id] && computes(graph_.nodes[id]) && !out_.inlined[id] && !out_.joined[id];
  find_operands(live);
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (live[usize(id)]) place(id);
  if (on_.fuse) {
    if (on_.inlining) {
      evict_kept_twice();
      inline_producers();
    }
    if (on_.merge) merge_rows();
    if (on_.side_by_side) merge_side_by_side();
    if (on_.ride) ride_with_products();
  }
  order();
  return std::move(out_);
}

void Fuser::find_operands(const std::vector<bool>& live) {
  operands_.resize(live.size());
  users_.resize(live.size());
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!live[usize(id)]) continue;
    for (const NodeId input : graph_[id].inputs) {
      operands_[usize(id)].push_back(operand_of(graph_, input));
      users_[usize(operands_[usize(id)].back().base)].push_back(
          {id, operands_[usize(id)].size() - 1});
    }
  }
}

// Finds the flat gradient: every part is itself a gradient that is kept, and the parts are adjacent
// in memory.
void Fuser::find_joined() {
  const NodeId flat = graph_.find(ir::Result::Kind::flat_gradient, "");
  if (flat < 0 || graph_[flat].op->core != Core::concat) return;
  std::set<NodeId> kept, bases;
  for (const ir::Result& r : graph_.results)
    if (r.kind == ir::Result::Kind::gradient) kept.insert(base_of(graph_, r.node));
  for (const NodeId part : graph_[flat].inputs) {
    if (count(part) == 0) continue;
    NodeId id = part;
    if (std::holds_alternative<ir::PadAttrs>(graph_[id].attrs)) id = graph_[id].inputs[0];
    const NodeId base = base_of(graph_, id);
    if (!kept.contains(base) || !is_alias(graph_, id) || !computes(graph_[base]) ||
        out_.inlined[usize(base)] || !bases.insert(base).second)
      return;
  }
  out_.joined[usize(flat)] = true;
}

// Whether the operand is joined memory that the group writes a part of. All parts must be written
// before any group reads it.
bool Fuser::reads_joined_part(const Operand& operand, int g) const {
  bool own = false;
  if (out_.joined[usize(operand.base)])
    each_source(operand, [&](int source) { own = own || source == g; });
  return own;
}

void Fuser::absorb(int a, int b) {
  Group &into = group(a), &from = group(b);
  dependencies_.merge(a, b);
  for (const NodeId id : from.nodes) out_.group[usize(id)] = a;
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  std::sort(into.nodes.begin(), into.nodes.end());
  from.nodes.clear();
}

bool spreads_lines(const IndexMap& map, std::int64_t lines, std::int64_t length) {
  if (map.shape().count() != lines * length || lines * length == 0) return false;
  const IndexMap two = map.reshape({lines, length});
  return two.is_strided() && two.layers()[0].address.offset == 0 &&
         (lines == 1 || two.stride(0) == 1) && (length == 1 || two.stride(1) == 0);
}

Fused fuse(const Graph& graph, const ir::DeviceModel& model,
           const std::vector<std::string>& without) {
  return Fuser(graph, model, without).run();
}

}  // namespace tensorgrad::schedule
