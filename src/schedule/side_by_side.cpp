// Fusing, fourth part: groups that do not need each other and are alike become one kernel: products
// with one left operand, reductions of one shape, and column sums that ride with a product.
#include "schedule/fuser.h"

#include <algorithm>

#include "passes/products.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::IndexMap;
using ir::NodeId;

bool Fuser::shares_operand(const Group& a, const Group& b) const {
  for (const NodeId x : a.nodes)
    for (const Operand& p : operands_[usize(x)])
      for (const NodeId y : b.nodes)
        for (const Operand& q : operands_[usize(y)])
          if (p.base == q.base && graph_[p.base].op->core != Core::constant && count(p.base) > 1)
            return true;
  return false;
}

// Which axes are reduced must agree, for the rows of a columns kernel to be the same ones.
bool Fuser::same_lines(const Group& a, const Group& b) const {
  if (a.kind != b.kind || a.lines != b.lines || a.length != b.length || !a.reduces || !b.reduces)
    return false;
  if (a.kind == Group::Kind::rows) return a.length > kLongestRow || a.lines == 1;
  const auto order_of = [&](const Group& g) {
    for (const NodeId id : g.nodes)
      if (graph_[id].op->core == Core::reduce)
        return std::make_pair(reduce_shape(graph_, id).order,
                              graph_[graph_[id].inputs[0]].type.shape);
    return std::make_pair(std::vector<int>{}, Shape{});
  };
  return order_of(a) == order_of(b);
}

bool Fuser::same_left(const Group& a, const Group& b) const {
  if (a.kind != Group::Kind::matmul || b.kind != Group::Kind::matmul) return false;
  const NodeId x = first_product(a), y = first_product(b);
  const Operand &p = operands_[usize(x)][0], &q = operands_[usize(y)][0];
  const auto operations = [&](NodeId id) {
    return 2 * count(id) * graph_[graph_[id].inputs[0]].type.shape.back();
  };
  if (passes::better_apart(operations(x)) || passes::better_apart(operations(y))) return false;
  return p.base == q.base && p.map == q.map && !out_.inlined[usize(p.base)];
}

NodeId Fuser::first_product(const Group& g) const {
  for (const NodeId id : g.nodes)
    if (graph_[id].op->core == Core::matmul) return id;
  return -1;
}

void Fuser::merge_side_by_side() {
  const int n = static_cast<int>(out_.groups.size());
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      Group &into = group(a), &from = group(b);
      if (into.nodes.empty() || from.nodes.empty() ||
          into.nodes.size() + from.nodes.size() > kMostNodes)
        continue;
      const bool alike =
          same_left(into, from) || (same_lines(into, from) && shares_operand(into, from));
      if (!alike || !independent(a, b)) continue;
      absorb(a, b);
    }
  }
}

// The sum of a right operand over its rows (a bias gradient) is made while it is packed.
void Fuser::ride_with_products() {
  const int n = static_cast<int>(out_.groups.size());
  for (int c = 0; c < n; ++c) {
    const bool downward =
        group(c).kind == Group::Kind::columns ||
        (group(c).kind == Group::Kind::rows && group(c).reduces && group(c).lines == 1);
    if (!downward || group(c).nodes.size() != 1) continue;
    const NodeId sum = group(c).nodes[0];
    if (graph_[sum].op->core != Core::reduce || graph_[sum].op->combine != ir::Combine::add)
      continue;
    if (graph_[sum].type.dtype != DType::f32) continue;
    const ReduceShape shape = reduce_shape(graph_, sum);
    const Operand& summed = operands_[usize(sum)][0];
    if (out_.inlined[usize(summed.base)] || shape.length * shape.lines == 0) continue;
    const IndexMap wanted = summed.map.permute(shape.order).reshape({shape.length, shape.lines});
    for (int m = 0; m < n; ++m) {
      if (group(m).kind != Group::Kind::matmul || !independent(c, m)) continue;
      const NodeId product = matching_product(group(m), summed.base, wanted);
      if (product < 0) continue;
      absorb(m, c);
      out_.product[usize(sum)] = product;
      break;
    }
  }
}

NodeId Fuser::matching_product(const Group& g, NodeId base, const IndexMap& wanted) const {
  for (const NodeId id : g.nodes) {
    if (graph_[id].op->core != Core::matmul) continue;
    const Operand& right = operands_[usize(id)][1];
    const Shape& shape = right.map.shape();
    if (right.base != base || shape.count() != shape[-1] * shape[-2] || count(id) == 0) continue;
    const bool taken = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId other) {
      return graph_[other].op->core == Core::reduce && out_.product[usize(other)] == id;
    });
    if (!taken && right.map.reshape({shape[-2], shape[-1]}) == wanted) return id;
  }
  return -1;
}
}  // namespace tensorgrad::schedule
