// Files: reading, whole or in parts, and atomic writing. After a crash or a power failure, a reader
// sees the old file or the new one, never a mixture. Errors are UserErrors that read "PATH: cannot
// read: REASON" or "PATH: cannot write: REASON", with the system's reason. Only regular files are
// read or written: a FIFO would block, and a device may never end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "tensorgrad/error.h"

namespace tensorgrad {

// The system refused to read a file. Says nothing about the contents of the file.
class ReadError : public UserError {
 public:
  using UserError::UserError;
};

// Throws a ReadError for a file that does not fit into memory.
[[noreturn]] void too_large_for_memory(const std::filesystem::path& path);

// The type of the file at a path; file_type::not_found if there is none. Throws a ReadError if the
// system cannot tell, for example for a loop of symbolic links.
std::filesystem::file_type file_type_at(const std::filesystem::path& path);

// A regular file, open for reading at any offset.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Size in bytes when the file was opened. Some system files (/proc) report 0 and hold more.
  std::uint64_t size() const { return size_; }
  // Fills `to` from offset `at`, up to the end of the file; returns the number of bytes read.
  std::size_t read_some(std::uint64_t at, std::span<char> to) const;
  // Fills all of `to`. Throws if the file has become shorter.
  void read(std::uint64_t at, std::span<char> to) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Reads the whole file. Throws a UserError if it is longer than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max());

// A file that is being written. The bytes go to a hidden, locked file in the same folder. commit()
// syncs it to disk and renames it; without commit(), the destructor removes it.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  void open();
  void close();
  [[noreturn]] void give_up(int error);

  std::filesystem::path path_, unfinished_;
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);

// Removes the unfinished files of killed writers from a folder. Keeps files whose writer is alive
// and holds the lock. Ignores files that cannot be removed.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace tensorgrad
