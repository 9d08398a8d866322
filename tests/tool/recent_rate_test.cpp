#include "tools/tg/recent_rate.h"

#include <gtest/gtest.h>

namespace tensorgrad::tool {
namespace {

using std::chrono::seconds;

RecentRate::Clock::time_point at(int second) {
  return RecentRate::Clock::time_point(seconds(second));
}

TEST(RecentRate, IsThatOfTheLastStepsWithoutPauses) {
  RecentRate rate(100, at(0));  // a resumed run
  EXPECT_DOUBLE_EQ(rate.at(200, at(50)), 2);
  EXPECT_DOUBLE_EQ(rate.at(300, at(60)), 10);
  rate.leave_out(seconds(15));  // a validation
  EXPECT_DOUBLE_EQ(rate.at(400, at(80)), 20);
  EXPECT_DOUBLE_EQ(rate.at(500, at(90)), 10);
}

}  // namespace
}  // namespace tensorgrad::tool
