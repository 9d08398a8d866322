// The cost of reading, and what is refused: memory near the size of the tensors, no allocation for
// what a file only claims to contain, and no blocking on a FIFO.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "io/checkpoint_bytes.h"
#include "io/safetensors_source.h"
#include "tensorgrad/checkpoint.h"
#include "tensorgrad/dataset.h"
#include "tensorgrad/safetensors.h"
#include "tensorgrad/tokenizer.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/same.h"
#include "tests/io/sample_checkpoint.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/sanitizers.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using Reading = TemporaryFolder;

// The increase of the peak memory of a fresh process by a call, in MiB.
std::int64_t growth_of(const std::function<void()>& call) {
  return std::stoll(in_child([&] {
    const auto most = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;
    };
    const auto before = most();
    call();
    return fmt::format("{}", (most() - before) / 1024);
  }));
}

TEST_F(Reading, TakesMemoryForTheTensorsAlone) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer keeps what was freed";
  const std::int64_t count = 16 << 20;  // 64 MiB
  const fs::path path = path_ / "a.safetensors";
  growth_of([&] {  // in a child: what was freed here would be reused
    save_checkpoint(path,
                    {.parameters = {{"w", Array({count}, std::vector<float>(1u * count, 1.0f))}},
                     .optimizer = {{"m:w", Array({count}, std::vector<float>(1u * count, 2.0f))}}});
  });
  EXPECT_GE(growth_of([&] { read_safetensors(path); }), 120);
  EXPECT_LT(growth_of([&] { read_safetensors(path); }), 140);
  EXPECT_LT(growth_of([&] { load_checkpoint(path); }), 140);
  EXPECT_LT(growth_of([&] { load_checkpoint(path, CheckpointPart::model); }), 76);
}

// 1 TiB that is not on the disk, and the memory that it would need.
TEST_F(Reading, AClaimReservesNothing) {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  const fs::path path = path_ / "a.safetensors";
  const auto reading = [&](const std::string& bytes, std::uint64_t size) {
    put(path, bytes);
    fs::resize_file(path, size);
    return in_child([&] {
      const rlimit limit{std::size_t{1} << 39, std::size_t{1} << 39};
      if (!kSanitized) setrlimit(RLIMIT_AS, &limit);
      std::string told;
      const auto growth = [&] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;
      };
      const auto before = growth();
      told = error_of([&] { load_checkpoint(path); });
      return growth() - before < 16 * 1024 ? told : told + " (much memory)";
    });
  };
  const std::string name = path.string() + ": ";
  EXPECT_EQ(reading("", huge), name + "the header does not start with '{'");
  EXPECT_EQ(reading(little_endian(99'999'999, 8) + "{}", 1000),
            name + "truncated: the header has 99999999 bytes, 992 are left in the file");
  const std::string claim = file_of(entry("F32", "[268435456]", "[0,1073741824]"));
  EXPECT_EQ(reading(claim, claim.size() + 100),
            name + "tensor 'x': it ends at byte 1073741824, past the 100 bytes of data");
  if (kSanitized) return;
  const std::string real =
      file_of(entry("U8", fmt::format("[{}]", huge), fmt::format("[0,{}]", huge)));
  EXPECT_EQ(reading(real, real.size() + huge), name + "cannot read: Cannot allocate memory");
}

TEST_F(Reading, NoReaderWaitsForAFifo) {
  const fs::path pipe = path_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string error =
      pipe.string() + ": cannot read: a FIFO (named pipe), not a regular file";
  EXPECT_EQ(error_of([&] { read_safetensors(pipe); }), error);
  EXPECT_EQ(error_of([&] { load_checkpoint(pipe); }), error);
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(pipe, pipe); }), error);
  EXPECT_EQ(error_of([&] { TextData::read(pipe, Tokenizer::bytes()); }), error);
  put(path_ / "text", "some text");
  EXPECT_EQ(error_of([&] { TextData::read(path_ / "text", Tokenizer::bytes(), {.cache = pipe}); }),
            pipe.string() + ": cannot write: a FIFO (named pipe), not a regular file");
}

TEST_F(Reading, TheModelAloneIsCheckedAsAWhole) {
  const fs::path path = path_ / "a.safetensors";
  const Checkpoint all = sample_checkpoint();
  save_checkpoint(path, all);
  Checkpoint wanted = all;
  wanted.optimizer.clear();
  EXPECT_TRUE(same(load_checkpoint(path, CheckpointPart::model), wanted));
  std::string bytes = content(path);
  bytes.back() ^= 1;  // the last byte is in the optimizer's mask
  put(path, bytes);
  EXPECT_EQ(error_of([&] { load_checkpoint(path, CheckpointPart::model); }),
            path.string() +
                ": damaged: its contents do not match its sha256\n  hint: it was truncated or "
                "changed after it was written");
}

TEST_F(Reading, TensorsOfADamagedCheckpoint) {
  const fs::path path = path_ / "a.safetensors";
  save_checkpoint(path, sample_checkpoint());
  EXPECT_EQ(io::read_with_damage(path).damage, "");
  std::string bytes = content(path);
  bytes.replace(bytes.find("1500"), 4, "1501");
  put(path, bytes);
  const io::TensorsAndDamage read = io::read_with_damage(path);
  EXPECT_EQ(read.file.tensors.size(), 6u);
  EXPECT_EQ(read.damage.rfind(path.string() + ": damaged: ", 0), 0u) << read.damage;
}

// Converted elements are read in pieces of 2^18 bytes.
TEST_F(Reading, ConvertedElementsOfSeveralPieces) {
  std::string data;
  const std::size_t count = (1 << 17) + 3;
  for (std::size_t i = 0; i < count; ++i) data += little_endian(i, 8);
  const fs::path path = path_ / "a.safetensors";
  put(path, file_of_type("I64", count, data));
  const TensorFile file = read_safetensors(path);
  const auto ints = file.tensors.at("x").ints();
  ASSERT_EQ(ints.size(), count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(ints[i], static_cast<std::int32_t>(i));
}

// That many tensors of one byte each.
std::string file_of_tensors(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i)
    header += fmt::format(R"({}"w{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i ? "," : "", i, i, i + 1);
  return file_of(header + "}", std::string(static_cast<std::size_t>(count), '\7'));
}

// Processor time, so that other programs do not matter.
double seconds_to_read(const std::string& bytes, std::size_t tensors) {
  const std::clock_t begin = std::clock();
  const TensorFile file = parse_safetensors(bytes, "a");
  const std::clock_t end = std::clock();
  EXPECT_EQ(file.tensors.size(), tensors);
  EXPECT_EQ(file.tensors.at(fmt::format("w{}", tensors - 1)).item(), 7);
  return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
}

// Sixteen times the tensors take sixteen times as long, somewhat more beyond the caches. Quadratic
// time would be 256 times. A ratio does not depend on the machine.
TEST_F(Reading, TakesNoTimeThatGrowsWithTheSquareOfTheTensors) {
  constexpr int kFew = 6'250, kMany = 16 * kFew;
  const std::string small = file_of_tensors(kFew), large = file_of_tensors(kMany);
  double few = seconds_to_read(small, kFew);
  for (int i = 0; i < 4; ++i) few = std::min(few, seconds_to_read(small, kFew));
  const double many = seconds_to_read(large, kMany);
  RecordProperty("ratio", fmt::format("{:.1f}", many / few));
  EXPECT_LT(many, 100 * few) << "seconds for " << kMany << " and for " << kFew << " tensors";
}

// Exactly: the length twice, everything else once, for any number of tensors.
TEST_F(Reading, ReadsEveryByteOnce) {
  constexpr int kCount = 1000;
  const std::string bytes = file_of_tensors(kCount);
  const io::ByteSource source = io::source_of(bytes);
  std::uint64_t read = 0, calls = 0;
  const io::ByteSource counted{source.size, [&](std::uint64_t at, std::span<char> to) {
                                 read += to.size(), ++calls;
                                 source.read(at, to);
                               }};
  EXPECT_EQ(io::read_tensors(counted).tensors.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(read, bytes.size() + 8);
  EXPECT_LE(calls, static_cast<std::uint64_t>(kCount) + 2);
}

}  // namespace
}  // namespace tensorgrad
