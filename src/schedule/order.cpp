// The order of the groups.
#include "schedule/fuser.h"

#include <algorithm>

#include "support/fail.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Node;
using ir::NodeId;

// Groups by the last node they hold, as far as needs allow: close to the order of the program.
// Who reads a parameter comes before the group that overwrites it.
void Fuser::order() {
  const int n = static_cast<int>(out_.groups.size());
  for (const ir::Result& result : graph_.results) {
    if (result.kind != ir::Result::Kind::update) continue;
    const int writer = out_.group[at(base_of(graph_, result.node))];
    if (writer < 0) continue;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const int reader = out_.group[at(id)];
      if (reader < 0 || reader == writer || needs_.needs(reader, writer)) continue;
      // A bad id is found before anything is overwritten.
      if (checks_ids(graph_[id])) needs_.link(writer, reader);
      for (const Operand& operand : operands_[at(id)]) {
        const Node& leaf = graph_[operand.base];
        if (leaf.op->core == Core::leaf && leaf.op->name != "input" && leaf.as<ir::LeafAttrs>().name == result.name)
          needs_.link(writer, reader);
      }
    }
  }
  std::vector<int> left;
  for (int g = 0; g < n; ++g)
    if (!group(g).nodes.empty()) left.push_back(g);
  std::sort(left.begin(), left.end(), [&](int a, int b) { return group(a).nodes.back() < group(b).nodes.back(); });
  std::vector<Group> sorted;
  std::vector<int> number(at(n), -1);
  while (!left.empty()) {
    const auto ready = std::find_if(left.begin(), left.end(), [&](int g) {
      return std::none_of(left.begin(), left.end(), [&](int other) { return needs_.needs(g, other); });
    });
    if (ready == left.end()) internal_error("groups need each other: {}", print_node(graph_, group(left[0]).nodes[0]));
    number[at(*ready)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(group(*ready)));
    left.erase(ready);
  }
  out_.groups = std::move(sorted);
  for (int& g : out_.group)
    if (g >= 0) g = number[at(g)];
}
}  // namespace tensorgrad::schedule
