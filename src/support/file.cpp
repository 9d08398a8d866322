// POSIX. An unfinished file is called .NAME.PROCESS-NUMBER.unfinished. A name is never used twice,
// so no writer can rename the file of another.
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
#include "support/integers.h"

namespace tensorgrad {

namespace {

constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // some systems refuse 2 GiB and more

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void cannot_read(const std::filesystem::path& path, std::string_view why) {
  throw ReadError(fmt::format("{}: cannot read: {}", path.string(), why));
}

// Describes a file that is not regular; empty for a regular file.
std::string_view not_regular(const struct stat& about) {
  if (S_ISREG(about.st_mode)) return "";
  if (S_ISFIFO(about.st_mode)) return "a FIFO (named pipe), not a regular file";
  if (S_ISCHR(about.st_mode)) return "a character device, not a regular file";
  if (S_ISBLK(about.st_mode)) return "a block device, not a regular file";
  if (S_ISSOCK(about.st_mode)) return "a socket, not a regular file";
  return "not a regular file";
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
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

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

// Syncs a file to disk; returns 0 or errno.
int sync_file(int descriptor) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// Makes a rename durable. Ignores file systems that cannot sync a folder: they do not need it.
int sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  const int error = opened ? sync_file(*opened) : 0;
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

}  // namespace

void too_large_for_memory(const std::filesystem::path& path) { cannot_read(path, reason(ENOMEM)); }

std::filesystem::file_type file_type_at(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::status_known(status)) cannot_read(path, error.message());
  return status.type();
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // Checked before opening, because opening a device can have effects; and again after, because the
  // path may name another file by then. O_NONBLOCK: opening a FIFO without a writer would block.
  struct stat about {};
  const auto check = [&] {
    if (S_ISDIR(about.st_mode)) cannot_read(path_, reason(EISDIR));
    if (const auto what = not_regular(about); !what.empty()) cannot_read(path_, what);
  };
  if (::stat(path_.c_str(), &about) != 0) cannot_read(path_, reason(errno));
  check();
  Descriptor file(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || ::fstat(*file, &about) != 0) cannot_read(path_, reason(errno));
  check();
  size_ = static_cast<std::uint64_t>(about.st_size);
  descriptor_ = file.release();
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read_some(std::uint64_t at, std::span<char> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(descriptor_, to.data() + done, std::min(to.size() - done, kMostAtOnce),
                static_cast<off_t>(at + done));
    if (got == 0) break;
    if (got > 0)
      done += usize(got);
    else if (errno != EINTR)
      cannot_read(path_, reason(errno));
  }
  return done;
}

void InputFile::read(std::uint64_t at, std::span<char> to) const {
  if (read_some(at, to) != to.size()) cannot_read(path_, "it has become shorter");
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const InputFile file(path);
  if (file.size() > max_bytes)
    user_error("{}: {} bytes, at most {} are allowed", path.string(), file.size(), max_bytes);
  std::string bytes;
  try {
    bytes.resize(file.size());
    bytes.resize(file.read_some(0, bytes));
    // System files report a size of 0, and other files may grow.
    for (char more[4096]; bytes.size() <= max_bytes;) {
      const std::size_t count = file.read_some(bytes.size(), more);
      if (count == 0) return bytes;
      bytes.append(more, count);
    }
  } catch (const std::bad_alloc&) {
    too_large_for_memory(path);
  } catch (const std::length_error&) {
    too_large_for_memory(path);
  }
  user_error("{}: more than the {} bytes that are allowed", path.string(), max_bytes);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  struct stat about {};
  const bool exists = ::stat(path_.c_str(), &about) == 0;
  if (!exists && errno != ENOENT) give_up(errno);
  if (exists && S_ISDIR(about.st_mode)) give_up(EISDIR);
  // A rename would replace a pipe or a device.
  if (exists && !not_regular(about).empty())
    user_error("{}: cannot write: {}", path_.string(), not_regular(about));
  open();
}

AtomicFile::~AtomicFile() { close(); }

void AtomicFile::open() {
  static std::atomic<unsigned> next{0};
  for (int lost = 0;;) {
    unfinished_ = path_.parent_path() / fmt::format(".{}.{}-{}{}", path_.filename().string(),
                                                    ::getpid(), next++, kUnfinished);
    descriptor_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // A killed process with the same id may have left this name.
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) give_up(errno);
    // remove_unfinished() of another process may have unlinked the file before it was locked.
    // Retry, at most 10 times.
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
      bytes = bytes.subspan(usize(count));
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
  file.write(std::as_bytes(std::span(bytes.data(), bytes.size())));
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
