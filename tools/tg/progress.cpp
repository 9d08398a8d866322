#include "progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "support/integers.h"

namespace tensorgrad::tool {

namespace {

constexpr std::int64_t kPlainLines = 15;
constexpr std::chrono::milliseconds kRefresh{100};

}  // namespace

Progress::Progress(std::FILE* out, std::int64_t steps, std::int64_t first)
    : out_(out),
      in_place_(is_terminal(out)),
      steps_(steps),
      first_(first),
      recent_(first, start_) {}

bool Progress::due(std::int64_t step) const {
  if (step == steps_) return true;
  if (in_place_) return Clock::now() >= next_;
  return step == first_ + 1 || step % std::max<std::int64_t>(1, ceil_div(steps_, kPlainLines)) == 0;
}

double Progress::rate(std::int64_t step) const {
  return static_cast<double>(step - first_) / seconds();
}

std::string Progress::time_left(std::int64_t step) const {
  return step < steps_ ? duration(static_cast<double>(steps_ - step) / rate(step)) + " left" : "";
}

void Progress::show(std::int64_t step, float loss) {
  const double now = rate(step);
  std::string line =
      fmt::format("step {:>{}}/{}   loss {:#8.3g}   {:4.{}f} steps/s", step,
                  std::to_string(steps_).size(), steps_, loss, now, now < 10 ? 2 : 0);
  if (step < steps_) line += "   " + time_left(step);
  if (accuracy_) line += fmt::format("   held-out {:.1f} %", 100 * *accuracy_);
  show_text(line);
}

void Progress::show_text(const std::string& line) {
  if (in_place_) {
    print_to(out_, "\r{:<{}}", line, shown_);
    next_ = Clock::now() + kRefresh;
    shown_ = line.size();
  } else {
    print_to(out_, "{}\n", line);
  }
}

void Progress::end_line() {
  if (shown_ > 0) print_to(out_, "\n");
  shown_ = 0;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace tensorgrad::tool
