// Dependencies: which groups a group needs, while groups are made and merged. The class keeps the
// direct edges and a topological order of the groups (Pearce and Kelly's algorithm), so that a
// question about two groups looks only at the groups between them in that order.
#pragma once

#include <utility>
#include <vector>

#include "support/integers.h"

namespace tensorgrad::schedule {

class Dependencies {
 public:
  // The group needs the other one.
  using Edge = std::pair<int, int>;

  Dependencies() = default;
  // `groups` groups with these edges, which must have no cycle.
  Dependencies(int groups, const std::vector<Edge>& edges);

  // Adds a group that needs nothing and returns its number.
  int add();
  // `group` now needs `other`. Throws an InternalError if that closes a cycle.
  void link(int group, int other);
  // Merges `from` into `into`: what `from` needed, `into` needs; what needed it needs `into`. The
  // caller has checked that no path leads from one to the other through a third group.
  void merge(int into, int from);

  // Whether `group` needs `other`, directly or not. A search that visits more than kMostVisited
  // groups gives up and answers yes, so that compile time stays near linear; a group that is not
  // fused is slower, never wrong.
  bool needs(int group, int other) const;
  bool independent(int a, int b) const { return !needs(a, b) && !needs(b, a); }
  // Whether a path leads from one to the other through a third group, so that merging the two would
  // close a cycle. Gives up like needs().
  bool connected_through_others(int a, int b) const;

  // The groups that `group` needs directly, some of them perhaps several times.
  template <class F>
  void for_each_needed(int group, F f) const {
    for (const int other : needs_[usize(group)])
      if (const int now = find(other); now != group) f(now);
  }
  template <class F>
  void for_each_needing(int group, F f) const {
    for (const int other : needed_by_[usize(group)])
      if (const int now = find(other); now != group) f(now);
  }

  static constexpr int kMostVisited = 2048;

 private:
  // The group that `group` was merged into.
  int find(int group) const;
  bool path(int early, int late, bool direct_edge_counts) const;
  // Groups that lead to `late`, or that `early` leads to, between the two in the order.
  std::vector<int> needed_between(int late, int after) const;
  std::vector<int> needing_between(int early, int before) const;
  void assign_positions(std::vector<int> groups, std::vector<int> free);

  std::vector<std::vector<int>> needs_, needed_by_;  // direct edges, by the numbers of their time
  mutable std::vector<int> merged_into_;             // union-find: itself, or towards its group
  std::vector<int> position_;                        // in the topological order
  mutable std::vector<int> seen_early_, seen_late_;  // number of the search that saw the group
  mutable int search_ = 0;
};

}  // namespace tensorgrad::schedule
