#include "tests/support/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace tensorgrad {

namespace {

constexpr int kPatienceMs = 60'000;
constexpr int kPollMs = 10;

}  // namespace

Terminal::Terminal(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  fd_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd_ < 0 || grantpt(fd_) != 0 || unlockpt(fd_) != 0) {
    ADD_FAILURE() << "there is no pseudo-terminal";
    return;
  }
  const std::string name = ptsname(fd_);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  child_ = fork();
  if (child_ != 0) return;
  setsid();
  const int terminal = open(name.c_str(), O_RDWR);  // its controlling terminal
  for (int stream = 0; stream <= 2; ++stream) dup2(terminal, stream);
  if (terminal > 2) close(terminal);
  for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  execv(words[0], words.data());
  _exit(127);
}

Terminal::~Terminal() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  if (fd_ >= 0) close(fd_);
}

void Terminal::type(const std::string& keys) {
  EXPECT_EQ(write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void Terminal::wait_for_raw_mode() {
  termios mode{};
  for (int ms = 0; ms < kPatienceMs; ms += kPollMs) {
    if (tcgetattr(fd_, &mode) == 0 && !(mode.c_lflag & ICANON)) return;
    usleep(kPollMs * 1000);
  }
  ADD_FAILURE() << "the program does not read single keys";
}

bool Terminal::read_more() {
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, kPatienceMs) <= 0) return false;
  char block[4096];
  const ssize_t size = read(fd_, block, sizeof block);  // EIO when the other side is closed
  if (size <= 0) return false;
  unread_.append(block, static_cast<std::size_t>(size));
  return true;
}

std::string Terminal::wait_for(const std::string& part) {
  std::size_t at = 0;
  while ((at = unread_.find(part)) == std::string::npos) {
    if (read_more()) continue;
    ADD_FAILURE() << "'" << part << "' was not shown, but: " << unread_;
    return std::exchange(unread_, "");
  }
  const std::string shown = unread_.substr(0, at + part.size());
  unread_.erase(0, shown.size());
  return shown;
}

std::string Terminal::rest() {
  while (read_more()) {
  }
  return std::exchange(unread_, "");
}

int Terminal::exit_code() {
  if (child_ <= 0) return -1;
  int status = 0;
  pid_t ended = 0;
  for (int ms = 0; ms < kPatienceMs; ms += kPollMs) {
    if ((ended = waitpid(child_, &status, WNOHANG)) != 0) break;
    usleep(kPollMs * 1000);
  }
  if (ended == 0) {
    kill(child_, SIGKILL);
    ended = waitpid(child_, &status, 0);
  }
  child_ = -1;
  if (ended < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tensorgrad
