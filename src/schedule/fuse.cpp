#include "schedule/fuser.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::schedule {

namespace {

constexpr Switch kSwitches[] = {
    {"fuse", "nodes share kernels at all"},
    {"inline", "cheap work is done where it is read"},
    {"merge", "groups of rows become one where values pass element by element"},
    {"side_by_side", "alike kernels that do not need each other become one"},
    {"ride", "bias gradients are made while a product packs its operand"},
    {"overlap",
     "small kernels that do not need each other run at the same time where the device can"},
    {"in_place", "a kernel writes over an operand that nobody reads afterwards"},
    {"reuse", "temporaries share memory when their lifetimes do not meet"},
};

}  // namespace

std::span<const Switch> switches() { return kSwitches; }

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
  held_.assign(n, false);
  uses_.assign(n, 0);
  out_.joined.assign(n, false);
  std::vector<bool> live = ir::live_nodes(graph_);
  operands_.resize(n);
  for (const ir::Result& result : graph_.results) held_[usize(base_of(graph_, result.node))] = true;
  if (on("fuse")) {
    if (on("inline")) find_numbers(live);
    find_joined();
  }
  // Neither numbers nor joined parts are computed as nodes of their own.
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (out_.inlined[usize(id)] || out_.joined[usize(id)]) live[usize(id)] = false;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!live[usize(id)] || !computes(graph_[id])) continue;
    for (const NodeId input : graph_[id].inputs) {
      operands_[usize(id)].push_back(operand_of(graph_, input));
      ++uses_[usize(operands_[usize(id)].back().base)];
    }
  }
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (live[usize(id)] && computes(graph_[id])) place(id);
  if (on("fuse")) {
    if (on("inline")) {
      evict_kept_twice();
      inline_producers();
    }
    if (on("merge")) merge_rows();
    if (on("side_by_side")) merge_side_by_side();
    if (on("ride")) ride_with_products();
  }
  order();
  return std::move(out_);
}

// The flat gradient: every part is itself a gradient that is kept, and they lie side by side.
void Fuser::find_joined() {
  const NodeId flat = graph_.find(ir::Result::Kind::gradient, ir::kFlat);
  if (flat < 0 || graph_[flat].op->core != Core::concat) return;
  std::vector<NodeId> bases;
  for (const NodeId part : graph_[flat].inputs) {
    if (count(part) == 0) continue;
    NodeId id = part;
    if (std::holds_alternative<ir::PadAttrs>(graph_[id].attrs)) id = graph_[id].inputs[0];
    const NodeId base = base_of(graph_, id);
    const bool kept =
        std::any_of(graph_.results.begin(), graph_.results.end(), [&](const ir::Result& r) {
          return r.kind == ir::Result::Kind::gradient && r.node != flat &&
                 base_of(graph_, r.node) == base;
        });
    if (!kept || !is_alias(graph_, id) || !computes(graph_[base]) || out_.inlined[usize(base)])
      return;
    if (std::find(bases.begin(), bases.end(), base) != bases.end()) return;
    bases.push_back(base);
  }
  out_.joined[usize(flat)] = true;
}

// Whether the operand is joined memory that the group writes a part of: it must be written whole
// before anybody reads it.
bool Fuser::reads_joined_part(const Operand& operand, int g) const {
  bool own = false;
  if (out_.joined[usize(operand.base)])
    each_source(operand, [&](int source) { own = own || source == g; });
  return own;
}

void Fuser::absorb(int a, int b) {
  Group &into = group(a), &from = group(b);
  needs_.merge(a, b);
  for (const NodeId id : from.nodes) out_.group[usize(id)] = a;
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  std::sort(into.nodes.begin(), into.nodes.end());
  from.nodes.clear();
}
int Needs::add() {
  for (auto& row : rows_) row.push_back(false);
  rows_.emplace_back(rows_.size() + 1, false);
  return static_cast<int>(rows_.size()) - 1;
}

void Needs::link(int group, int other) {
  if (group == other || needs(group, other)) return;
  std::vector<bool> more = rows_[usize(other)];
  more[usize(other)] = true;
  for (std::size_t g = 0; g < rows_.size(); ++g)
    if (static_cast<int>(g) == group || rows_[g][usize(group)])
      for (std::size_t i = 0; i < more.size(); ++i) rows_[g][i] = rows_[g][i] || more[i];
}

void Needs::merge(int into, int from) {
  const std::vector<bool> needed = rows_[usize(from)];
  std::vector<int> needing;
  for (std::size_t g = 0; g < rows_.size(); ++g) {
    if (rows_[g][usize(from)] && static_cast<int>(g) != into)
      needing.push_back(static_cast<int>(g));
    rows_[g][usize(from)] = false;
  }
  rows_[usize(from)].assign(rows_.size(), false);
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (needed[i] && static_cast<int>(i) != into) link(into, static_cast<int>(i));
  for (const int g : needing) link(g, into);
}

bool spreads_lines(const IndexMap& map, std::int64_t lines, std::int64_t length) {
  if (map.shape().count() != lines * length || lines * length == 0) return false;
  const IndexMap two = map.reshape({lines, length});
  return two.is_strided() && two.layers()[0].address.offset == 0 &&
         (lines == 1 || two.stride(0) == 1) && (length == 1 || two.stride(1) == 0);
}

Fused fuse(const Graph& graph, const std::vector<std::string>& without) {
  return Fuser(graph, without).run();
}

}  // namespace tensorgrad::schedule
