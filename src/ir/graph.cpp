// Graph: appends typed nodes, interns call sites and finds live nodes.
#include "ir/graph.h"

#include <algorithm>
#include <set>

#include "ir/check.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::ir {

std::string Type::text() const { return name(dtype) + shape.text(); }

NodeId Graph::append(const Primitive& op, std::vector<NodeId> inputs, Attrs attrs,
                     std::int32_t site) {
  if (const std::string fault = arity_fault(op, inputs.size()); !fault.empty())
    internal_error("append: {} {}", op.name, fault);
  if (attrs.index() != op.attrs)
    internal_error("append: {} takes attributes of kind {}, not {}{}", op.name, op.attrs,
                   attrs.index(), print(attrs));
  std::vector<Type> types;
  for (const NodeId input : inputs) {
    if (input < 0 || input >= size())
      internal_error("append: {} reads %{}, but the graph has {} nodes", op.name, input, size());
    types.push_back((*this)[input].type);
  }
  Type type = op.type(types, attrs);
  nodes.push_back({&op, std::move(inputs), std::move(attrs), std::move(type), site});
  return size() - 1;
}

std::int32_t Graph::intern(const CallSite& site) {
  // Search from the back, because the ops of one source line are appended consecutively.
  const auto known = std::find(sites.rbegin(), sites.rend(), site);
  if (known != sites.rend()) return static_cast<std::int32_t>(sites.rend() - known) - 1;
  sites.push_back(site);
  return static_cast<std::int32_t>(sites.size()) - 1;
}

NodeId Graph::find(Result::Kind kind, std::string_view name) const {
  for (const Result& result : results)
    if (result.kind == kind && result.name == name) return result.node;
  return -1;
}

bool checks_ids(const Node& node) {
  switch (node.op->core) {
    case Core::gather:
    case Core::take:
    case Core::segment_sum:
    case Core::scatter_add:
      return true;
    default:
      return std::holds_alternative<CheckAttrs>(node.attrs);
  }
}

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const Result& result : graph.results) live[usize(result.node)] = true;
  std::set<Target> updated;  // an update needs the leaf that it writes
  for (const Result& result : graph.results)
    if (is_update(result)) updated.insert(target_of(result));
  for (std::size_t id = 0; id < live.size(); ++id)
    if (is_writable(graph.nodes[id]) && updated.contains(target_of(graph.nodes[id])))
      live[id] = true;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const NodeId input : graph.nodes[id].inputs) live[usize(input)] = true;
  }
  return live;
}

}  // namespace tensorgrad::ir
