// Fusing, first part: a consumer joins the group of a producer.
#include "schedule/fuser.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::NodeId;

void Fuser::place(NodeId id) {
  // Matmuls first, then reductions, then the latest group.
  const auto rank = [&](int g) {
    return group(g).kind == Group::Kind::matmul ? 2 : group(g).reduces ? 1 : 0;
  };
  int best = -1;
  if (on_.fuse) {
    for (const Operand& operand : operands_[usize(id)]) {
      const int g = out_.group[usize(operand.base)];
      if (g < 0 || g == best || !may_join(id, g)) continue;
      if (best < 0 || rank(g) > rank(best) || (rank(g) == rank(best) && g > best)) best = g;
    }
  }
  if (best < 0)
    best = start(id);
  else
    join(id, best);
  for (const Operand& operand : operands_[usize(id)])
    each_source(operand, [&](int g) {
      if (g >= 0) dependencies_.link(best, g);
    });
}

int Fuser::start(NodeId id) {
  Group made;
  made.nodes = {id};
  made.lines = 1, made.length = count(id);
  switch (graph_[id].op->core) {
    case Core::elementwise:
    case Core::gather:
    case Core::take:
    case Core::concat:
      made.kind = Group::Kind::rows;
      break;
    case Core::matmul:
      made.kind = Group::Kind::matmul;
      out_.product[usize(id)] = id;
      break;
    case Core::reduce: {
      const ReduceShape shape = reduce_shape(graph_, id);
      made.kind = shape.along_rows ? Group::Kind::rows : Group::Kind::columns;
      made.lines = shape.lines, made.length = shape.length;
      made.reduces = true;
      out_.line[usize(id)] = true;
      break;
    }
    default:
      break;
  }
  out_.groups.push_back(std::move(made));
  out_.group[usize(id)] = dependencies_.add();
  return out_.group[usize(id)];
}

void Fuser::join(NodeId id, int g) {
  Group& to = group(g);
  if (graph_[id].op->core == Core::reduce) {
    const ReduceShape shape = reduce_shape(graph_, id);
    to.lines = shape.lines, to.length = shape.length;
    to.reduces = true;
    out_.line[usize(id)] = true;
  } else if (to.kind == Group::Kind::matmul) {
    for (const Operand& operand : operands_[usize(id)])
      if (out_.group[usize(operand.base)] == g)
        out_.product[usize(id)] = out_.product[usize(operand.base)];
  } else if (to.reduces) {
    out_.line[usize(id)] = to.kind == Group::Kind::columns || count(id) == to.lines;
  }
  to.nodes.push_back(id);
  out_.group[usize(id)] = g;
}

bool Fuser::may_join(NodeId id, int g) {
  const Group& to = group(g);
  if (to.kind == Group::Kind::single || to.nodes.size() >= kMostNodes || count(id) == 0)
    return false;
  const Core core = graph_[id].op->core;
  bool fits = false;
  // Recomputing a comparison in its reader is cheaper than storing it.
  if (core == Core::elementwise && graph_[id].type.dtype == DType::boolean && count(id) > 1)
    return false;
  if (core == Core::elementwise) {
    fits = to.kind == Group::Kind::matmul ? joins_product(id, g) : joins_lines(id, g);
  } else if (core == Core::reduce && to.kind == Group::Kind::rows) {
    fits = reduction_joins(id, g);
  }
  if (!fits) return false;
  // No other operand may depend on that group.
  bool free = true;
  for (const Operand& operand : operands_[usize(id)])
    each_source(operand, [&](int other) {
      if (other >= 0 && other != g && dependencies_.needs(other, g)) free = false;
    });
  for (const Operand& operand : operands_[usize(id)]) free = free && !reads_joined_part(operand, g);
  return free;
}

bool Fuser::joins_product(NodeId id, int g) {
  NodeId product = -1;
  for (const Operand& operand : operands_[usize(id)]) {
    if (out_.group[usize(operand.base)] != g) continue;
    if (!alias(operand, count(id))) return false;
    if (product >= 0 && product != out_.product[usize(operand.base)]) return false;
    product = out_.product[usize(operand.base)];
  }
  return product >= 0;
}

bool Fuser::joins_lines(NodeId id, int g) {
  const Group& to = group(g);
  const bool columns = to.kind == Group::Kind::columns;
  const bool as_line = to.reduces && count(id) == to.lines && (columns || to.length > 1);
  const bool as_element = !columns && count(id) == to.lines * to.length;
  if (!as_line && !as_element) return false;
  // Long rows are read once: no value per element may depend on the reduction.
  if (!as_line && to.reduces && to.length > kLongestRow) return false;
  for (const Operand& operand : operands_[usize(id)]) {
    if (out_.group[usize(operand.base)] != g) continue;
    const bool from_line = out_.line[usize(operand.base)];
    if (as_line && !from_line) return false;
    if (!as_line && from_line) {
      if (!spreads_lines(operand.map, to.lines, to.length)) return false;
    } else if (!alias(operand, count(id))) {
      return false;
    }
  }
  return true;
}

bool Fuser::reduction_joins(NodeId id, int g) {
  const Group& to = group(g);
  const ReduceShape shape = reduce_shape(graph_, id);
  const Operand& operand = operands_[usize(id)][0];
  if (!shape.along_rows || shape.length < 2 || shape.length > kLongestRow) return false;
  if (to.reduces && (to.lines != shape.lines || to.length != shape.length)) return false;
  return shape.lines * shape.length == to.lines * to.length && !out_.line[usize(operand.base)] &&
         alias(operand, to.lines * to.length);
}
}  // namespace tensorgrad::schedule
