// Decides when a kernel may write its result over one of its operands.
#pragma once

#include "schedule/fuse.h"

namespace tensorgrad::schedule {

// Whether the group that computes `id` may write it over `old`, which has no later reader. The
// group may read `old` only at the element (or line) that it writes, and only before it writes.
// Rows: a row is read completely before any of it is written. Matmul: only the epilogue may read
// `old`.
bool may_overwrite(const ir::Graph& graph, const Fused& fused, ir::NodeId old, ir::NodeId id);

}  // namespace tensorgrad::schedule
