// The folder of checkpoints: how many are kept, which is the newest readable one, and that it is
// safe to kill the process at any time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "io/checkpoint_bytes.h"
#include "tensorgrad/checkpoint.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/same.h"
#include "tests/io/sample_checkpoint.h"
#include "tests/io/temporary_folder.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const std::string kIsDamaged =
    ": damaged: its contents do not match its sha256\n  hint: it was truncated or changed after it "
    "was written";

Checkpoint at_step(std::int64_t step, std::int64_t size = 3) {
  std::vector<float> values(static_cast<std::size_t>(size), static_cast<float>(step));
  return {.parameters = {{"w", Array({size}, std::move(values))}}, .step = step};
}

std::string file_of_step(std::int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

class Folder : public TemporaryFolder {
 protected:
  void damage(std::int64_t step) const {
    put(path_ / file_of_step(step), io::format_checkpoint(at_step(step), "") + '\0');
  }
  std::string path_of(std::int64_t step) const { return (path_ / file_of_step(step)).string(); }
};

using FolderOfCheckpoints = Folder;

TEST_F(FolderOfCheckpoints, TheNewestIsFound) {
  const CheckpointFolder folder(path_ / "runs" / "a");
  EXPECT_FALSE(folder.newest()) << "there is no folder yet";
  EXPECT_TRUE(folder.files().empty());
  EXPECT_EQ(folder.save(at_step(0)), path_ / "runs" / "a" / "step-00000000.safetensors");
  EXPECT_EQ(folder.save(sample_checkpoint()), path_ / "runs" / "a" / "step-00001500.safetensors");
  const auto found = folder.newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, path_ / "runs" / "a" / "step-00001500.safetensors");
  EXPECT_TRUE(same(found->checkpoint, sample_checkpoint()));
  EXPECT_TRUE(found->unreadable.empty());
  EXPECT_FALSE(CheckpointFolder(path_).newest()) << "a folder without checkpoints";
}

TEST_F(FolderOfCheckpoints, OnlyItsOwnNamesCountInTheOrderOfTheirSteps) {
  for (const char* name :
       {"step-1.safetensors", "step-000000001.safetensors", "step-0000000x.safetensors",
        "step-00000001.safetensor", "Step-00000001.safetensors", "step-00000001.safetensors.old",
        "step--0000001.safetensors", "step-.safetensors", "step-99999999999999999999.safetensors",
        "step-012345678.safetensors", ".step-00000001.safetensors.1-1.unfinished",
        "step-+0000001.safetensors", "notes.txt"})
    put(path_ / name, "");
  fs::create_directory(path_ / file_of_step(4));
  for (const std::int64_t step : {100000000, 7, 99999999})
    save_checkpoint(path_ / file_of_step(step), at_step(step));
  const CheckpointFolder folder(path_);
  EXPECT_EQ(folder.files(), (std::vector<fs::path>{path_of(7), path_of(99999999),
                                                   path_ / "step-100000000.safetensors"}));
  EXPECT_EQ(folder.newest()->checkpoint.step, 100000000);
}

TEST_F(FolderOfCheckpoints, TheLastOnesAreKept) {
  const CheckpointFolder folder(path_, 2);
  for (const std::int64_t step : {10, 20, 30}) folder.save(at_step(step));
  EXPECT_EQ(names(), (Names{file_of_step(20), file_of_step(30)}));
  folder.save(at_step(40, 5));
  folder.save(at_step(40, 6));  // again: replaces the first
  EXPECT_EQ(names(), (Names{file_of_step(30), file_of_step(40)}));
  EXPECT_EQ(folder.newest()->checkpoint.parameters.at("w").count(), 6);
  const CheckpointFolder one(path_, 1);
  one.save(at_step(50));
  EXPECT_EQ(names(), Names{file_of_step(50)});
}

TEST_F(FolderOfCheckpoints, UnreadableOnesArePassedOver) {
  const CheckpointFolder folder(path_);
  folder.save(at_step(10));
  folder.save(at_step(20));
  damage(30);
  put(path_ / file_of_step(40), "");
  const auto found = folder.newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint.step, 20);
  EXPECT_EQ(found->unreadable,
            (Names{path_of(40) + ": too short: 0 bytes cannot hold the header length",
                   path_of(30) + kIsDamaged}));
}

// A header that ends before the digest, whatever its length.
TEST_F(FolderOfCheckpoints, ADamagedLengthIsPassedOver) {
  const CheckpointFolder folder(path_);
  folder.save(at_step(10));
  const std::string good = io::format_checkpoint(at_step(20), "");
  for (std::size_t length = 0; length <= io::kCheckpointFront.size() + io::kDigestDigits;
       ++length) {
    put(path_ / file_of_step(20), little_endian(length, 8) + good.substr(8));
    const auto found = folder.newest();
    ASSERT_TRUE(found) << length;
    EXPECT_EQ(found->checkpoint.step, 10) << length;
    EXPECT_EQ(found->unreadable, Names{path_of(20) + kIsDamaged}) << length;
  }
}

TEST_F(FolderOfCheckpoints, ANewerOneThatCannotBeReadNeverCostsAGoodOne) {
  for (const std::int64_t step : {10, 20}) CheckpointFolder(path_).save(at_step(step));
  for (const std::int64_t step : {100, 110, 120}) damage(step);
  const CheckpointFolder folder(path_, 1);
  folder.save(at_step(30));
  EXPECT_EQ(names(),
            (Names{file_of_step(30), file_of_step(100), file_of_step(110), file_of_step(120)}));
  EXPECT_EQ(folder.newest()->checkpoint.step, 30);
  folder.save(at_step(115));  // those it has passed go
  EXPECT_EQ(names(), (Names{file_of_step(115), file_of_step(120)}));
  folder.save(at_step(120));  // and this one is replaced
  EXPECT_EQ(names(), Names{file_of_step(120)});
  EXPECT_TRUE(folder.newest()->unreadable.empty());
}

TEST_F(FolderOfCheckpoints, ErrorsSayWhatIsWrong) {
  const CheckpointFolder folder(path_);
  damage(10);
  EXPECT_EQ(error_of([&] { folder.newest(); }),
            path_.string() + ": no checkpoint in it can be read:\n  " + path_of(10) + kIsDamaged);
  put(path_ / file_of_step(20), "abc");
  EXPECT_EQ(error_of([&] { folder.newest(); }),
            path_.string() + ": no checkpoint in it can be read:\n  " + path_of(20) +
                ": too short: 3 bytes cannot hold the header length\n  " + path_of(10) +
                kIsDamaged);
  for (const int keep : {0, -1})
    EXPECT_EQ(error_of([&] { CheckpointFolder(path_, keep); }),
              fmt::format("{}: at least one checkpoint must be kept: {}", path_.string(), keep));
  put(path_ / "file", "");
  const std::string file = (path_ / "file").string();
  EXPECT_EQ(error_of([&] { CheckpointFolder(file).newest(); }),
            file + ": cannot read: Not a directory");
  EXPECT_EQ(error_of([&] { CheckpointFolder(file).save(at_step(1)); }),
            file + ": cannot create the folder: Not a directory");
  EXPECT_EQ(error_of([&] { CheckpointFolder(file + "/a").save(at_step(1)); }),
            file + "/a: cannot create the folder: Not a directory");
  EXPECT_EQ(error_of([&] { folder.save(at_step(-1)); }),
            path_.string() + "/step--0000001.safetensors: step must not be negative: -1");
}

TEST_F(FolderOfCheckpoints, WhatKilledWritersLeftGoesWithTheNextSave) {
  put(path_ / ".step-00000010.safetensors.1-0.unfinished", "half");
  CheckpointFolder(path_).save(at_step(20));
  EXPECT_EQ(names(), Names{file_of_step(20)});
}

// Many small arrays, so that writing takes a while.
Checkpoint in_pieces(std::int64_t step) {
  Checkpoint checkpoint{.step = step};
  for (int i = 0; i < 1500; ++i)
    checkpoint.parameters.emplace(fmt::format("w{}", i),
                                  Array({8}, std::vector<float>(8, static_cast<float>(step))));
  return checkpoint;
}

// Blocks until the pipe has that many bytes; returns fewer if the writer has ended.
int take_bytes(int from, int most) {
  int count = 0;
  for (char byte; count < most && read(from, &byte, 1) == 1;) ++count;
  return count;
}

// A process that saves the steps after `last`, one after the other, and writes a byte to a pipe
// before and after each save.
struct Writer {
  pid_t process;
  int pipe;

  // With `most_bytes`, the system kills the process when a file grows beyond that size.
  static Writer start(const CheckpointFolder& folder, std::int64_t last,
                      std::optional<rlim_t> most_bytes) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    const pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      const rlimit none{0, 0}, most{most_bytes.value_or(RLIM_INFINITY), RLIM_INFINITY};
      if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(1);
      const auto tell = [&] {
        if (write(ends[1], "", 1) != 1) _exit(1);
      };
      error_of([&] {
        for (std::int64_t step = last + 1;; ++step) {
          const Checkpoint checkpoint = in_pieces(step);
          tell();
          folder.save(checkpoint);
          tell();
        }
      });
      _exit(1);
    }
    close(ends[1]);
    return {process, ends[0]};
  }

  // Waits for the end of the process; returns its status and how many more bytes it wrote.
  std::pair<int, int> finish() const {
    int status = 0;
    waitpid(process, &status, 0);
    const int bytes = take_bytes(pipe, std::numeric_limits<int>::max());
    close(pipe);
    return {status, bytes};
  }
};

// Training runs that are killed; each resumes from what the one before left. The system kills every
// second one in the middle of a file, and the test kills the others after a number of saves. The
// speed of the machine does not matter.
TEST_F(FolderOfCheckpoints, NoMomentToBeKilledIsABadOne) {
  const CheckpointFolder folder(path_, 2);
  folder.save(in_pieces(0));
  const auto size = std::filesystem::file_size(path_ / file_of_step(0));
  std::mt19937 random(5);
  std::int64_t last = 0;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    const bool in_the_middle = kill_number % 2 == 0;
    std::optional<rlim_t> most_bytes;
    if (in_the_middle) most_bytes = random() % size;
    const Writer writer = Writer::start(folder, last, most_bytes);
    int bytes = 0;
    if (!in_the_middle) {
      const int life = 1 + static_cast<int>(random() % 6);
      bytes = take_bytes(writer.pipe, life);
      EXPECT_EQ(bytes, life) << "it ended by itself";
      usleep(static_cast<useconds_t>(random() % 1000));
      kill(writer.process, SIGKILL);
    }
    const auto [status, rest] = writer.finish();
    bytes += rest;
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    ASSERT_EQ(WTERMSIG(status), in_the_middle ? SIGXFSZ : SIGKILL);
    const Names left = names();
    const bool unfinished = std::any_of(left.begin(), left.end(), [&](const std::string& name) {
      return name.ends_with(".unfinished") &&
             name.find(fmt::format(".{}-", writer.process)) != name.npos;
    });
    if (in_the_middle) {
      EXPECT_TRUE(unfinished);
    }
    const auto found = folder.newest();
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->unreadable.empty()) << found->unreadable[0];
    // A save that returned is never lost; the one that was interrupted may or may not exist.
    EXPECT_GE(found->checkpoint.step, last + bytes / 2);
    EXPECT_LE(found->checkpoint.step, last + (in_the_middle ? 0 : (bytes + 1) / 2));
    last = found->checkpoint.step;
    EXPECT_TRUE(same(found->checkpoint, in_pieces(last)));
  }
  folder.save(at_step(last + 1));
  EXPECT_EQ(names(), (Names{file_of_step(last), file_of_step(last + 1)}));
}

}  // namespace
}  // namespace tensorgrad
