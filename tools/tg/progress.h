// How far a training run is, for people: one line kept up to date on a terminal, about 15 lines
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace tensorgrad::tool {

class Progress {
 public:
  // `first` steps were made earlier, and took no time here.
  Progress(std::FILE* out, std::int64_t steps, std::int64_t first = 0);
  ~Progress() { end_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time to show this step (counted from 1): its loss is read for that alone.
  bool due(std::int64_t step) const;
  void show(std::int64_t step, float loss);
  // A line of other words in its place.
  void show_text(const std::string& line);
  // Steps per second so far, and how long the rest takes: "20 s left", empty at the end.
  double rate(std::int64_t step) const;
  std::string time_left(std::int64_t step) const;
  // The share of right answers, shown from now on.
  void set_accuracy(double share) { accuracy_ = share; }
  // The line on the terminal is done with.
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
};

// "45 s", "3 min 20 s"
std::string duration(double seconds);

}  // namespace tensorgrad::tool
