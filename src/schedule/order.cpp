// The order of the groups.
#include "schedule/fuser.h"

#include <algorithm>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Node;
using ir::NodeId;

namespace {

// Beyond these a kernel fills a device by itself.
constexpr std::int64_t kSmallElements = std::int64_t{1} << 22;    // of each node
constexpr std::int64_t kSmallOperations = std::int64_t{1} << 30;  // of each product
constexpr std::size_t kMostTogether = 4;

}  // namespace

// Who reads a parameter comes before the group that overwrites it.
void Fuser::link_updates() {
  for (const ir::Result& result : graph_.results) {
    if (result.kind != ir::Result::Kind::update) continue;
    const int writer = out_.group[usize(base_of(graph_, result.node))];
    if (writer < 0) continue;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const int reader = out_.group[usize(id)];
      if (reader < 0 || reader == writer || needs_.needs(reader, writer)) continue;
      // A bad id is found before anything is overwritten.
      if (ir::checks_ids(graph_[id])) needs_.link(writer, reader);
      for (const Operand& operand : operands_[usize(id)]) {
        const Node& leaf = graph_[operand.base];
        if (ir::is_writable(leaf) && leaf.as<ir::LeafAttrs>().name == result.name)
          needs_.link(writer, reader);
      }
    }
  }
}

bool Fuser::is_small(const Group& g) const {
  return std::all_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
    const Node& node = graph_[id];
    if (node.op->core == Core::matmul &&
        2 * count(id) * graph_[node.inputs[0]].type.shape.back() > kSmallOperations)
      return false;
    return count(id) <= kSmallElements &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](NodeId input) { return count(input) <= kSmallElements; });
  });
}

// Groups by the last node they hold, as far as needs allow: close to the order of the program.
// Small ones that are ready with the first share its stage: the gradient of a weight is made beside
// that of the layer's input.
void Fuser::order() {
  link_updates();
  const int n = static_cast<int>(out_.groups.size());
  std::vector<int> left;
  for (int g = 0; g < n; ++g)
    if (!group(g).nodes.empty()) left.push_back(g);
  std::sort(left.begin(), left.end(),
            [&](int a, int b) { return group(a).nodes.back() < group(b).nodes.back(); });
  std::vector<Group> sorted;
  std::vector<int> number(usize(n), -1);
  for (int stage = 0; !left.empty(); ++stage) {
    const auto ready = [&](int g) {
      return std::none_of(left.begin(), left.end(),
                          [&](int other) { return needs_.needs(g, other); });
    };
    std::vector<int> together;
    for (const int g : left) {
      if (!together.empty() && !is_small(group(g))) continue;
      if (!ready(g)) continue;
      together.push_back(g);
      if (!on("overlap") || !is_small(group(g)) || together.size() == kMostTogether) break;
    }
    if (together.empty())
      internal_error("groups need each other: {}", print_node(graph_, group(left[0]).nodes[0]));
    for (const int g : together) {
      number[usize(g)] = static_cast<int>(sorted.size());
      group(g).stage = stage;
      sorted.push_back(std::move(group(g)));
      std::erase(left, g);
    }
  }
  out_.groups = std::move(sorted);
  for (int& g : out_.group)
    if (g >= 0) g = number[usize(g)];
}

}  // namespace tensorgrad::schedule
