#include "schedule/dependencies.h"

#include <algorithm>

#include "support/fail.h"

namespace tensorgrad::schedule {

Dependencies::Dependencies(int groups, const std::vector<Edge>& edges) {
  for (int g = 0; g < groups; ++g) add();
  std::vector<int> unfinished(usize(groups), 0);
  for (const auto& [group, other] : edges) {
    if (group == other) continue;
    needs_[usize(group)].push_back(other);
    needed_by_[usize(other)].push_back(group);
    ++unfinished[usize(group)];
  }
  std::vector<int> ready;
  for (int g = groups; g-- > 0;)
    if (unfinished[usize(g)] == 0) ready.push_back(g);
  int next = 0;
  while (!ready.empty()) {
    const int g = ready.back();
    ready.pop_back();
    position_[usize(g)] = next++;
    for (const int other : needed_by_[usize(g)])
      if (--unfinished[usize(other)] == 0) ready.push_back(other);
  }
  if (next != groups) internal_error("groups depend on each other");
}

int Dependencies::add() {
  const int group = static_cast<int>(needs_.size());
  needs_.emplace_back();
  needed_by_.emplace_back();
  merged_into_.push_back(group);
  position_.push_back(group);
  seen_early_.push_back(0);
  seen_late_.push_back(0);
  return group;
}

int Dependencies::find(int group) const {
  while (merged_into_[usize(group)] != group) {
    int& next = merged_into_[usize(group)];
    next = merged_into_[usize(next)];
    group = next;
  }
  return group;
}

void Dependencies::link(int group, int other) {
  if (!try_to_link(group, other)) internal_error("groups depend on each other");
}

bool Dependencies::try_to_link(int group, int other) {
  if (group == other) return true;
  const int low = position_[usize(group)], high = position_[usize(other)];
  if (low < high) {
    const std::vector<int> behind = needing_between(group, high);
    if (std::find(behind.begin(), behind.end(), other) != behind.end()) return false;
    std::vector<int> moved = needed_between(other, low);
    moved.push_back(other);
    moved.push_back(group);
    moved.insert(moved.end(), behind.begin(), behind.end());
    assign_positions(moved, {});
  }
  needs_[usize(group)].push_back(other);
  needed_by_[usize(other)].push_back(group);
  return true;
}

void Dependencies::merge(int into, int from) {
  const bool into_first = position_[usize(into)] < position_[usize(from)];
  const int early = into_first ? into : from, late = into_first ? from : into;
  const int low = position_[usize(early)], high = position_[usize(late)];
  std::vector<int> behind = needing_between(early, high);
  std::erase(behind, late);
  if (behind.empty()) {
    position_[usize(into)] = high;
  } else {
    // Between the two: first what the later one needs, then the merged group, then what needs the
    // earlier one.
    std::vector<int> moved = needed_between(late, low);
    std::erase(moved, early);
    moved.push_back(into);
    moved.insert(moved.end(), behind.begin(), behind.end());
    assign_positions(moved, {position_[usize(from)]});
  }
  merged_into_[usize(from)] = into;
  for (auto* edges : {&needs_, &needed_by_}) {
    auto &to = (*edges)[usize(into)], &old = (*edges)[usize(from)];
    if (to.size() < old.size()) std::swap(to, old);
    to.insert(to.end(), old.begin(), old.end());
    old = {};
  }
}

// Assigns the positions of the groups and those in `free`, in ascending order, to the groups in
// this order.
void Dependencies::assign_positions(std::vector<int> groups, std::vector<int> free) {
  for (const int g : groups) free.push_back(position_[usize(g)]);
  std::sort(free.begin(), free.end());
  for (std::size_t i = 0; i < groups.size(); ++i) position_[usize(groups[i])] = free[i];
}

std::vector<int> Dependencies::needed_between(int late, int after) const {
  std::vector<int> out, stack{late};
  ++search_;
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    for_each_needed(g, [&](int other) {
      if (position_[usize(other)] < after || seen_late_[usize(other)] == search_) return;
      seen_late_[usize(other)] = search_;
      out.push_back(other);
      stack.push_back(other);
    });
  }
  std::sort(out.begin(), out.end(),
            [&](int a, int b) { return position_[usize(a)] < position_[usize(b)]; });
  return out;
}

std::vector<int> Dependencies::needing_between(int early, int before) const {
  std::vector<int> out, stack{early};
  ++search_;
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    for_each_needing(g, [&](int other) {
      if (position_[usize(other)] > before || seen_early_[usize(other)] == search_) return;
      seen_early_[usize(other)] = search_;
      out.push_back(other);
      stack.push_back(other);
    });
  }
  std::sort(out.begin(), out.end(),
            [&](int a, int b) { return position_[usize(a)] < position_[usize(b)]; });
  return out;
}

bool Dependencies::needs(int group, int other) const {
  return group != other && path(other, group, true);
}

bool Dependencies::connected_through_others(int a, int b) const {
  return position_[usize(a)] < position_[usize(b)] ? path(a, b, false) : path(b, a, false);
}

// Searches from both ends at once. This finds a short path early, and ends early if one end is
// connected to few groups.
bool Dependencies::path(int early, int late, bool direct_edge_counts) const {
  const int low = position_[usize(early)], high = position_[usize(late)];
  if (low >= high) return false;
  ++search_;
  seen_early_[usize(early)] = seen_late_[usize(late)] = search_;
  std::vector<int> up{early}, down{late};
  std::size_t next_up = 0, next_down = 0;
  bool met = false;
  while (!met && next_up < up.size() && next_down < down.size()) {
    if (up.size() + down.size() > kMostVisited) return true;
    if (up.size() - next_up <= down.size() - next_down) {
      const int g = up[next_up++];
      for_each_needing(g, [&](int other) {
        if (other == late) {
          met = met || g != early || direct_edge_counts;
        } else if (position_[usize(other)] < high && seen_early_[usize(other)] != search_) {
          seen_early_[usize(other)] = search_;
          met = met || seen_late_[usize(other)] == search_;
          up.push_back(other);
        }
      });
    } else {
      const int g = down[next_down++];
      for_each_needed(g, [&](int other) {
        if (other == early) {
          met = met || g != late || direct_edge_counts;
        } else if (position_[usize(other)] > low && seen_late_[usize(other)] != search_) {
          seen_late_[usize(other)] = search_;
          met = met || seen_early_[usize(other)] == search_;
          down.push_back(other);
        }
      });
    }
  }
  return met;
}

}  // namespace tensorgrad::schedule
