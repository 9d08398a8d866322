// Fusing, third part: merges groups of rows if values pass between them element by element or from
// a line to its row.
#include "schedule/fuser.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::NodeId;

bool Fuser::merged_shape(const Group& a, const Group& b, Merged& out) const {
  const std::int64_t count_a = a.lines * a.length, count_b = b.lines * b.length;
  const Group& shaped = a.reduces ? a : b;
  out.lines = shaped.lines, out.length = shaped.length, out.reduces = a.reduces || b.reduces;
  if (!out.reduces) return count_a == count_b;
  if (out.length < 2 && (!a.reduces || !b.reduces)) return false;
  if (a.reduces && b.reduces)
    return a.lines == b.lines && a.length == b.length && out.length <= kLongestRow;
  const std::int64_t flat = a.reduces ? count_b : count_a;
  const bool as_lines = flat == out.lines;
  if (!as_lines && (flat != out.lines * out.length || out.length > kLongestRow)) return false;
  (a.reduces ? out.b_lines : out.a_lines) = as_lines;
  return true;
}

bool Fuser::plain_rows(const Group& g) const {
  return g.kind == Group::Kind::rows && !g.nodes.empty() &&
         std::all_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
           return graph_[id].op->core == Core::elementwise || graph_[id].op->core == Core::reduce;
         });
}

// Whether all values pass between the two groups element by element, or from a line to its row.
bool Fuser::edges_fit(int a, int b, const Merged& m) const {
  for (const auto& [from, to, from_lines, to_lines] :
       {std::tuple(a, b, m.a_lines, m.b_lines), std::tuple(b, a, m.b_lines, m.a_lines)}) {
    for (const NodeId id : out_.groups[usize(to)].nodes) {
      for (const Operand& operand : operands_[usize(id)]) {
        if (reads_joined_part(operand, from)) return false;
        if (out_.group[usize(operand.base)] != from || out_.inlined[usize(operand.base)]) continue;
        const NodeId reader = final_reader(id);
        if (reader < 0) return false;
        const bool reduces = graph_[reader].op->core == Core::reduce;
        const bool line_from = out_.line[usize(operand.base)] || from_lines;
        const bool line_to = !(reduces && reader != id) && (out_.line[usize(reader)] || to_lines);
        if (line_from == line_to || (reduces && reader == id && !line_from)) {
          if (!alias(operand, line_from ? m.lines : m.lines * m.length)) return false;
        } else if (!line_from || (reduces && reader == id) ||
                   !spreads_lines(operand.map, m.lines, m.length)) {
          return false;
        } else if (m.length >
                   kLongestRow) {  // read once: values per line are known only after its elements
          return false;
        }
      }
    }
  }
  return true;
}

// The member that an inlined node is computed for, if all views in between are aliases; -1
// otherwise.
NodeId Fuser::final_reader(NodeId id) const {
  while (out_.inlined[usize(id)]) {
    const std::vector<Use> uses = uses_outside(id, -1);
    if (uses.empty()) return -1;
    const auto& [reader, operand] = uses[0];
    if (!alias(operands_[usize(reader)][operand], count(id))) return -1;
    id = reader;
  }
  return id;
}

bool Fuser::reads(int b, int a) const {
  for (const NodeId id : out_.groups[usize(b)].nodes)
    for (const Operand& operand : operands_[usize(id)])
      if (out_.group[usize(operand.base)] == a) return true;
  return false;
}

// A group of one value, or a reduction to one value. Two of these may merge even if neither reads
// the other.
bool Fuser::is_single_value(const Group& g) const {
  return g.lines == 1 && (g.reduces || g.length == 1) && plain_rows(g);
}

bool Fuser::try_to_merge(int a, int b) {
  if (!plain_rows(group(b)) || group(a).nodes.size() + group(b).nodes.size() > kMostNodes)
    return false;
  Merged m;
  if (!merged_shape(group(a), group(b), m)) return false;
  const bool single =
      m.lines == 1 &&
      (m.length == 1 || ((group(a).reduces || m.a_lines) && (group(b).reduces || m.b_lines)));
  const bool side_by_side = single && !(group(a).reduces && group(b).reduces);
  if (!reads(b, a) && !reads(a, b) && !side_by_side) return false;
  if (!edges_fit(a, b, m) || dependencies_.connected_through_others(a, b)) return false;
  for (const NodeId id : group(a).nodes) out_.line[usize(id)] = out_.line[usize(id)] || m.a_lines;
  for (const NodeId id : group(b).nodes) out_.line[usize(id)] = out_.line[usize(id)] || m.b_lines;
  absorb(a, b);
  group(a).lines = m.lines, group(a).length = m.length, group(a).reduces = m.reduces;
  return true;
}

// The next group with an index above `after` that `a` may merge with: a neighbour or a single
// value. Two reductions to single values merge only as neighbours.
int Fuser::next_to_merge(int a, int after, const std::set<int>& neighbours,
                         const SingleValues& singles) const {
  int best = -1;
  const auto consider = [&](const std::set<int>& groups) {
    const auto next = groups.upper_bound(after);
    if (next != groups.end() && (best < 0 || *next < best)) best = *next;
  };
  consider(neighbours);
  if (is_single_value(out_.groups[usize(a)])) {
    consider(singles.plain);
    if (!out_.groups[usize(a)].reduces) consider(singles.reductions);
  }
  return best;
}

// Tries every group with the groups of higher indices, in order, until nothing changes.
void Fuser::merge_rows() {
  const int n = static_cast<int>(out_.groups.size());
  for (bool again = true; again;) {
    again = false;
    SingleValues singles;
    for (int g = 0; g < n; ++g)
      if (is_single_value(group(g)))
        (group(g).reduces ? singles.reductions : singles.plain).insert(g);
    for (int a = 0; a < n; ++a) {
      if (!plain_rows(group(a))) continue;
      std::set<int> neighbours;
      const auto add_neighbours = [&](int of) {
        dependencies_.for_each_needed(of, [&](int g) { neighbours.insert(g); });
        dependencies_.for_each_needing(of, [&](int g) { neighbours.insert(g); });
      };
      add_neighbours(a);
      for (int b = a; (b = next_to_merge(a, b, neighbours, singles)) >= 0;) {
        if (group(a).nodes.size() >= kMostNodes) break;
        if (!try_to_merge(a, b)) continue;
        again = true;
        singles.plain.erase(b), singles.reductions.erase(b);
        add_neighbours(a);
      }
    }
  }
}

}  // namespace tensorgrad::schedule
