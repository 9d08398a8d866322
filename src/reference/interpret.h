// The oracle: computes every node of a Graph in double precision, one plain loop per primitive. It
// shares no code with the backends (no IndexMap, ScalarProgram or Kernel), so that comparing with
// it means something. It derives every type itself and refuses a node whose type differs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::reference {

// A tensor, row-major. i32 values and bools (0 or 1) are exact in a double; f32 values are not
// rounded to float, so that small differences can be taken.
struct Value {
  ir::Type type;
  std::vector<double> data;
};

// What stands in memory before the run, by kind and name: "input:x", "parameter:l1.W",
// "state:adam.t". Names that the graph does not use are ignored.
using Leaves = std::map<std::string, Value>;

// A value for every node. A leaf that is missing or of another type is a UserError, and so is an
// id out of range.
std::vector<Value> interpret(const ir::Graph& graph, const Leaves& leaves);

// Whether a primitive of this name can be computed here.
bool can_interpret(std::string_view primitive);

}  // namespace tensorgrad::reference
