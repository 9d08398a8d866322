#include "run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>

#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::tool {

namespace fs = std::filesystem;

RunLock::RunLock(const RunFolder& run) {
  const fs::path path = run.lock();
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) user_error("{}: cannot write: {}", path.string(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(fd_);
  user_error("{}: another process is training there", run.path().string());
}

RunLock::~RunLock() { ::close(fd_); }

RunLog::RunLog(const RunFolder& run, std::int64_t step) : path_(run.log()) {
  std::string kept;
  const bool there = file_type_at(path_) != fs::file_type::not_found;
  std::istringstream in(there ? read_file(path_) : "");
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // torn: the newline is missing
    const Json json = Json::parse(line, nullptr, false);
    const auto of = json.is_object() ? json.find("step") : json.end();
    if (!json.is_object() || of == json.end() || !of->is_number_integer() ||
        of->get<std::int64_t>() > step)
      continue;
    const Json event = json.value("event", Json());
    if (event != "done" && event != "final") kept += line + "\n";
  }
  write_file(path_, kept);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) user_error("{}: cannot write: {}", path_.string(), std::strerror(errno));
}

RunLog::~RunLog() {
  if (fd_ >= 0) ::close(fd_);
}

void RunLog::add(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ssize_t written = ::write(fd_, text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()))
    user_error("{}: cannot write: {}", path_.string(),
               written < 0 ? std::strerror(errno) : "No space left on device");
}

Checkpoint find_checkpoint(const fs::path& path, std::vector<std::string>& said) {
  constexpr CheckpointPart kPart = CheckpointPart::model;
  std::error_code ignored;  // the reader reports it
  if (!fs::is_directory(path, ignored)) return load_checkpoint(path, kPart);
  const RunFolder run(path);
  const fs::path folder = fs::is_directory(run.checkpoints(), ignored) ? run.checkpoints() : path;
  auto found = CheckpointFolder(folder).newest(kPart);
  if (!found) user_error("{}: there is no checkpoint here", path.string());
  for (const std::string& bad : found->unreadable) said.push_back(fmt::format("skipped: {}", bad));
  said.push_back(fmt::format("{}, step {}", found->path.string(), found->checkpoint.step));
  return std::move(found->checkpoint);
}

}  // namespace tensorgrad::tool
