// Learning-rate schedules: functions of the update number, counted from 1.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/fail.h"
#include "tensorgrad/optim.h"

namespace tensorgrad {

namespace {

// The fraction of `steps` that lies before update t: 0 at the first update.
double progress(std::int64_t t, std::int64_t steps) {
  return std::clamp(static_cast<double>(t - 1) / static_cast<double>(steps), 0.0, 1.0);
}

void require_positive(const char* schedule, const char* what, std::int64_t n) {
  if (n < 1) user_error("{}: {} must be at least 1: {}", schedule, what, n);
}

}  // namespace

Schedule linear(double peak, double last, std::int64_t steps) {
  require_positive("linear", "steps", steps);
  return [=](std::int64_t t) { return peak + (last - peak) * progress(t, steps); };
}

Schedule cosine(double peak, double last, std::int64_t steps) {
  require_positive("cosine", "steps", steps);
  return [=](std::int64_t t) {
    return last + (peak - last) * 0.5 * (1 + std::cos(std::numbers::pi * progress(t, steps)));
  };
}

Schedule warmup(std::int64_t steps, Schedule after) {
  require_positive("warmup", "steps", steps);
  return [steps, after = std::move(after)](std::int64_t t) {
    if (t > steps) return after.at(t - steps);
    return after.at(1) * static_cast<double>(t) / static_cast<double>(steps);
  };
}

Schedule staircase(double rate, double factor, std::int64_t every) {
  require_positive("staircase", "every", every);
  return
      [=](std::int64_t t) { return rate * std::pow(factor, static_cast<double>((t - 1) / every)); };
}

Schedule multi_step(double rate, double factor, std::vector<std::int64_t> milestones) {
  return [rate, factor, milestones = std::move(milestones)](std::int64_t t) {
    const auto passed =
        std::count_if(milestones.begin(), milestones.end(), [t](std::int64_t m) { return t > m; });
    return rate * std::pow(factor, static_cast<double>(passed));
  };
}

}  // namespace tensorgrad
