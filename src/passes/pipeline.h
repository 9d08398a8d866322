// Stage `simplify` as a readable list: the passes in the order they run. Any of them can be left
// out by name; the graph that comes out is another, its values are not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::passes {

struct Pass {
  std::string_view name;
  std::string_view what;  // becomes true, in a few words
  ir::Graph (*run)(const ir::Graph&);
};

std::span<const Pass> pipeline();

// All passes in order but those named; the result is verified.
ir::Graph simplify(ir::Graph graph, const std::vector<std::string>& without = {});

}  // namespace tensorgrad::passes
