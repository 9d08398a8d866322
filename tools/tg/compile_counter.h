// Shows the progress of compiling to people: a software GPU driver takes minutes.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "tensorgrad/progress.h"

namespace tensorgrad::tool {

// A callback for TrainingOptions::progress and the like. On a terminal it rewrites one line and
// removes it at the end; elsewhere it prints a line every few seconds.
CompileCallback count_compiled(std::FILE* out);

// The text for each report. Work that is often slow shows "0 of N" at once, because the next report
// may be a minute away. Work that is mostly quick is shown only if it takes long.
class CompileCounter {
 public:
  using Clock = std::chrono::steady_clock;
  // in_place: on a terminal.
  explicit CompileCounter(bool in_place) : in_place_(in_place) {}

  // The text to print for a report at `now`; mostly empty.
  std::string show(const CompileProgress& progress, Clock::time_point now) {
    if (progress.done == 0) next_ = now + delay(progress.work);
    if (progress.done == progress.total) return removed_line();
    if (now < next_) return "";
    next_ = now + (in_place_ ? kRefresh : kApart);
    const std::string line =
        fmt::format("{}: {} of {}", words(progress.work), progress.done, progress.total);
    if (!in_place_) return line + "\n";
    const std::string text = fmt::format("\r{:<{}}", line, shown_);
    shown_ = line.size();
    return text;
  }

 private:
  static constexpr std::chrono::milliseconds kFirst{500}, kRefresh{100}, kApart{5000};

  static std::string words(CompileWork work) {
    switch (work) {
      case CompileWork::kernels:
        return "compiling kernels";
      case CompileWork::tuning:
        return "measuring matmuls";
      case CompileWork::shaders:
        return "compiling shaders";
      case CompileWork::first_run:
        return "compiling shaders in the first run";
    }
    return "";
  }

  std::chrono::milliseconds delay(CompileWork work) const {
    const bool is_long = work == CompileWork::tuning || work == CompileWork::first_run;
    if (is_long || (in_place_ && work == CompileWork::shaders)) return {};
    return in_place_ ? kFirst : kApart;
  }

  std::string removed_line() {
    const std::string text = shown_ > 0 ? fmt::format("\r{:<{}}\r", "", shown_) : "";
    shown_ = 0;
    return text;
  }

  bool in_place_;
  std::size_t shown_ = 0;  // characters on the current line
  Clock::time_point next_;
};

}  // namespace tensorgrad::tool
