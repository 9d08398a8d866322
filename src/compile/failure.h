// Failure: why steps or runs had no effect. All that were submitted before it was reported share
// it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

//   none ──found()──> examining ──set()──> known
// A program starts with a new Failure once the known one was reported, which is to be thrown to the
// user.
struct Failure {
  enum class State : std::uint8_t { none, examining, known };
  enum class Kind : std::uint8_t { bad_id, non_finite };

  State state = State::none;
  Kind kind = Kind::bad_id;
  std::exception_ptr error;         // once it is known
  Completion<Done> known;           // the same, for those who wait
  std::function<void()> on_report;  // called when it is reported for the first time

  void found(Kind what) {
    state = State::examining;
    kind = what;
  }
  void set(std::exception_ptr why) {
    error = std::move(why);
    state = State::known;
    known.set(Done{});
  }
  void report() {
    if (const auto call = std::exchange(on_report, {})) call();
  }
};

}  // namespace tensorgrad::detail
