// Fusing, fourth part: merges similar, independent groups into one kernel: matmuls with the same
// left operand, reductions of the same shape, and column sums that a matmul computes on the side.
#include "schedule/fuser.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::IndexMap;
using ir::NodeId;

// The tensors that a group reads, except constants and single values.
std::vector<NodeId> Fuser::shared_bases(const Group& g) const {
  std::vector<NodeId> out;
  for (const NodeId id : g.nodes)
    for (const Operand& operand : operands_[usize(id)])
      if (graph_[operand.base].op->core != Core::constant && count(operand.base) > 1)
        out.push_back(operand.base);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Fuser::shares_operand(const Group& a, const Group& b) const {
  const std::vector<NodeId> of_a = shared_bases(a), of_b = shared_bases(b);
  return std::any_of(of_a.begin(), of_a.end(), [&](NodeId base) {
    return std::binary_search(of_b.begin(), of_b.end(), base);
  });
}

// Reductions down columns, of long rows, and to one value.
bool Fuser::may_be_beside(const Group& g) const {
  return g.reduces && (g.kind == Group::Kind::columns || g.length > kLongestRow || g.lines == 1);
}

// The reduced axes must be the same, so that the rows of a columns kernel are the same.
bool Fuser::same_lines(const Group& a, const Group& b) const {
  if (a.kind != b.kind || a.lines != b.lines || a.length != b.length) return false;
  if (!may_be_beside(a) || !may_be_beside(b)) return false;
  if (a.kind == Group::Kind::rows) return true;
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
  if (model_.apart.contains(operations(x)) || model_.apart.contains(operations(y))) return false;
  return p.base == q.base && p.map == q.map && !out_.inlined[usize(p.base)];
}

NodeId Fuser::first_product(const Group& g) const {
  for (const NodeId id : g.nodes)
    if (graph_[id].op->core == Core::matmul) return id;
  return -1;
}

void Fuser::merge_side_by_side() {
  // Candidates read the same tensor: matmuls as their left operand, reductions as any operand.
  std::unordered_map<NodeId, std::vector<int>> by_left, by_operand;
  const auto each_base = [&](const Group& g, auto f) {
    if (g.kind == Group::Kind::matmul)
      f(by_left[operands_[usize(first_product(g))][0].base]);
    else if (may_be_beside(g))
      for (const NodeId base : shared_bases(g)) f(by_operand[base]);
  };
  const int n = static_cast<int>(out_.groups.size());
  for (int g = 0; g < n; ++g)
    if (!group(g).nodes.empty())
      each_base(group(g), [&](std::vector<int>& groups) { groups.push_back(g); });
  for (int a = 0; a < n; ++a) {
    if (group(a).nodes.empty()) continue;
    std::set<int> others;
    const auto add_others = [&](std::vector<int>& groups) {
      others.insert(std::upper_bound(groups.begin(), groups.end(), a), groups.end());
    };
    each_base(group(a), add_others);
    for (auto it = others.begin(); it != others.end();) {
      const int b = *it;
      Group &into = group(a), &from = group(b);
      const bool fits = !from.nodes.empty() && into.nodes.size() + from.nodes.size() <= kMostNodes;
      if (fits &&
          (same_left(into, from) || (same_lines(into, from) && shares_operand(into, from))) &&
          dependencies_.independent(a, b)) {
        absorb(a, b);
        each_base(group(a), add_others);
      }
      it = others.upper_bound(b);
    }
  }
}

// Whether the group is one sum down the columns of a matrix.
bool Fuser::is_column_sum(const Group& g) const {
  const bool downward =
      g.kind == Group::Kind::columns || (g.kind == Group::Kind::rows && g.reduces && g.lines == 1);
  if (!downward || g.nodes.size() != 1) return false;
  const ir::Node& sum = graph_[g.nodes[0]];
  return sum.op->core == Core::reduce && sum.op->combine == ir::Combine::add &&
         sum.type.dtype == DType::f32;
}

// The matmul computes the sum of its right operand over rows (a bias gradient) while packing it.
void Fuser::ride_with_products() {
  const int n = static_cast<int>(out_.groups.size());
  std::unordered_map<NodeId, std::vector<int>> by_right;  // matmul groups, in order
  for (int m = 0; m < n; ++m)
    for (const NodeId id : group(m).nodes)
      if (graph_[id].op->core == Core::matmul) {
        auto& groups = by_right[operands_[usize(id)][1].base];
        if (groups.empty() || groups.back() != m) groups.push_back(m);
      }
  for (int c = 0; c < n; ++c) {
    if (!is_column_sum(group(c))) continue;
    const NodeId sum = group(c).nodes[0];
    const ReduceShape shape = reduce_shape(graph_, sum);
    const Operand& summed = operands_[usize(sum)][0];
    if (out_.inlined[usize(summed.base)] || shape.length * shape.lines == 0) continue;
    const auto readers = by_right.find(summed.base);
    if (readers == by_right.end()) continue;
    const IndexMap wanted = summed.map.permute(shape.order).reshape({shape.length, shape.lines});
    for (const int m : readers->second) {
      const NodeId product = matching_product(group(m), summed.base, wanted);
      if (product < 0 || !dependencies_.independent(c, m)) continue;
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
