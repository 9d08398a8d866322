// The place in the user's source that a call came from. It replaces std::source_location, which
// clang 14 lacks. As a default argument it records the caller's line.
#pragma once

namespace tensorgrad {

struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Site{file, line};
  }
};

}  // namespace tensorgrad
