// Stage `fuse`: decides which nodes are computed together. A group becomes one kernel. Its members
// are values that may be written to memory. A node that only one group reads is inlined into that
// group if this is cheap. It then has no memory.
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
    rows,     // elementwise ops over `lines` rows of `length`, and reductions along the rows
    columns,  // reductions down columns: `length` rows of `lines`
    matmul,   // matmuls with one left operand, each with elementwise ops on its result
    single,   // one node that is a kernel by itself
  };
  Kind kind = Kind::single;
  std::int64_t lines = 1, length = 1;
  bool reduces = false;           // rows: a reduction determines lines and length
  std::vector<ir::NodeId> nodes;  // members, in topological order
  int stage = 0;  // groups of one stage are independent; non-decreasing over the groups
};

std::string_view name(Group::Kind kind);

struct Fused {
  std::vector<Group> groups;  // in topological order
  std::vector<int> group;     // of each node; -1: views, leaves, constants, dead nodes
  std::vector<bool> inlined;  // computed inside the groups that read it
  std::vector<bool> joined;   // a concat whose parts are written directly into its memory
  std::vector<bool> line;     // members: one value per line instead of one per element
  // matmul members: the matmul that they depend on. columns: the matmul that computes this
  // reduction.
  std::vector<ir::NodeId> product;
};

// The parts of the stages `fuse` and `plan` that can be left out.
struct Parts {
  bool fuse = true, inlining = true, merge = true, side_by_side = true, ride = true;
  bool overlap = true, in_place = true, reuse = true;
};
struct Switch {
  std::string_view name;
  std::string_view what;
  std::string_view stage;
  bool Parts::*part;
};
std::span<const Switch> switches();
// All parts but those named; other names are ignored.
Parts parts_without(const std::vector<std::string>& names);

Fused fuse(const ir::Graph& graph, const ir::DeviceModel& model,
           const std::vector<std::string>& without = {});

// The longest row for a group that passes over its rows more than once.
inline constexpr std::int64_t kLongestRow = 4096;

}  // namespace tensorgrad::schedule
