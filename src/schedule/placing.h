// The larger part of stage `plan`: assigns an address to every tensor of the fused groups.
#pragma once

#include "schedule/plan.h"

namespace tensorgrad::schedule {

Plan place(const ir::Graph& graph, Fused fused, const Layouts& layouts,
           const std::vector<std::string>& without, std::int64_t piece);

}  // namespace tensorgrad::schedule
