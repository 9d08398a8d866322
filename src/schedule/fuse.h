// Stage `fuse`: which nodes are computed together. A group has one root, whose result goes to
// memory; elementwise nodes that only one group reads are computed inside it.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tensorgrad::schedule {

struct Group {
  ir::NodeId root = -1;
  std::vector<ir::NodeId> nodes;  // what it computes, in order; the root is the last
};

struct FuseOptions {
  bool enabled = true;  // off: every node that computes is a group of its own
};

// Groups in an order that respects the graph.
std::vector<Group> fuse(const ir::Graph& graph, const FuseOptions& options = {});

// The node that holds the numbers of a view: the first one below it that is not a view.
ir::NodeId base_of(const ir::Graph& graph, ir::NodeId id);

// Whether the view is its base's memory as it stands, only with another shape.
bool is_alias(const ir::Graph& graph, ir::NodeId id);

}  // namespace tensorgrad::schedule
