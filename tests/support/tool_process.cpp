#include "tests/support/tool_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tensorgrad {

ToolProcess::ToolProcess(const std::vector<std::string>& arguments)
    : errors_(testing::TempDir() + "tg_stderr_XXXXXX") {
  int ends[2];
  const int file = mkstemp(errors_.data());
  if (file < 0 || pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe or no file");
  // Small, so that a child whose output is not read blocks after a few lines and cannot finish
  // before the test kills it.
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  std::vector<char*> words{const_cast<char*>("tg")};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  id_ = fork();
  if (id_ == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(ends[1], 1);
    dup2(file, 2);
    close(file);
#ifdef TENSORGRAD_TG
    execv(TENSORGRAD_TG, words.data());
#endif
    _exit(127);
  }
  close(file);
  close(ends[1]);
  pipe_ = ends[0];
}

ToolProcess::~ToolProcess() {
  if (exit_code_ < 0) {
    send(SIGKILL);
    wait();
  }
  close(pipe_);
  std::remove(errors_.c_str());
}

bool ToolProcess::wait_for_lines(std::string_view part, int count) {
  std::size_t seen = lines_.size();
  while (count > 0 && read_some())
    for (; seen < lines_.size(); ++seen) count -= lines_[seen].find(part) != std::string::npos;
  return count <= 0;
}

void ToolProcess::wait_at_most(int microseconds) {
  const timespec time{microseconds / 1'000'000, microseconds % 1'000'000 * 1000L};
  pollfd end{pipe_, 0, 0};  // no events: only a hang-up wakes poll
  ppoll(&end, 1, &time, nullptr);
}

void ToolProcess::send(int signal) { kill(id_, signal); }

int ToolProcess::wait() {
  if (exit_code_ >= 0) return exit_code_;
  while (read_some()) {
  }
  int status = 0;
  waitpid(id_, &status, 0);
  return exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ToolProcess::errors() const {
  std::ifstream in(errors_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns false at the end of the output.
bool ToolProcess::read_some() {
  char block[4096];
  const ssize_t size = read(pipe_, block, sizeof block);
  if (size <= 0) return false;
  rest_.append(block, static_cast<std::size_t>(size));
  for (std::size_t end; (end = rest_.find('\n')) != rest_.npos; rest_.erase(0, end + 1))
    lines_.push_back(rest_.substr(0, end));
  return true;
}

}  // namespace tensorgrad
