// The tool in a process of its own, for tests that end it in the middle: they watch what it prints
// and act at a line of it, so that the speed of the machine does not matter.
//   ToolProcess run({"train", "addition", "--steps", "1000000", "--json"});
//   ASSERT_TRUE(run.wait_for_lines("\"step\"", 2));
//   run.send(SIGINT);
//   EXPECT_EQ(run.wait(), 130);
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

class ToolProcess {
 public:
  // Starts `tg` with these arguments. Standard error is kept in a file. Standard output is a pipe
  // of 4096 bytes: while nobody reads it the tool goes on for some lines only, and does not finish.
  explicit ToolProcess(const std::vector<std::string>& arguments);
  ~ToolProcess();  // kills it if it still runs
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  // Blocks until it has printed this many lines on standard output, from now on, that contain
  // `part`; false if it ended before.
  bool wait_for_lines(std::string_view part, int count);
  // Blocks for this long, or until it closes its standard output.
  void wait_at_most(int microseconds);
  void send(int signal);
  // Blocks until it has ended. Its exit code, or 128 and the number of the signal that ended it.
  int wait();

  // All that it printed on standard output until now, whole lines, and its standard error.
  const std::vector<std::string>& lines() const { return lines_; }
  std::string errors() const;

 private:
  bool read_some();

  pid_t id_ = 0;
  int pipe_ = -1;
  int exit_code_ = -1;
  std::string errors_, rest_;
  std::vector<std::string> lines_;
};

}  // namespace tensorgrad
