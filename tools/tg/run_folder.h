// A run of `tg train text` is a folder: config.json, tokenizer.json, log.jsonl, checkpoints/,
// plot.html, and the text's tokens. One process at a time trains in it.
#pragma once

#include <filesystem>
#include <string>

#include "command.h"
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

  // Whether a run began here.
  bool holds_run() const { return std::filesystem::exists(config()); }

 private:
  std::filesystem::path path_;
};

// Held as long as it lives; a UserError when another process holds it. It goes when its process
// does, however that ends.
class RunLock {
 public:
  explicit RunLock(const RunFolder& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

// The log: JSON lines, each written at once.
class RunLog {
 public:
  // Keeps what was logged up to `step`; what came later will come again.
  RunLog(const RunFolder& run, std::int64_t step);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void add(const Json& line);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// A checkpoint by what people say: its file, or a run, whose newest readable one it is. `said` gets
// what is to be told about that.
Checkpoint find_checkpoint(const std::filesystem::path& path, std::vector<std::string>& said);

}  // namespace tensorgrad::tool
