// The passes in execution order: those of stage `recognise`, and those of stage `simplify`. All
// passes except `expand` can be left out by name. This changes the graph, but not its values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/device_model.h"
#include "ir/graph.h"

namespace tensorgrad::passes {

struct Pass {
  std::string_view name;
  std::string_view what;  // the property that the pass establishes, in a few words
  ir::Graph (*run)(ir::Graph, const ir::DeviceModel&);
  bool optional = true;  // may be left out
};

std::span<const Pass> before_gradients();
std::span<const Pass> pipeline();

// Run the passes of the stage in order, except those in `without`, and verify the result.
ir::Graph recognise(ir::Graph graph, const std::vector<std::string>& without = {});
ir::Graph simplify(ir::Graph graph, const ir::DeviceModel& model,
                   const std::vector<std::string>& without = {});

}  // namespace tensorgrad::passes
