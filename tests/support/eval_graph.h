// Runs a Graph on a device from its leaves, without a model or a session: plan, lower, load,
// submit, read. All memory is poisoned first, and what no kernel owns is looked at afterwards, so
// that a wild write or the use of memory that was never written cannot go unnoticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"
#include "schedule/layout.h"

namespace tensorgrad::eval {

struct EvalOptions {
  std::string device = "cpu";
  int threads = 1;
  bool simplify = false;             // the passes of stage `simplify` first
  std::vector<std::string> without;  // passes and parts of the scheduler to leave out
  bool guards = false;  // every tensor gets memory of its own, with poison on both sides of it
  // Where parameters lie; needed when the graph also sees them as one flat tensor. Null: anywhere.
  const schedule::Layout* parameters = nullptr;
};

struct Evaluated {
  std::vector<reference::Value> results;         // one for each of graph.results
  std::vector<std::vector<std::uint32_t>> bits;  // the same as they lie in memory
  // Where memory changed that no kernel of the plan may write: the first such element by name and
  // offset; empty when there is none.
  std::string damage;
};

// Leaves are rounded to f32. A leaf that is missing is a UserError.
Evaluated evaluate(const ir::Graph& graph, const reference::Leaves& leaves,
                   const EvalOptions& options = {});

// The values of the graph's results by the interpreter.
std::vector<reference::Value> interpret_results(const ir::Graph& graph,
                                                const reference::Leaves& leaves);

// The first element of `got` that is off by more than tolerance * max(1, largest |wanted|); i32
// and bool must be equal. NaN matches NaN, infinity itself, and what is too large for a float
// infinity. Empty when all agree.
std::string difference(const reference::Value& got, const reference::Value& want, double tolerance);

}  // namespace tensorgrad::eval
