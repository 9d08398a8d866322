// The middle of the pipeline for a graph without a model: expand, materialise, fuse, plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/expand.h"
#include "passes/materialise.h"
#include "schedule/fuse.h"
#include "schedule/plan.h"

namespace tensorgrad::eval {

inline schedule::Plan planned(const ir::Graph& graph, const schedule::Layouts& layouts,
                              const std::vector<std::string>& without = {},
                              std::int64_t piece = schedule::kOnePiece,
                              const ir::DeviceModel& model = ir::cpu_model()) {
  const ir::Graph ready = passes::materialise(passes::expand(graph));
  return schedule::plan(ready, schedule::fuse(ready, model, without), layouts, model, without,
                        piece);
}

}  // namespace tensorgrad::eval
