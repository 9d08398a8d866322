// Fusing, last part: the order of the groups.
#include "schedule/fuser.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Node;
using ir::NodeId;

// Orders the readers of a parameter or state before the group that overwrites it.
void Fuser::link_updates() {
  std::map<ir::Target, std::set<int>> readers;
  std::set<int> checks;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const int g = out_.group[usize(id)];
    if (g < 0) continue;
    if (ir::checks_ids(graph_[id])) checks.insert(g);
    for (const Operand& operand : operands_[usize(id)])
      if (const Node& leaf = graph_[operand.base]; ir::is_writable(leaf))
        readers[ir::target_of(leaf)].insert(g);
  }
  for (const ir::Result& result : graph_.results) {
    if (!ir::is_update(result)) continue;
    const int writer = out_.group[usize(base_of(graph_, result.node))];
    if (writer < 0) continue;
    // A group that needs the writer reads the old value all the same: the update is copied later.
    for (const int g : checks) dependencies_.try_to_link(writer, g);
    for (const int g : readers[ir::target_of(result)]) dependencies_.try_to_link(writer, g);
  }
}

bool Fuser::is_small(const Group& g) const {
  const auto& limit = model_.side_by_side;
  return std::all_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
    const Node& node = graph_[id];
    if (node.op->core == Core::matmul &&
        2 * count(id) * graph_[node.inputs[0]].type.shape.back() > limit.operations)
      return false;
    return count(id) <= limit.elements &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](NodeId input) { return count(input) <= limit.elements; });
  });
}

// Topological order of the groups, by the last node of each group: close to the order of the
// program. Small groups that are ready at the same time share a stage: the gradient of a weight is
// computed together with that of the layer's input.
void Fuser::order() {
  link_updates();
  const int n = static_cast<int>(out_.groups.size());
  std::vector<std::set<int>> needed(usize(n));
  std::vector<std::vector<int>> needing(usize(n));
  using Ready = std::set<std::pair<NodeId, int>>;  // last node, group
  Ready small, large;
  const auto add_ready = [&](int g) {
    (is_small(group(g)) ? small : large).emplace(group(g).nodes.back(), g);
  };
  std::size_t left = 0;
  for (int g = 0; g < n; ++g) {
    if (group(g).nodes.empty()) continue;
    ++left;
    dependencies_.for_each_needed(g, [&](int other) {
      if (needed[usize(g)].insert(other).second) needing[usize(other)].push_back(g);
    });
    if (needed[usize(g)].empty()) add_ready(g);
  }
  const std::size_t most = on_.overlap ? model_.side_by_side.kernels : 1;
  std::vector<std::vector<int>> stages;
  while (left > 0) {
    if (small.empty() && large.empty()) internal_error("groups depend on each other");
    const bool large_first = small.empty() || (!large.empty() && *large.begin() < *small.begin());
    Ready& from = large_first ? large : small;
    std::vector<int> together;
    while (!from.empty() && together.size() < (large_first ? 1 : most)) {
      together.push_back(from.begin()->second);
      from.erase(from.begin());
    }
    for (const int g : together)
      for (const int other : needing[usize(g)]) {
        needed[usize(other)].erase(g);
        if (needed[usize(other)].empty()) add_ready(other);
      }
    left -= together.size();
    stages.push_back(std::move(together));
  }
  number_groups(stages);
}

void Fuser::number_groups(const std::vector<std::vector<int>>& stages) {
  std::vector<Group> sorted;
  std::vector<int> number(out_.groups.size(), -1);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (const int g : stages[stage]) {
      number[usize(g)] = static_cast<int>(sorted.size());
      group(g).stage = static_cast<int>(stage);
      sorted.push_back(std::move(group(g)));
    }
  out_.groups = std::move(sorted);
  for (int& g : out_.group)
    if (g >= 0) g = number[usize(g)];
}

}  // namespace tensorgrad::schedule
