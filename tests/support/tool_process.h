// The tool in a child process, for tests that stop it in the middle. They wait for a line of its
// output before they act, so that the speed of the machine does not matter.
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
  // Starts `tg` with these arguments. Standard error goes to a file. Standard output is a pipe of
  // 4096 bytes: if it is not read, the tool blocks after a few lines and does not finish.
  explicit ToolProcess(const std::vector<std::string>& arguments);
  ~ToolProcess();  // kills the process if it still runs
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  // Blocks until the tool prints this many more lines with `part` on standard output; false if it
  // ends before.
  bool wait_for_lines(std::string_view part, int count);
  // Blocks for this long, or until the tool closes its standard output.
  void wait_at_most(int microseconds);
  void send(int signal);
  // Blocks until the tool ends. Returns its exit code, or 128 + signal.
  int wait();

  // Its complete lines on standard output so far, and its standard error.
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
