// Safetensors files: reading returns what was written, values of all types are exact, and arbitrary
// bytes cause only a UserError.
#include "tensorgrad/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "tensorgrad/error.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_folder.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TensorFile sample() {
  TensorFile file;
  file.tensors.emplace("w", Array({2, 3}, std::vector<float>{1, -2, 3.5f, 0, -0.0f, 1e-40f}));
  file.tensors.emplace("flags", Array({3}, std::vector<std::int32_t>{1, 0, 1}, boolean));
  file.tensors.emplace("ids", Array({2}, std::vector<std::int32_t>{-2147483647 - 1, 2147483647}));
  file.tensors.emplace("scalar",
                       Array({}, std::vector<float>{std::numeric_limits<float>::infinity()}));
  file.tensors.emplace("nothing", Array({0, 4}, std::vector<float>{}));
  file.tensors.emplace(
      "gr\xc3\xb6\xc3\x9f"
      "e \"1\"",
      Array({1}, std::vector<float>{7}));
  file.metadata = {{"format", "pt"}, {"a \"quoted\" key", "line\nbreak"}};
  return file;
}

using SafetensorsOnDisk = TemporaryFolder;

TEST_F(SafetensorsOnDisk, WhatIsWrittenIsReadBack) {
  const TensorFile before = sample();
  write_safetensors(path_ / "a.safetensors", before);
  const TensorFile after = read_safetensors(path_ / "a.safetensors");
  EXPECT_EQ(after.metadata, before.metadata);
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (const auto& [name, array] : before.tensors) {
    const Array& got = after.tensors.at(name);
    EXPECT_EQ(got.dtype(), array.dtype()) << name;
    EXPECT_EQ(got.shape(), array.shape()) << name;
    if (array.dtype() != f32) {
      EXPECT_TRUE(std::equal(got.ints().begin(), got.ints().end(), array.ints().begin())) << name;
      continue;
    }
    for (std::size_t i = 0; i < array.floats().size(); ++i)
      EXPECT_EQ(bits_of(got.floats()[i]), bits_of(array.floats()[i])) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 1) << "a temporary file is left";
}

TEST_F(SafetensorsOnDisk, FilesThatCannotBeReadAreNamed) {
  const auto error = [](const fs::path& path) { return error_of([&] { read_safetensors(path); }); };
  EXPECT_EQ(error(path_ / "none"),
            (path_ / "none").string() + ": cannot read: No such file or directory");
  EXPECT_EQ(error(path_), path_.string() + ": cannot read: Is a directory");
  put(path_ / "short", "abc");
  EXPECT_EQ(error(path_ / "short"),
            (path_ / "short").string() + ": too short: 3 bytes cannot hold the header length");
}

TEST_F(SafetensorsOnDisk, AFailedWriteLeavesTheOldFile) {
  const fs::path path = path_ / "a.safetensors";
  write_safetensors(path, sample());
  TensorFile bad = sample();
  bad.tensors.emplace("__metadata__", Array({}, std::vector<float>{1}));
  const auto error = [](const fs::path& to, const TensorFile& file) {
    return error_of([&] { write_safetensors(to, file); });
  };
  EXPECT_EQ(error(path, bad), path.string() + ": a tensor must not be called __metadata__");
  bad = sample();
  bad.metadata["key"] = "\xff";
  EXPECT_EQ(error(path, bad), path.string() + ": names and metadata must be UTF-8");
  EXPECT_EQ(read_safetensors(path).tensors.size(), sample().tensors.size());
  const fs::path nowhere = path_ / "none" / "a.safetensors";
  EXPECT_EQ(error(nowhere, sample()),
            nowhere.string() + ": cannot write: No such file or directory");
}

TEST(Safetensors, TheBytesAreThoseOfTheFormat) {
  TensorFile file;
  file.tensors.emplace("a", Array({1}, std::vector<std::int32_t>{1}, boolean));
  file.tensors.emplace("b", Array({2}, std::vector<std::int32_t>{1, -1}));
  file.tensors.emplace("c", Array({}, std::vector<float>{1}));
  file.metadata = {{"k", "v"}};
  std::string header =
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},)"
      R"("c":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"a":{"dtype":"BOOL","shape":[1],"data_offsets":[12,13]}})";
  while (header.size() % 8 != 0) header += ' ';
  const std::string data("\x01\0\0\0\xff\xff\xff\xff\0\0\x80\x3f\x01", 13);
  EXPECT_EQ(format_safetensors(file, "a"), file_of(header, data));
  EXPECT_EQ(format_safetensors({}, "a"), file_of("{}      "));
}

TEST(Safetensors, HeadersOfOtherWritersAreRead) {
  // Any order of keys, any order of data, white space, no padding, tensors without elements.
  const std::string header =
      "{ \"late\": {\"shape\": [1], \"data_offsets\": [4, 8],\n \"dtype\": \"F32\"}, \"none\":"
      "{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[4,4]},"
      "\"early\":{\"data_offsets\":[0,4],\"dtype\":\"I32\",\"shape\":[1,1]}}";
  const TensorFile file =
      parse_safetensors(file_of(header, little_endian(7, 4) + little_endian(0x40000000, 4)), "a");
  EXPECT_EQ(file.tensors.at("late").item(), 2);
  EXPECT_EQ(file.tensors.at("early").item(), 7);
  EXPECT_EQ(file.tensors.at("none").shape(), (Shape{3, 0}));
  EXPECT_TRUE(parse_safetensors(file_of("{}"), "a").tensors.empty());
  EXPECT_TRUE(parse_safetensors(file_of("{} \t\n\r  "), "a").tensors.empty());
  // Tensors without elements may be anywhere between others, and their sizes may be large.
  const TensorFile empty = parse_safetensors(
      file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
              R"("a":{"dtype":"F64","shape":[0,1152921504606846976],"data_offsets":[1,1]},)"
              R"("c":{"dtype":"I8","shape":[1,1,1,1,1,1,1,0],"data_offsets":[0,0]}})",
              "\x05"),
      "a");
  EXPECT_EQ(empty.tensors.at("a").shape(), (Shape{0, std::int64_t{1} << 60}));
  EXPECT_EQ(empty.tensors.at("b").item(), 5);
  EXPECT_EQ(empty.tensors.at("c").count(), 0);
}

// Values from Python's struct: struct.pack('<f', struct.unpack('<e', ...)).
TEST(Safetensors, HalfPrecisionIsReadExactly) {
  const std::pair<std::uint16_t, std::uint32_t> kKnown[] = {
      {0x0000, 0x00000000}, {0x8000, 0x80000000}, {0x0001, 0x33800000}, {0x83ff, 0xb87fc000},
      {0x0400, 0x38800000}, {0x3c00, 0x3f800000}, {0x3555, 0x3eaaa000}, {0xc000, 0xc0000000},
      {0x7bff, 0x477fe000}, {0xfbff, 0xc77fe000}, {0x7c00, 0x7f800000}, {0xfc00, 0xff800000},
      {0x7e00, 0x7fc00000}};
  std::string all, known;
  for (int h = 0; h < 65536; ++h) all += little_endian(static_cast<std::uint64_t>(h), 2);
  const TensorFile file = parse_safetensors(file_of_type("F16", 65536, all), "a");
  const auto values = file.tensors.at("x").floats();
  for (const auto& [half, bits] : kKnown) EXPECT_EQ(bits_of(values[half]), bits) << half;
  for (int h = 0; h < 65536; ++h) {
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double sign = h & 0x8000 ? -1 : 1;
    const double wanted = exponent == 0
                              ? sign * mantissa / 16777216
                              : sign * (1 + mantissa / 1024.0) * std::pow(2.0, exponent - 15);
    const float got = values[static_cast<std::size_t>(h)];
    if (exponent < 31)
      EXPECT_EQ(got, wanted) << h;
    else
      EXPECT_TRUE(mantissa ? std::isnan(got) : got == sign * std::numeric_limits<float>::infinity())
          << h;
  }
}

TEST(Safetensors, Bfloat16IsTheUpperHalfOfAFloat) {
  std::string data;
  const std::uint16_t kBits[] = {0x0000, 0x8000, 0x3f80, 0xc049, 0x0001,
                                 0x7f7f, 0x7f80, 0xff80, 0x7fc0};
  for (const std::uint16_t bits : kBits) data += little_endian(bits, 2);
  const TensorFile file = parse_safetensors(file_of_type("BF16", std::size(kBits), data), "a");
  EXPECT_EQ(file.stored, (std::map<std::string, std::string>{{"x", "BF16"}}));
  for (std::size_t i = 0; i < std::size(kBits); ++i)
    EXPECT_EQ(bits_of(file.tensors.at("x").floats()[i]), std::uint32_t{kBits[i]} * 65536);
  EXPECT_EQ(file.tensors.at("x").floats()[3], -3.140625f);
}

// Bits of Python's struct.pack('<d', x) and struct.pack('<f', x).
TEST(Safetensors, DoublesAreRoundedToTheNearestFloat) {
  const std::pair<std::uint64_t, std::uint32_t> kKnown[] = {
      {0x3fb999999999999a, 0x3dcccccd},  // 0.1
      {0xbfd5555555555555, 0xbeaaaaab},  // -1/3
      {0x3ff0000010000000, 0x3f800000},  // 1 + 2^-24: a tie goes to the even side
      {0x3ff0000010000004, 0x3f800001},  // a little above the tie
      {0x3ff0000030000000, 0x3f800002},  // 1 + 3 * 2^-24: the other tie
      {0x4170000010000000, 0x4b800000},  // 2^24 + 1
      {0x36a0000000000000, 0x00000001},  // 2^-149, the smallest float
      {0x3690000000000000, 0x00000000},  // half of it
      {0x3698000000000000, 0x00000001},  // three quarters of it
      {0xb7a16c262777579c, 0x800116c2},  // -1e-40, subnormal
      {0x47efffffefffffff, 0x7f7fffff},  // the last double that is still the largest float
      {0x7ff0000000000000, 0x7f800000},  // infinity
      {0xfff0000000000000, 0xff800000},
  };
  std::string data;
  for (const auto& [wide, narrow] : kKnown) data += little_endian(wide, 8);
  data += little_endian(0x7ff8000000000000, 8);
  const TensorFile file = parse_safetensors(file_of_type("F64", std::size(kKnown) + 1, data), "a");
  const auto values = file.tensors.at("x").floats();
  for (std::size_t i = 0; i < std::size(kKnown); ++i)
    EXPECT_EQ(bits_of(values[i]), kKnown[i].second) << i;
  EXPECT_TRUE(std::isnan(values.back()));
}

TEST(Safetensors, IntegersBecomeI32) {
  struct Row {
    const char* dtype;
    int bytes;
    std::int64_t value;
  };
  const Row kRows[] = {{"U8", 1, 255},         {"I8", 1, -128},         {"U16", 2, 65535},
                       {"I16", 2, -32768},     {"U32", 4, 2147483647},  {"I32", 4, -2147483648},
                       {"U64", 8, 2147483647}, {"I64", 8, -2147483648}, {"I64", 8, 2147483647},
                       {"BOOL", 1, 1}};
  for (const Row& row : kRows) {
    const std::string data = little_endian(static_cast<std::uint64_t>(row.value), row.bytes);
    const TensorFile file = parse_safetensors(file_of_type(row.dtype, 1, data), "a");
    EXPECT_EQ(file.tensors.at("x").item(), static_cast<double>(row.value)) << row.dtype;
    EXPECT_EQ(file.tensors.at("x").dtype(), std::string_view(row.dtype) == "BOOL" ? boolean : i32);
  }
}

// Bytes changed, inserted, removed, repeated: the result is a file or a UserError.
TEST(Safetensors, NoBytesAreWorseThanAnError) {
  std::mt19937 random(20261);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const std::string original = format_safetensors(sample(), "a");
  const std::string digits = "0123456789-,:[]{}\"";
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = original;
    for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = below(bytes.size());
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes[at] = digits[below(digits.size())];
          break;
        case 2:
          bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
          break;
        case 3:
          bytes.resize(at);
          break;
        case 4:
          bytes.erase(at, 1 + below(8));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
      }
    }
    try {
      for (const auto& [name, array] : parse_safetensors(bytes, "a").tensors)
        ASSERT_EQ(static_cast<std::size_t>(array.count()),
                  array.dtype() == f32 ? array.floats().size() : array.ints().size());
    } catch (const UserError& error) {
      ASSERT_EQ(std::string(error.what()).rfind("a: ", 0), 0u) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 3000);  // the changes do reach the rules
  EXPECT_LT(refused, 5000);  // and some leave the file whole
}

}  // namespace
}  // namespace tensorgrad
