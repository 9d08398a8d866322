// Shows the progress of training to people: one updated line on a terminal, about 15 lines
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "recent_rate.h"

namespace tensorgrad::tool {

class Progress {
 public:
  // The `first` steps were made earlier and took no time here.
  Progress(std::FILE* out, std::int64_t steps, std::int64_t first = 0);
  ~Progress() { end_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether to show this step (counted from 1). Its loss is read only for that.
  bool due(std::int64_t step) const;
  void show(std::int64_t step, float loss);
  // Replaces the line by other text.
  void show_text(const std::string& line);
  // Steps per second since the last call, excluding pauses.
  double recent_rate(std::int64_t step) { return recent_.at(step, Clock::now()); }
  // While one exists, time does not count for recent_rate().
  class Pause {
   public:
    explicit Pause(Progress& of) : of_(of) {}
    ~Pause() { of_.recent_.leave_out(Clock::now() - start_); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Progress& of_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  // Steps per second so far, and the time left: "20 s left", empty at the end.
  double rate(std::int64_t step) const;
  std::string time_left(std::int64_t step) const;
  // Sets the fraction of right answers, shown from now on.
  void set_accuracy(double share) { accuracy_ = share; }
  // Ends the current line on the terminal.
  void end_line();

  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* out_;
  bool in_place_;
  std::int64_t steps_, first_;
  std::optional<double> accuracy_;
  std::size_t shown_ = 0;  // characters on the current line
  Clock::time_point start_ = Clock::now(), next_ = start_;
  RecentRate recent_;
};

// "45 s", "3 min 20 s"
std::string duration(double seconds);

}  // namespace tensorgrad::tool
