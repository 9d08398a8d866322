// The minimum cost of a step: arithmetic, and each element of memory read or written once.
#pragma once

#include "schedule/plan.h"

namespace tensorgrad::schedule {

struct Cost {
  std::int64_t operations = 0, bytes_read = 0, bytes_written = 0;
};

// The step must belong to the plan, and the plan must have placed every tensor.
Cost cost_of(const Plan& plan, const Step& step);

}  // namespace tensorgrad::schedule
