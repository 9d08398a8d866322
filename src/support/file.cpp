// POSIX. An unfinished file is called .NAME.PROCESS-NUMBER.unfinished; a name is never used twice,
// so that nobody renames what somebody else is writing.
#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "support/fail.h"
#include "support/file_lock.h"

namespace tensorgrad {

namespace {

constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // some systems refuse 2 GiB and more

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void cannot_read(const std::filesystem::path& path, int error) {
  user_error("{}: cannot read: {}", path.string(), reason(error));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  explicit operator bool() const { return number_ >= 0; }
  int operator*() const { return number_; }

 private:
  int number_;
};

// Fills `to` as far as there are bytes; returns how many there were.
std::size_t read_some(const Descriptor& file, std::span<char> to,
                      const std::filesystem::path& path) {
  std::size_t at = 0;
  while (at < to.size()) {
    const ssize_t got = ::read(*file, to.data() + at, std::min(to.size() - at, kMostAtOnce));
    if (got == 0) break;
    if (got > 0)
      at += static_cast<std::size_t>(got);
    else if (errno != EINTR)
      cannot_read(path, errno);
  }
  return at;
}

// ".NAME.PROCESS-NUMBER.unfinished"
bool is_unfinished(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kUnfinished)) return false;
  name.remove_suffix(kUnfinished.size());
  const auto take_number = [&] {
    const std::size_t end = name.find_last_not_of("0123456789") + 1;
    const bool any = end < name.size();
    name.remove_suffix(name.size() - end);
    return any;
  };
  const auto take = [&](char c) {
    const bool there = name.ends_with(c);
    name.remove_suffix(there);
    return there;
  };
  return take_number() && take('-') && take_number() && take('.') && name.size() > 1;
}

// To the disk; 0 or what went wrong.
int sync_file(int descriptor) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// Makes a rename last. Not every file system can: what it has not, it does not need.
int sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  const int error = opened ? sync_file(*opened) : 0;
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat about {};
  if (!file || ::fstat(*file, &about) != 0) cannot_read(path, errno);
  if (S_ISDIR(about.st_mode)) cannot_read(path, EISDIR);
  std::string bytes;
  try {
    bytes.resize(static_cast<std::size_t>(about.st_size));
    bytes.resize(read_some(file, bytes, path));
    // Pipes and the like do not say how long they are.
    for (char more[4096]; const std::size_t count = read_some(file, more, path);)
      bytes.append(more, count);
  } catch (const std::bad_alloc&) {
    cannot_read(path, ENOMEM);
  } catch (const std::length_error&) {
    cannot_read(path, ENOMEM);
  }
  return bytes;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  struct stat about {};
  const bool exists = ::stat(path_.c_str(), &about) == 0;
  if (!exists && errno != ENOENT) give_up(errno);
  if (exists && S_ISDIR(about.st_mode)) give_up(EISDIR);
  // Renaming would take the place of a pipe or a device.
  if (exists && !S_ISREG(about.st_mode))
    user_error("{}: cannot write: not a regular file", path_.string());
  open();
}

AtomicFile::~AtomicFile() { close(); }

void AtomicFile::open() {
  static std::atomic<unsigned> next{0};
  for (int lost = 0;;) {
    unfinished_ = path_.parent_path() / fmt::format(".{}.{}-{}{}", path_.filename().string(),
                                                    ::getpid(), next++, kUnfinished);
    descriptor_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // One may be left from a killed process of the same number.
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) give_up(errno);
    // Who cleans up may have come between: again, but not forever.
    struct stat about {};
    const bool own = lock_file(descriptor_) != FileLock::taken &&
                     ::fstat(descriptor_, &about) == 0 && about.st_nlink > 0;
    if (own || ++lost == 10) return;
    close();
  }
}

void AtomicFile::close() {
  if (descriptor_ < 0) return;
  ::unlink(unfinished_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

void AtomicFile::give_up(int error) {
  close();
  user_error("{}: cannot write: {}", path_.string(), reason(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (count >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      give_up(errno);
  }
}

void AtomicFile::commit() {
  if (const int error = sync_file(descriptor_)) give_up(error);
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) give_up(errno);
  ::close(std::exchange(descriptor_, -1));
  if (const int error = sync_folder(path_.parent_path())) give_up(error);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

void remove_unfinished(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (!is_unfinished(path.filename().string())) continue;
    const Descriptor file(path, O_RDWR | O_NOFOLLOW);
    if (file && lock_file(*file) == FileLock::ours) ::unlink(path.c_str());
  }
}

}  // namespace tensorgrad
