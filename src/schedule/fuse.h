// Stage `fuse`: which nodes are computed together. A group becomes one kernel. Its members have
// values of their own, which may go to memory; what only one group reads, and cheaply, is inlined
// into it and has no place anywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/device_model.h"
#include "ir/graph.h"

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
  bool reduces = false;           // rows: lines and length are given by a reduction
  std::vector<ir::NodeId> nodes;  // members, in order
  int stage = 0;  // groups of one stage do not need each other; never falls from group to group
};

struct Fused {
  std::vector<Group> groups;  // in an order that respects the graph
  std::vector<int> group;     // of each node; -1: views, leaves, numbers, dead nodes
  std::vector<bool> inlined;  // computed inside the groups that read it
  std::vector<bool> joined;   // a concat whose parts are computed straight into its memory
  std::vector<bool> line;     // members: one value per line instead of one per element
  // matmul members: the product it comes from. columns: a reduction that rides with this product.
  std::vector<ir::NodeId> product;
};

// What can be left out of the stages `fuse` and `plan` by name.
struct Switch {
  std::string_view name;
  std::string_view what;
  std::string_view stage;
};
std::span<const Switch> switches();

Fused fuse(const ir::Graph& graph, const ir::DeviceModel& model,
           const std::vector<std::string>& without = {});

// The longest row that a group with more than one pass over it may have.
inline constexpr std::int64_t kLongestRow = 4096;

}  // namespace tensorgrad::schedule
