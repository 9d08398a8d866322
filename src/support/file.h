// Files as a whole: read at once, and written so that a reader, or a machine that loses its power,
// sees the old file or the new one and nothing between. Errors are UserErrors that read "PATH:
// cannot read: REASON" or "PATH: cannot write: REASON", with the system's reason.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tensorgrad {

std::string read_file(const std::filesystem::path& path);

// A file in the making. What is written lies beside its place under a hidden name, locked, until
// commit() brings it to the disk and renames it; without commit() it goes away.
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

// Removes the unfinished files of killed writers from a folder. Those of living ones, which hold a
// lock, stay; so does what cannot be removed.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace tensorgrad
