// The reference interpreter: computes every node of a Graph in double precision, one plain loop per
// primitive. It shares no code with the backends (no IndexMap, ScalarProgram or Kernel), so that a
// comparison with it is independent. It derives every type itself and rejects a node whose type
// differs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::reference {

// A tensor, row-major. i32 values and bools (0 or 1) are exact in a double. f32 values are not
// rounded to float, so that finite differences work.
struct Value {
  ir::Type type;
  std::vector<double> data;
};

// The contents of memory before the run, by kind and name: "input:x", "parameter:l1.W",
// "state:adam.t". Names that the graph does not use are ignored.
using Leaves = std::map<std::string, Value>;

// Returns a value for every node. Throws a UserError if a leaf is missing or has another type, or
// if an id is out of range.
std::vector<Value> interpret(const ir::Graph& graph, const Leaves& leaves);

// Whether the interpreter implements the primitive with this name.
bool can_interpret(std::string_view primitive);

}  // namespace tensorgrad::reference
