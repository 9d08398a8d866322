// A program at a pseudo-terminal, as a person uses it: types and waits for what is shown.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tensorgrad {

class Terminal {
 public:
  // `environment`: "NAME=value", added to the caller's.
  Terminal(const std::vector<std::string>& command,
           const std::vector<std::string>& environment = {});
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys);
  // Waits until the program reads single keys, for a minute at most. libedit shows its prompt
  // before that: the terminal still edits keys that come between, and ctrl-D is lost.
  void wait_for_raw_mode();
  // What is shown until `part` has come, for a minute at most; a test failure when it does not.
  std::string wait_for(const std::string& part);
  std::string rest();
  // 128 + signal when one ended it. A program that does not end within a minute is killed.
  int exit_code();

 private:
  bool read_more();  // false: the program has ended, or a minute is over

  int fd_ = -1;
  pid_t child_ = -1;
  std::string unread_;
};

}  // namespace tensorgrad
