// When a kernel may write its result where one of its operands lies.
#pragma once

#include "schedule/fuse.h"

namespace tensorgrad::schedule {

// Whether the group that makes `id` may write it over `old`, which nobody reads afterwards: the
// group reads `old`, if at all, only at the very element (or line) that it writes, and before it
// writes. Rows: a row is read as a whole before any of it is written. Matmul: only work on the
// product reads it.
bool may_overwrite(const ir::Graph& graph, const Fused& fused, ir::NodeId old, ir::NodeId id);

}  // namespace tensorgrad::schedule
