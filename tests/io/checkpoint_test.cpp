// One checkpoint: loading returns what was saved, damage is detected anywhere, and every error has
// its text.
#include "tensorgrad/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/checkpoint_bytes.h"
#include "support/sha256.h"
#include "tensorgrad/safetensors.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/same.h"
#include "tests/io/sample_checkpoint.h"
#include "tests/io/temporary_folder.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;

const std::string kDamaged =
    "damaged: its contents do not match its sha256\n  hint: it was truncated or changed after it "
    "was written";

using CheckpointOnDisk = TemporaryFolder;

TEST_F(CheckpointOnDisk, WhatIsSavedIsLoaded) {
  const fs::path path = path_ / "a.safetensors";
  save_checkpoint(path, sample_checkpoint());
  EXPECT_TRUE(same(load_checkpoint(path), sample_checkpoint()));
  EXPECT_EQ(names(), std::vector<std::string>{"a.safetensors"});
  save_checkpoint(path, {});
  EXPECT_TRUE(same(load_checkpoint(path), {}));
}

TEST_F(CheckpointOnDisk, OthersReadTheParametersByTheirNames) {
  const fs::path path = path_ / "a.safetensors";
  save_checkpoint(path, sample_checkpoint());
  const TensorFile file = read_safetensors(path);
  EXPECT_EQ(file.tensors.size(), 6u);
  EXPECT_TRUE(same(file.tensors.at("l1.W"), sample_checkpoint().parameters.at("l1.W")));
  EXPECT_EQ(file.tensors.at("optimizer/step").item(), 1500);
  EXPECT_EQ(file.metadata.at("step"), "1500");
  EXPECT_EQ(file.metadata.at("config"), R"({"kind":"mamba"})");
  EXPECT_EQ(file.metadata.at("more.note"), "two\nlines");
}

TEST_F(CheckpointOnDisk, FilesOfParametersAloneAreReadAsSuch) {
  const fs::path path = path_ / "a.safetensors";
  const TensorFile file = {{{"w", Array({1}, Floats{2})}, {"optimizer/w", Array({1}, Floats{3})}},
                           {{"format", "pt"}, {"step", "7"}, {"sha256", "none"}}};
  write_safetensors(path, file);
  EXPECT_TRUE(same(load_checkpoint(path), {.parameters = file.tensors}));
}

TEST_F(CheckpointOnDisk, ErrorsNameTheFile) {
  const fs::path path = path_ / "a.safetensors";
  const auto load = [&] { return error_of([&] { load_checkpoint(path); }); };
  const auto save = [&](const Checkpoint& c) {
    return error_of([&] { save_checkpoint(path, c); });
  };
  const std::string name = path.string() + ": ";
  EXPECT_EQ(load(), name + "cannot read: No such file or directory");
  EXPECT_EQ(save({.step = -1}), name + "step must not be negative: -1");
  EXPECT_EQ(save({.position = -2}), name + "position must not be negative: -2");
  EXPECT_EQ(
      save({.parameters = {{"optimizer/w", {}}}}),
      name + "parameter 'optimizer/w': names that begin with optimizer/ belong to the optimizer");
  EXPECT_EQ(save({.parameters = {{"__metadata__", {}}}}),
            name + "a tensor must not be called __metadata__");
  EXPECT_EQ(save({.parameters = {{"\xff", {}}}}), name + "names and metadata must be UTF-8");
  EXPECT_EQ(save({.more = {{"key", "\xff"}}}), name + "names and metadata must be UTF-8");
  EXPECT_TRUE(names().empty());
  put(path, "no checkpoint");
  EXPECT_EQ(load(), name +
                        "the header has 7738140083766718318 bytes, at most 100000000 are allowed\n"
                        "  hint: is this a safetensors file?");
  EXPECT_EQ(error_of([&] { save_checkpoint(path_, {}); }),
            path_.string() + ": cannot write: Is a directory");
}

std::string sha256(const std::string& bytes) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(bytes)));
  return sha.finish();
}

// Later versions must read the files of today: these bytes may not change without a new version.
TEST(Checkpoint, TheBytesAreThoseOfVersion1) {
  const Checkpoint small = {.parameters = {{"w", Array({2}, Floats{1, 2})}},
                            .optimizer = {{"m:w", Array({2}, Floats{3, 4})}},
                            .step = 5,
                            .seed = 6,
                            .position = 7,
                            .tokenizer = "{}",
                            .config = "[]",
                            .more = {{"note", "x"}}};
  const std::string zeros(64, '0');
  std::string header =
      R"({"__metadata__":{"format":"tensorgrad checkpoint","version":"1","sha256":")" + zeros +
      R"(","step":"5","seed":"6","position":"7","config":"[]","tokenizer":"{}","more.note":"x"},)"
      R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("optimizer/m:w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  while (header.size() % 8 != 0) header += ' ';
  const std::string data("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16);
  std::string wanted = file_of(header, data);
  wanted.replace(wanted.find(zeros), 64, sha256(wanted));
  EXPECT_EQ(io::format_checkpoint(small, "a"), wanted);
  EXPECT_EQ(io::format_checkpoint(small, "a"), io::format_checkpoint(small, "a"));
}

TEST(Checkpoint, NoFlippedBitGoesUnnoticed) {
  const std::string bytes = io::format_checkpoint(sample_checkpoint(), "a");
  ASSERT_TRUE(same(io::parse_checkpoint(bytes, "a"), sample_checkpoint()));
  int by_digest = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string altered = bytes;
      altered[i] = static_cast<char>(altered[i] ^ 1 << bit);
      const std::string error = error_of([&] { io::parse_checkpoint(altered, "a"); });
      ASSERT_EQ(error.rfind("a: ", 0), 0u) << "byte " << i << ", bit " << bit << ": " << error;
      by_digest += error == "a: " + kDamaged;
    }
  }
  EXPECT_GE(by_digest, 8 * static_cast<int>(bytes.size() - 8 - io::kCheckpointFront.size()));
}

TEST(Checkpoint, NoMissingOrAddedByteGoesUnnoticed) {
  const std::string bytes = io::format_checkpoint(sample_checkpoint(), "a");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = error_of([&] { io::parse_checkpoint(bytes.substr(0, size), "a"); });
    ASSERT_EQ(error.rfind("a: ", 0), 0u) << size << " bytes: " << error;
  }
  EXPECT_EQ(error_of([&] { io::parse_checkpoint(bytes.substr(0, bytes.size() - 1), "a"); }),
            "a: " + kDamaged);
  EXPECT_EQ(error_of([&] { io::parse_checkpoint(bytes + '\0', "a"); }), "a: " + kDamaged);
  EXPECT_EQ(error_of([&] { io::parse_checkpoint(bytes.substr(0, 100), "a"); }),
            fmt::format(
                "a: truncated: the header has {} bytes, 92 are left in the file",
                static_cast<unsigned char>(bytes[0]) + 256 * static_cast<unsigned char>(bytes[1])));
}

// Zeros in place of a lost page, or at the end of a file that was extended before it was filled.
TEST(Checkpoint, NoZeroedPartGoesUnnoticed) {
  const std::string bytes = io::format_checkpoint(sample_checkpoint(), "a");
  for (std::size_t begin = 0; begin < bytes.size(); begin += 16) {
    std::string altered = bytes;
    altered.replace(begin, altered.npos, bytes.size() - begin, '\0');
    if (altered == bytes) continue;
    EXPECT_EQ(error_of([&] { io::parse_checkpoint(altered, "a"); }).rfind("a: ", 0), 0u) << begin;
  }
}

// A checkpoint whose digest is right, with other strings in its metadata.
std::string with_strings(const std::string& strings) {
  std::string bytes =
      file_of(std::string(io::kCheckpointFront) + std::string(64, '0') + "\"" + strings + "}}");
  return bytes.replace(io::digest_place(bytes), 64, io::checkpoint_digest(bytes));
}

TEST(Checkpoint, EveryRuleHasItsError) {
  const std::string numbers = R"(,"step":"5","seed":"6","position":"7")",
                    texts = R"(,"config":"","tokenizer":"")";
  ASSERT_EQ(io::parse_checkpoint(with_strings(numbers + texts), "a").position, 7);
  const auto step = [&](const std::string& text) {
    return with_strings(R"(,"seed":"6","position":"7","step":")" + text + "\"" + texts);
  };
  const auto seed = [&](const std::string& text) {
    return with_strings(R"(,"step":"6","position":"7","seed":")" + text + "\"" + texts);
  };
  const auto not_step = [](const std::string& text) {
    return "not a checkpoint: 'step' must be an integer from 0 to 9223372036854775807: '" + text +
           "'";
  };
  const auto not_seed = [](const std::string& text) {
    return "not a checkpoint: 'seed' must be an integer from 0 to 4294967295: '" + text + "'";
  };
  const std::string ours = R"({"__metadata__":{"format":"tensorgrad checkpoint")";
  const std::pair<std::string, std::string> kBroken[] = {
      {with_strings(R"(,"seed":"6","position":"7")" + texts),
       "not a checkpoint: its metadata has no 'step'"},
      {with_strings(R"(,"step":"6","position":"7")" + texts),
       "not a checkpoint: its metadata has no 'seed'"},
      {with_strings(R"(,"step":"6","seed":"7")" + texts),
       "not a checkpoint: its metadata has no 'position'"},
      {with_strings(numbers + R"(,"tokenizer":"")"),
       "not a checkpoint: its metadata has no 'config'"},
      {with_strings(numbers + R"(,"config":"")"),
       "not a checkpoint: its metadata has no 'tokenizer'"},
      {step("-1"), not_step("-1")},
      {step("9223372036854775808"), not_step("9223372036854775808")},
      {step(""), not_step("")},
      {step("01"), not_step("01")},
      {step("-0"), not_step("-0")},
      {step("+1"), not_step("+1")},
      {step(" 1"), not_step(" 1")},
      {step("1 "), not_step("1 ")},
      {step("1e3"), not_step("1e3")},
      {step(std::string(100, '1')), not_step(std::string(60, '1') + "...")},
      {step(R"(\n\")"), not_step(R"(\n\")")},
      {seed("4294967296"), not_seed("4294967296")},
      {seed("-1"), not_seed("-1")},
      {with_strings(R"(,"seed":"6","step":"7","position":"x")" + texts),
       "not a checkpoint: 'position' must be an integer from 0 to 9223372036854775807: 'x'"},
      {with_strings(numbers + texts + R"(,"seed":"6")"), "the header: \"seed\" occurs twice"},
      // another version, or another front
      {file_of(ours + R"(,"version":"2"}})"),
       "unknown checkpoint version '2': only '1' is supported\n  hint: was it written by a newer "
       "tensorgrad?"},
      {file_of(ours + "}}"), "not a checkpoint: its metadata has no 'version'"},
      {file_of(ours + R"(,"version":"1"}})"), kDamaged},
      {file_of(R"({"__metadata__":{"sha256":"","version":"1")" + numbers + texts + "}}"), kDamaged},
  };
  for (const auto& [bytes, error] : kBroken)
    EXPECT_EQ(error_of([&, &own = bytes] { io::parse_checkpoint(own, "a"); }), "a: " + error);
}

}  // namespace
}  // namespace tensorgrad
