// A program at a pseudo-terminal: types keys and waits for output, as a person does.
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
  // Waits until the program reads single keys, for at most a minute. libedit shows its prompt
  // before that; keys in between go to the terminal's own line editing, and ctrl-D is lost.
  void wait_for_raw_mode();
  // The output until `part` appears, for at most a minute; otherwise the test fails.
  std::string wait_for(const std::string& part);
  std::string rest();
  // Returns the exit code, or 128 + signal. Kills a program that does not end within a minute.
  int exit_code();

 private:
  bool read_more();  // false: the program has ended, or a minute is over

  int fd_ = -1;
  pid_t child_ = -1;
  std::string unread_;
};

}  // namespace tensorgrad
