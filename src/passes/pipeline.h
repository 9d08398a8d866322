// The passes as readable lists in the order they run: before differentiation, and stage `simplify`.
// Any of them can be left out by name; the graph that comes out is another, its values are not.
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

std::span<const Pass> before_gradients();
std::span<const Pass> pipeline();

// What the user wrote with the passes that come before differentiation, but those named.
ir::Graph recognise(ir::Graph graph, const std::vector<std::string>& without = {});
// All passes in order but those named; the result is verified.
ir::Graph simplify(ir::Graph graph, const std::vector<std::string>& without = {});

}  // namespace tensorgrad::passes
