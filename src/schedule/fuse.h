// Stage `fuse`: which nodes are computed together. A group becomes one kernel. Its members have
// values of their own, which may go to memory; what only one group reads, and cheaply, is inlined
// into it and has no place anywhere.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"

namespace tensorgrad::schedule {

struct Group {
  enum class Kind : std::uint8_t {
    rows,     // elementwise work over `lines` rows of `length`, and reductions along the rows
    columns,  // reductions down columns: `length` rows of `lines`
    matmul,   // products with one left operand, each with elementwise work on its result
    single,   // a node that is a kernel of its own
  };
  Kind kind = Kind::single;
  std::int64_t lines = 1, length = 1;
  bool reduces = false;            // rows: lines and length are given by a reduction
  std::vector<ir::NodeId> nodes;   // members, in order
};

struct Fused {
  std::vector<Group> groups;       // in an order that respects the graph
  std::vector<int> group;          // of each node; -1: views, leaves, numbers, dead nodes
  std::vector<bool> inlined;       // computed inside the groups that read it
  std::vector<bool> joined;        // a concat whose parts are computed straight into its memory
  std::vector<bool> line;          // members: one value per line instead of one per element
  // matmul members: the product it comes from. columns: a reduction that rides with this product.
  std::vector<ir::NodeId> product;
};

struct FuseOptions {
  bool enabled = true;  // off: every node that computes is a group of its own
};

Fused fuse(const ir::Graph& graph, const FuseOptions& options = {});

// An operand seen through its views: the node that holds the numbers, and the map from there.
struct Operand {
  ir::NodeId base = -1;
  ir::IndexMap map = ir::IndexMap::contiguous({});
};
Operand operand_of(const ir::Graph& graph, ir::NodeId id);

// The first node below that is not a view.
ir::NodeId base_of(const ir::Graph& graph, ir::NodeId id);
// Whether the view is its base's memory as it stands, only with another shape.
bool is_alias(const ir::Graph& graph, ir::NodeId id);
// Whether a node makes numbers: neither leaf, constant, iota nor view.
bool computes(const ir::Node& node);

// A reduction as lines and length, and the order of the operand's axes that makes them so.
struct ReduceShape {
  std::int64_t lines = 1, length = 1;
  bool along_rows = true;  // the reduced axes are the last ones
  std::vector<int> order;  // of the operand's axes: kept then reduced, or reduced then kept
};
ReduceShape reduce_shape(const ir::Graph& graph, ir::NodeId id);

// The longest row that a group with more than one pass over it may have.
inline constexpr std::int64_t kLongestRow = 4096;

}  // namespace tensorgrad::schedule
