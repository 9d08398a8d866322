// Schedules by their formulas, at the first updates, in the middle, at the end and beyond.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "tensorgrad/optim.h"

namespace tensorgrad::optim_tests {
namespace {

struct Point {
  std::int64_t update;
  double rate;
};

void expect_points(const char* name, const Schedule& schedule, const std::vector<Point>& points) {
  SCOPED_TRACE(name);
  for (const Point& point : points)
    EXPECT_NEAR(schedule.at(point.update), point.rate, 1e-15) << "update " << point.update;
}

double cosine_at(double peak, double last, double part) {
  return last + (peak - last) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

TEST(Schedules, ByFormula) {
  expect_points("constant", 0.1, {{1, 0.1}, {2, 0.1}, {1000000, 0.1}});
  expect_points("integer", 2, {{1, 2}, {7, 2}});
  expect_points("linear", linear(1, 0.2, 8),
                {{1, 1}, {2, 0.9}, {5, 0.6}, {8, 0.3}, {9, 0.2}, {10, 0.2}, {1000, 0.2}});
  expect_points("linear, rising", linear(0, 1, 4), {{1, 0}, {2, 0.25}, {3, 0.5}, {5, 1}, {6, 1}});
  expect_points("linear in one step", linear(1, 0, 1), {{1, 1}, {2, 0}, {3, 0}});
  expect_points("cosine", cosine(1, 0.2, 8),
                {{1, 1},
                 {2, cosine_at(1, 0.2, 0.125)},
                 {5, 0.6},
                 {8, cosine_at(1, 0.2, 0.875)},
                 {9, 0.2},
                 {100, 0.2}});
  expect_points("warmup", warmup(4, 0.8), {{1, 0.2}, {2, 0.4}, {4, 0.8}, {5, 0.8}, {100, 0.8}});
  expect_points("warmup of one", warmup(1, 0.8), {{1, 0.8}, {2, 0.8}});
  expect_points("warmup, then linear", warmup(2, linear(1, 0, 4)),
                {{1, 0.5}, {2, 1}, {3, 1}, {4, 0.75}, {5, 0.5}, {6, 0.25}, {7, 0}, {8, 0}});
  expect_points("warmup, then cosine", warmup(3, cosine(0.3, 0, 10)),
                {{1, 0.1}, {3, 0.3}, {4, 0.3}, {9, 0.15}, {14, 0}, {15, 0}});
  expect_points("warmup of a warmup", warmup(2, warmup(2, 1)),
                {{1, 0.25}, {2, 0.5}, {3, 0.5}, {4, 1}, {5, 1}});
  expect_points("staircase", staircase(1, 0.5, 3),
                {{1, 1}, {2, 1}, {3, 1}, {4, 0.5}, {6, 0.5}, {7, 0.25}, {10, 0.125}});
  expect_points("staircase at every update", staircase(1, 0.1, 1), {{1, 1}, {2, 0.1}, {3, 0.01}});
  expect_points("multi_step", multi_step(1, 0.1, {2, 5}),
                {{1, 1}, {2, 1}, {3, 0.1}, {5, 0.1}, {6, 0.01}, {1000, 0.01}});
  expect_points("multi_step, unsorted", multi_step(1, 0.1, {5, 2}), {{2, 1}, {3, 0.1}, {6, 0.01}});
  expect_points("multi_step without milestones", multi_step(0.3, 0.1, {}), {{1, 0.3}, {1000, 0.3}});
  expect_points("function", [](std::int64_t t) { return 1.0 / static_cast<double>(t * t); },
                {{1, 1}, {2, 0.25}, {10, 0.01}});
}

TEST(Schedules, StartAtThePeak) {
  for (const Schedule& schedule :
       std::vector<Schedule>{0.7, linear(0.7, 0, 10), cosine(0.7, 0, 10), staircase(0.7, 0.1, 2),
                             multi_step(0.7, 0.1, {1})})
    EXPECT_EQ(schedule.at(1), 0.7);
}

TEST(Schedules, CosineFallsAllTheWay) {
  const Schedule schedule = cosine(1, 0, 50);
  for (std::int64_t t = 1; t <= 50; ++t) EXPECT_GT(schedule.at(t), schedule.at(t + 1)) << t;
  EXPECT_EQ(schedule.at(51), 0);
}

}  // namespace
}  // namespace tensorgrad::optim_tests
