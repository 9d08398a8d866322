// Dependencies between groups against a transitive closure that is computed from scratch, while
// groups are added, linked and merged at random.
#include "schedule/dependencies.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "support/integers.h"
#include "tensorgrad/error.h"

namespace tensorgrad::schedule {
namespace {

// The slow, clear version: direct edges, and a search for every question.
class Closure {
 public:
  void add() { needs_.emplace_back(), alive_.push_back(true); }
  void link(int group, int other) { needs_[usize(group)].insert(other); }
  void merge(int into, int from) {
    alive_[usize(from)] = false;
    for (auto& needed : needs_)
      if (needed.erase(from)) needed.insert(into);
    needs_[usize(into)].merge(needs_[usize(from)]);
    needs_[usize(into)].erase(into);
    needs_[usize(from)].clear();
  }
  bool needs(int group, int other) const {
    for (const int direct : needs_[usize(group)])
      if (direct == other || needs(direct, other)) return true;
    return false;
  }
  bool through_others(int a, int b) const {
    for (int x = 0; x < size(); ++x)
      if (x != a && x != b && alive(x) &&
          ((needs(b, x) && needs(x, a)) || (needs(a, x) && needs(x, b))))
        return true;
    return false;
  }
  bool alive(int g) const { return alive_[usize(g)]; }
  int size() const { return static_cast<int>(needs_.size()); }

 private:
  std::vector<std::set<int>> needs_;
  std::vector<bool> alive_;
};

void expect_same(const Dependencies& got, const Closure& want) {
  for (int a = 0; a < want.size(); ++a)
    for (int b = 0; b < want.size(); ++b) {
      if (a == b || !want.alive(a) || !want.alive(b)) continue;
      ASSERT_EQ(got.needs(a, b), want.needs(a, b)) << a << " and " << b;
      ASSERT_EQ(got.connected_through_others(a, b), want.through_others(a, b)) << a << ", " << b;
    }
}

TEST(Dependencies, AgreeWithTheClosureAtRandom) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Dependencies got;
    Closure want;
    const auto any = [&] { return static_cast<int>(random() % usize(want.size())); };
    for (int i = 0; i < 14; ++i) got.add(), want.add();
    for (int round = 0; round < 60; ++round) {
      const int a = any(), b = any();
      if (a == b || !want.alive(a) || !want.alive(b)) continue;
      switch (random() % 5) {
        case 0:
          if (want.through_others(a, b)) break;
          got.merge(a, b);
          want.merge(a, b);
          break;
        case 1:
          got.add(), want.add();
          break;
        default:
          if (want.needs(b, a)) break;  // it would close a cycle
          got.link(a, b);
          want.link(a, b);
      }
      expect_same(got, want);
    }
  }
}

TEST(Dependencies, StartFromEdges) {
  const std::vector<Dependencies::Edge> edges{{0, 3}, {3, 1}, {2, 0}, {4, 4}, {2, 0}};
  const Dependencies made(5, edges);
  Closure want;
  for (int i = 0; i < 5; ++i) want.add();
  for (const auto& [group, other] : edges)
    if (group != other) want.link(group, other);
  expect_same(made, want);
  EXPECT_TRUE(made.independent(4, 2));
  EXPECT_FALSE(made.independent(1, 2));
}

TEST(Dependencies, ACycleIsAnError) {
  Dependencies made;
  for (int i = 0; i < 3; ++i) made.add();
  made.link(1, 0);
  made.link(2, 1);
  EXPECT_THROW(made.link(0, 2), InternalError);
  EXPECT_THROW(Dependencies(2, {{0, 1}, {1, 0}}), InternalError);
}

// A search that becomes too long answers yes, which only ever keeps two groups apart. Here nothing
// leads from one chain to the other.
TEST(Dependencies, LongSearchesAnswerYes) {
  Dependencies made;
  const int early = made.add();
  std::vector<int> above;
  for (int i = 0; i < Dependencies::kMostVisited; ++i) {
    above.push_back(made.add());
    made.link(above.back(), i == 0 ? early : above[usize(i - 1)]);
  }
  const int late = made.add();
  for (int i = 0, last = late; i < Dependencies::kMostVisited; ++i) {
    const int below = made.add();
    made.link(last, below);
    last = below;
  }
  EXPECT_TRUE(made.needs(late, early));
  EXPECT_TRUE(made.connected_through_others(late, early));
  EXPECT_FALSE(made.needs(early, late));  // the order alone tells
  // Linking does not give up.
  EXPECT_TRUE(made.try_to_link(early, late));
  EXPECT_TRUE(made.needs(above.back(), late));
  EXPECT_FALSE(made.try_to_link(late, above.back()));
}

}  // namespace
}  // namespace tensorgrad::schedule
