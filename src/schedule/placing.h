// Stage `plan`, its larger part: gives every tensor of fused groups its place in memory.
#pragma once

#include "schedule/plan.h"

namespace tensorgrad::schedule {

Plan place(const ir::Graph& graph, Fused fused, const Layouts& layouts,
           const std::vector<std::string>& without, std::int64_t piece);

}  // namespace tensorgrad::schedule
