// A run of `tg train text` is a folder: config.json, tokenizer.json, log.jsonl, checkpoints/,
// plot.html, and the tokens of the text. Only one process at a time trains in it.
#pragma once

#include <filesystem>
#include <string>

#include "command.h"
#include "support/file.h"
#include "tensorgrad/checkpoint.h"

namespace tensorgrad::tool {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.json"; }
  std::filesystem::path tokenizer() const { return path_ / "tokenizer.json"; }
  std::filesystem::path tokens() const { return path_ / "tokens.bin"; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path plot() const { return path_ / "plot.html"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path lock() const { return path_ / ".lock"; }

  // Whether a run began here. Throws a ReadError if the system cannot tell.
  bool holds_run() const { return file_type_at(config()) != std::filesystem::file_type::not_found; }

 private:
  std::filesystem::path path_;
};

// Locks the folder; throws a UserError if another process holds the lock. The system releases it
// when the process ends, for any reason.
class RunLock {
 public:
  explicit RunLock(const RunFolder& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

// The log: JSON lines, each flushed at once.
class RunLog {
 public:
  // Keeps the lines up to `step` and drops later ones, whose steps will be repeated.
  RunLog(const RunFolder& run, std::int64_t step);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void add(const Json& line);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Loads a checkpoint from its file, or the newest readable one of a run's folder, without the
// optimizer's arrays. Appends notes about the choice to `said`.
Checkpoint find_checkpoint(const std::filesystem::path& path, std::vector<std::string>& said);

}  // namespace tensorgrad::tool
