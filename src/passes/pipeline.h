// The passes in the order they run: those of stage `recognise`, and those of stage `simplify`. All
// but `expand` can be left out by name: the graph is another then, its values are not.
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
  std::string_view what;  // becomes true, in a few words
  ir::Graph (*run)(const ir::Graph&, const ir::DeviceModel&);
  bool optional = true;  // may be left out
};

std::span<const Pass> before_gradients();
std::span<const Pass> pipeline();

// Each runs its passes in order but those in `without`, and verifies the result.
ir::Graph recognise(ir::Graph graph, const std::vector<std::string>& without = {});
ir::Graph simplify(ir::Graph graph, const ir::DeviceModel& model,
                   const std::vector<std::string>& without = {});

}  // namespace tensorgrad::passes
