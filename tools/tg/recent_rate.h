// Steps per second of the last steps, not of all. Time that is left out does not count.
#pragma once

#include <chrono>
#include <cstdint>

namespace tensorgrad::tool {

class RecentRate {
 public:
  using Clock = std::chrono::steady_clock;
  RecentRate(std::int64_t step, Clock::time_point now) : step_(step), since_(now) {}

  // Since the last call, or the start.
  double at(std::int64_t step, Clock::time_point now) {
    const double took = std::chrono::duration<double>(now - since_).count();
    const double rate = static_cast<double>(step - step_) / took;
    since_ = now, step_ = step;
    return rate;
  }
  void leave_out(Clock::duration time) { since_ += time; }

 private:
  std::int64_t step_;
  Clock::time_point since_;
};

}  // namespace tensorgrad::tool
