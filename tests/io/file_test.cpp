// Atomic files: a write that fails in any way leaves the old file and nothing else, leftovers of
// killed writers are removed, and every error has the system's reason.
#include "support/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "tests/io/temporary_folder.h"
#include "tests/support/sanitizers.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

using File = TemporaryFolder;

TEST_F(File, WhatIsWrittenIsReadBack) {
  const fs::path path = path_ / "a";
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 3000000u}) {
    std::string bytes(size, 'x');
    if (size) bytes.front() = '\0', bytes.back() = '\xff';
    write_file(path, bytes);
    EXPECT_EQ(read_file(path), bytes);
    EXPECT_EQ(names(), Names{"a"}) << "something else is left";
  }
  AtomicFile file(path);
  file.write(bytes_of("in "));
  file.write({});
  file.write(bytes_of("pieces"));
  EXPECT_EQ(content(path).size(), 3000000u) << "seen before it was complete";
  file.commit();
  EXPECT_EQ(read_file(path), "in pieces");
}

TEST_F(File, ARelativePathIsInTheWorkingFolder) {
  EXPECT_EQ(in_child([&] {
              fs::current_path(path_);
              write_file("a", "1");
              return read_file("a") + read_file("./a");
            }),
            "11");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(File, ItsRightsAreThoseOfAnyNewFile) {
  const mode_t before = umask(027);
  write_file(path_ / "a", "1");
  umask(before);
  struct stat about {};
  ASSERT_EQ(stat((path_ / "a").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0640u);
}

TEST_F(File, WithoutALengthIsReadToItsEnd) {
  if (!fs::exists("/proc/self/environ")) GTEST_SKIP() << "no /proc";
  EXPECT_EQ(fs::file_size("/proc/self/environ"), 0u);
  EXPECT_EQ(read_file("/proc/self/environ"), content("/proc/self/environ"));
}

TEST_F(File, IsReadUpToALimit) {
  const fs::path path = path_ / "a";
  put(path, std::string(5000, 'x'));
  EXPECT_EQ(read_file(path, 5000).size(), 5000u);
  EXPECT_EQ(error_of([&] { read_file(path, 4999); }),
            path.string() + ": 5000 bytes, at most 4999 are allowed");
  put(path, "");
  EXPECT_EQ(read_file(path, 0), "");
}

// Its size is reported as 0 bytes, but it has more.
TEST_F(File, WithoutALengthIsReadUpToALimit) {
  const fs::path path = "/proc/self/status";
  if (!fs::exists(path)) GTEST_SKIP() << "no /proc";
  EXPECT_EQ(read_file(path, 100'000).rfind("Name:", 0), 0u);
  EXPECT_EQ(error_of([&] { read_file(path, 100); }),
            "/proc/self/status: more than the 100 bytes that are allowed");
}

// A FIFO without a writer would block; a device may never end.
TEST_F(File, OnlyRegularFilesAreRead) {
  const auto read = [](const fs::path& path) { return error_of([&] { read_file(path); }); };
  const std::string folder = path_.string();
  ASSERT_EQ(mkfifo((path_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read(path_ / "pipe"),
            folder + "/pipe: cannot read: a FIFO (named pipe), not a regular file");
  fs::create_symlink("pipe", path_ / "link");
  EXPECT_EQ(read(path_ / "link"),
            folder + "/link: cannot read: a FIFO (named pipe), not a regular file");
  EXPECT_EQ(read("/dev/zero"), "/dev/zero: cannot read: a character device, not a regular file");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "socket"};
  const int here = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(in_child([&]() -> std::string {
              fs::current_path(path_);  // socket paths are short
              if (bind(here, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
              return read("socket");
            }),
            "socket: cannot read: a socket, not a regular file");
  close(here);
}

TEST_F(File, IsReadInParts) {
  put(path_ / "a", "0123456789");
  const InputFile file(path_ / "a");
  EXPECT_EQ(file.size(), 10u);
  std::string part(4, ' ');
  file.read(3, part);
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file.read_some(8, part), 2u);
  fs::resize_file(path_ / "a", 5);
  EXPECT_EQ(error_of([&] { file.read(3, part); }),
            path_.string() + "/a: cannot read: it has become shorter");
}

// Root may read and write everything, so another user must try.
void be_nobody() {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
}

TEST_F(File, ThatCannotBeReadSaysWhy) {
  const auto read = [](const fs::path& path) { return error_of([&] { read_file(path); }); };
  const std::string folder = path_.string();
  put(path_ / "a", "1");
  EXPECT_EQ(read(path_ / "none"), folder + "/none: cannot read: No such file or directory");
  EXPECT_EQ(read(""), ": cannot read: No such file or directory");
  EXPECT_EQ(read(path_), folder + ": cannot read: Is a directory");
  EXPECT_EQ(read(path_ / "a" / "b"), folder + "/a/b: cannot read: Not a directory");
  fs::permissions(path_ / "a", fs::perms::none);
  EXPECT_EQ(in_child([&] { return be_nobody(), read(path_ / "a"); }),
            folder + "/a: cannot read: Permission denied");
}

TEST_F(File, ItsTypeIsToldOrWhyNot) {
  put(path_ / "a", "1");
  fs::create_symlink("loop", path_ / "loop");
  fs::create_symlink("none", path_ / "dangling");
  EXPECT_EQ(file_type_at(path_ / "a"), fs::file_type::regular);
  EXPECT_EQ(file_type_at(path_), fs::file_type::directory);
  for (const char* nothing : {"none", "dangling", "a/below"})
    EXPECT_EQ(file_type_at(path_ / nothing), fs::file_type::not_found) << nothing;
  const auto refused = [&](const std::string& name) {
    return error_of([&] { file_type_at(path_ / name); });
  };
  const std::string folder = path_.string(), long_name(300, 'n');
  EXPECT_EQ(refused("loop"), folder + "/loop: cannot read: Too many levels of symbolic links");
  EXPECT_EQ(refused(long_name), folder + "/" + long_name + ": cannot read: File name too long");
}

TEST_F(File, ThatDoesNotFitMemorySaysSo) {
  const auto read = [](const fs::path& path) { return error_of([&] { read_file(path); }); };
  put(path_ / "a", "");
  fs::resize_file(path_ / "a", std::uintmax_t{1} << 40);  // no byte of it is on the disk
  if (!kSanitized) {
    EXPECT_EQ(in_child([&] {
                const rlimit limit{std::size_t{1} << 39, std::size_t{1} << 39};
                setrlimit(RLIMIT_AS, &limit);
                return read(path_ / "a");
              }),
              path_.string() + "/a: cannot read: Cannot allocate memory");
  }
  // Longer than a string can be; only on some file systems.
  const fs::path far = fs::path("/dev/shm") / path_.filename();
  std::error_code error;
  put(far, "");
  fs::resize_file(far, (std::uintmax_t{1} << 63) - 1, error);
  if (!error) {
    EXPECT_EQ(read(far), far.string() + ": cannot read: Cannot allocate memory");
  }
  fs::remove(far, error);
}

TEST_F(File, ThatCannotBeWrittenSaysWhy) {
  const auto write = [](const fs::path& path) {
    return error_of([&] { write_file(path, "new"); });
  };
  const std::string folder = path_.string(), long_name(250, 'n');
  put(path_ / "a", "old");
  fs::create_directory(path_ / "folder");
  ASSERT_EQ(mkfifo((path_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(write(path_ / "none" / "a"),
            folder + "/none/a: cannot write: No such file or directory");
  EXPECT_EQ(write(path_ / "a" / "b"), folder + "/a/b: cannot write: Not a directory");
  EXPECT_EQ(write(path_ / "folder"), folder + "/folder: cannot write: Is a directory");
  EXPECT_EQ(write(path_ / "folder/"), folder + "/folder/: cannot write: Is a directory");
  EXPECT_EQ(write(path_ / "pipe"),
            folder + "/pipe: cannot write: a FIFO (named pipe), not a regular file");
  EXPECT_EQ(write("/dev/null"), "/dev/null: cannot write: a character device, not a regular file");
  EXPECT_EQ(write(path_ / long_name),
            folder + "/" + long_name + ": cannot write: File name too long");
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                             fs::perms::others_exec);
  EXPECT_EQ(in_child([&] { return be_nobody(), write(path_ / "a"); }),
            folder + "/a: cannot write: Permission denied");
  fs::permissions(path_, fs::perms::owner_all);
  EXPECT_EQ(content(path_ / "a"), "old");
  EXPECT_EQ(names(), (Names{"a", "folder", "pipe"}));
}

TEST_F(File, WithoutCommitNothingIsLeft) {
  put(path_ / "a", "old");
  {
    AtomicFile file(path_ / "a");
    file.write(bytes_of("new"));
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(content(path_ / "a"), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(File, TooLargeLeavesTheOldOne) {
  put(path_ / "a", "old");
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{100000, 100000};  // the write that crosses it is cut short first
              setrlimit(RLIMIT_FSIZE, &limit);
              return error_of([&] { write_file(path_ / "a", std::string(150000, 'x')); });
            }),
            path_.string() + "/a: cannot write: File too large");
  EXPECT_EQ(content(path_ / "a"), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(File, AFullDiskLeavesTheOldOne) {
  const std::string told = in_child([&]() -> std::string {
    // A disk of 64 KiB that only this child sees.
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return "no disk";
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "no disk";
    if (mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=64k") != 0) return "no disk";
    write_file(path_ / "a", "old");
    const std::string error = error_of([&] { write_file(path_ / "a", std::string(100000, 'x')); });
    return error + "; " + content(path_ / "a") + fmt::format("; {}", fmt::join(names(), " "));
  });
  if (told == "no disk") GTEST_SKIP() << "may not mount";
  EXPECT_EQ(told, path_.string() + "/a: cannot write: No space left on device; old; a");
}

TEST_F(File, RemovesWhatKilledWritersLeftAndNothingElse) {
  const Names kOther = {"a.12-3.unfinished",   ".a.12.unfinished",    ".a.12-.unfinished",
                        ".a.-3.unfinished",    ".a.12-3x.unfinished", ".a.x12-3.unfinish",
                        ".a12-3.unfinished",   "..12-3.unfinished",   ".a.12-3.unfinished2",
                        ".a.1 2-3.unfinished", ".unfinished",         "a"};
  for (const std::string& name : kOther) put(path_ / name, "1");
  put(path_ / ".a.12-3.unfinished", "1");
  put(path_ / ".a.b c.1-0.unfinished", "1");
  fs::create_directory(path_ / ".folder.1-0.unfinished");
  AtomicFile living(path_ / "b");
  living.write(bytes_of("1"));
  const pid_t killed = fork();
  if (killed == 0) {
    AtomicFile file(path_ / "c");
    file.write(bytes_of("half"));
    raise(SIGKILL);
  }
  waitpid(killed, nullptr, 0);
  const Names before = names();
  const auto has = [](const Names& all, const std::string& part) {
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& name) { return name.find(part) != name.npos; });
  };
  EXPECT_TRUE(has(before, ".c."));

  remove_unfinished(path_);
  const Names after = names();
  EXPECT_FALSE(has(after, ".c."));
  EXPECT_TRUE(has(after, ".b.")) << "its writer lives";
  std::set<std::string> wanted(kOther.begin(), kOther.end());
  wanted.insert({".folder.1-0.unfinished", fmt::format(".b.{}-", getpid())});
  EXPECT_EQ(after.size(), wanted.size());
  for (const std::string& name : wanted) EXPECT_TRUE(has(after, name)) << name;
  living.commit();
  EXPECT_EQ(content(path_ / "b"), "1");
  remove_unfinished(path_ / "none");  // nothing to do
}

// The last one wins, and the file is always complete.
TEST_F(File, ManyWritersAndACleanerDoNotDisturbOneAnother) {
  constexpr int kWriters = 4, kTimes = 20;
  const fs::path path = path_ / "a";
  write_file(path, "");
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kWriters);
  bool whole = true;
  for (int i = 0; i < kWriters; ++i)
    threads.emplace_back([&, i] {
      const std::string text(static_cast<std::size_t>(50000 + i), static_cast<char>('0' + i));
      errors[static_cast<std::size_t>(i)] = error_of([&] {
        for (int time = 0; time < kTimes; ++time) write_file(path, text);
      });
      --writing;
    });
  while (writing > 0) {
    remove_unfinished(path_);
    const std::string text = read_file(path);
    whole =
        whole && (text.empty() ||
                  text == std::string(static_cast<std::size_t>(50000 + text[0] - '0'), text[0]));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(whole);
  EXPECT_EQ(errors, std::vector<std::string>(kWriters, "no error"));
  EXPECT_EQ(names(), Names{"a"});
}

// In a container each process may have the process id of the one before.
TEST_F(File, WhatAnotherProcessOfThisNumberLeftIsNotTouched) {
  for (int i = 0; i < 2000; ++i)
    put(path_ / fmt::format(".a.{}-{}.unfinished", getpid(), i), "other");
  write_file(path_ / "a", "new");
  EXPECT_EQ(content(path_ / "a"), "new");
  EXPECT_EQ(names().size(), 2001u);
  remove_unfinished(path_);
  EXPECT_EQ(names(), Names{"a"});
}

}  // namespace
}  // namespace tensorgrad
