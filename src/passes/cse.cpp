#include "passes/cse.h"

#include <unordered_map>

#include "ir/primitive.h"
#include "passes/rewrite.h"

namespace tensorgrad::passes {

using ir::NodeId;

ir::Graph cse(ir::Graph graph) {
  ir::Graph out;
  std::unordered_multimap<std::uint64_t, NodeId> known;
  rebuild(std::move(graph), out, [&](NodeId, const ir::Node& node) -> NodeId {
    std::uint64_t h = std::hash<const void*>{}(node.op) ^ ir::hash(node.attrs);
    for (const NodeId input : node.inputs)
      h = h * 1099511628211u + static_cast<std::uint64_t>(input) + 1;
    const auto [first, last] = known.equal_range(h);
    for (auto it = first; it != last; ++it) {
      const ir::Node& other = out[it->second];
      if (other.op == node.op && other.inputs == node.inputs && ir::equal(other.attrs, node.attrs))
        return it->second;
    }
    known.emplace(h, out.size());
    return kKeep;
  });
  return out;
}

}  // namespace tensorgrad::passes
