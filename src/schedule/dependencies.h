// Dependencies: which groups a group needs, while groups are created and merged. The class keeps
// the direct edges and a topological order of the groups (Pearce and Kelly's algorithm), so that a
// query about two groups visits only the groups between them in that order.
#pragma once

#include <utility>
#include <vector>

#include "support/integers.h"

namespace tensorgrad::schedule {

class Dependencies {
 public:
  // The first group needs the second one.
  using Edge = std::pair<int, int>;

  Dependencies() = default;
  // Creates `groups` groups with these edges, which must not contain a cycle.
  Dependencies(int groups, const std::vector<Edge>& edges);

  // Adds a group that needs nothing and returns its index.
  int add();
  // Records that `group` needs `other`. Throws an InternalError if that closes a cycle.
  void link(int group, int other);
  // The same, unless it would close a cycle; returns whether it was done. The answer is exact.
  bool try_to_link(int group, int other);
  // Merges `from` into `into`, with the edges in both directions. The caller must have checked that
  // no path connects the two through a third group.
  void merge(int into, int from);

  // Whether `group` needs `other`, directly or indirectly. A search that visits more than
  // kMostVisited groups gives up and returns true, so that compile time stays near linear. The
  // result is then less fusion, but still correct.
  bool needs(int group, int other) const;
  bool independent(int a, int b) const { return !needs(a, b) && !needs(b, a); }
  // Whether a path connects the two through a third group, so that merging them would close a
  // cycle. Gives up like needs().
  bool connected_through_others(int a, int b) const;

  // Visits the groups that `group` needs directly, some of them possibly several times.
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
  // Groups between the two in the order that `late` needs, or that need `early`.
  std::vector<int> needed_between(int late, int after) const;
  std::vector<int> needing_between(int early, int before) const;
  void assign_positions(std::vector<int> groups, std::vector<int> free);

  std::vector<std::vector<int>> needs_, needed_by_;  // direct edges, by group index before merging
  mutable std::vector<int> merged_into_;             // union-find: the group itself, or its parent
  std::vector<int> position_;                        // in the topological order
  mutable std::vector<int> seen_early_, seen_late_;  // the last search that saw the group
  mutable int search_ = 0;
};

}  // namespace tensorgrad::schedule
