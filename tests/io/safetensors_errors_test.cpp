// Every rule of the safetensors format, broken once, with the text of its error.
#include <gtest/gtest.h>

#include "tensorgrad/error.h"
#include "tensorgrad/safetensors.h"
#include "tests/io/safetensors_bytes.h"

namespace tensorgrad {
namespace {

std::string error_of_bytes(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "a.safetensors");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

struct Broken {
  std::string bytes, error;
};

TEST(Safetensors, EveryRuleHasItsError) {
  using namespace std::string_literals;
  const std::string four(4, '\0'), eight(8, '\0');
  const auto tensors = [](const std::string& a, const std::string& b) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                       a, b);
  };
  const Broken kBroken[] = {
      // the frame
      {"", "too short: 0 bytes cannot hold the header length"},
      {little_endian(3, 7), "too short: 7 bytes cannot hold the header length"},
      {little_endian(100'000'001, 8),
       "the header has 100000001 bytes, at most 100000000 are allowed\n  hint: is this a "
       "safetensors file?"},
      {little_endian(~0ull, 8) + "{}",
       "the header has 18446744073709551615 bytes, at most 100000000 are allowed\n  hint: is this "
       "a safetensors file?"},
      {little_endian(3, 8) + "{}", "truncated: the header has 3 bytes, 2 are left in the file"},
      {file_of(""), "the header does not start with '{'"},
      {file_of(" {}"), "the header does not start with '{'"},
      {file_of("[]"), "the header does not start with '{'"},
      {file_of("{\"x\""), "the header: not JSON: line 1, column 5: expected ':', found the end"},
      {file_of("{}{}"), "the header: not JSON: line 1, column 3: expected the end, found \"{}\""},
      {file_of(R"({"x":1,"x":2})"), "the header: \"x\" occurs twice"},
      {file_of(R"({"x":{"dtype":"F32","dtype":"F32"}})"), "the header: \"dtype\" occurs twice"},
      {file_of(R"({"x":1,"\u0078":2})"), "the header: \"x\" occurs twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})"),
       "the header: \"__metadata__\" occurs twice"},
      {file_of(R"({"x":[[[[[]]]]]})"), "the header: nested too deeply"},
      {file_of(R"({"x":)" + std::string(100000, '[')), "the header: nested too deeply"},
      {file_of("{\"\xff\":1}"), "the header: not JSON: line 1, column 3: not UTF-8"},
      {file_of("{\"" + std::string(1000, 'a')),
       "the header: not JSON: line 1, column 1003: expected '\"', found the end"},
      {file_of(R"({"\ud800":1})"), "the header: not JSON: line 1, column 3: an unpaired surrogate"},
      {file_of("\xef\xbb\xbf{}"), "the header does not start with '{'"},
      {file_of("{}\0hidden"s),
       "the header: not JSON: line 1, column 3: expected the end, found \"\\u0000hidden\""},
      // metadata
      {file_of(R"({"__metadata__":1})"), "__metadata__ must be an object of strings"},
      {file_of(R"({"__metadata__":null})"), "__metadata__ must be an object of strings"},
      {file_of(R"({"__metadata__":{"k":{}}})"), "__metadata__: 'k' must be a string: {}"},
      {file_of(R"({"__metadata__":{"k":1}})"), "__metadata__: 'k' must be a string: 1"},
      // one tensor
      {file_of(R"({"x":1})"), "tensor 'x': not an object: 1"},
      {file_of(R"({"x":{"shape":[],"data_offsets":[0,4]}})", four), "tensor 'x': dtype is missing"},
      {file_of(R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", four),
       "tensor 'x': shape is missing"},
      {file_of(R"({"x":{"dtype":"F32","shape":[]}})", four), "tensor 'x': data_offsets is missing"},
      {file_of(R"({"x":{"dtype":"F32","shape":[],"data_offsets":[0,4],"scale":2}})", four),
       "tensor 'x': unknown field 'scale'"},
      {file_of(R"({"x":{"dtype":4,"shape":[],"data_offsets":[0,4]}})", four),
       "tensor 'x': dtype must be a string: 4"},
      {file_of(entry("F33", "[]", "[0,4]"), four), "tensor 'x': unknown dtype 'F33'"},
      {file_of(entry("F8_E4M3", "[4]", "[0,4]"), four),
       "tensor 'x': dtype F8_E4M3 is not supported: use F16, BF16, F32, F64, BOOL or integers"},
      {file_of(entry("F4", "[8]", "[0,4]"), four),
       "tensor 'x': dtype F4 is not supported: use F16, BF16, F32, F64, BOOL or integers"},
      {file_of(entry("f32", "[]", "[0,4]"), four), "tensor 'x': unknown dtype 'f32'"},
      {file_of(entry("F32", "1", "[0,4]"), four), "tensor 'x': shape must be a list: 1"},
      {file_of(entry("F32", "[-1]", "[0,4]"), four),
       "tensor 'x': shape must contain non-negative integers: -1"},
      {file_of(entry("F32", "[1.0]", "[0,4]"), four),
       "tensor 'x': shape must contain non-negative integers: 1.0"},
      {file_of(entry("F32", "[\"1\"]", "[0,4]"), four),
       "tensor 'x': shape must contain non-negative integers: \"1\""},
      {file_of(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), four),
       "tensor 'x': 9 dimensions, at most 8 are supported"},
      {file_of(entry("F32", "[4294967296,4294967296]", "[0,0]")),
       "tensor 'x': the shape is too large"},
      {file_of(entry("F32", "[4611686018427387904]", "[0,0]")),
       "tensor 'x': the shape is too large"},
      {file_of(entry("U8", "[0,18446744073709551615]", "[0,0]")),
       "tensor 'x': the shape is too large"},
      {file_of(entry("U8", "[0,1152921504606846977]", "[0,0]")),
       "tensor 'x': the shape is too large"},
      {file_of(entry("U8", "[2,576460752303423489]", "[0,0]")),
       "tensor 'x': the shape is too large"},
      {file_of(entry("F64", "[1152921504606846976]", "[0,0]")),
       "tensor 'x': F64[1152921504606846976] needs 9223372036854775808 bytes, data_offsets have 0"},
      {file_of(entry("F32", "[]", "[0,0]")),
       "tensor 'x': F32[] needs 4 bytes, data_offsets have 0"},
      {file_of(entry("F32", "[0]", "[0,4]"), four),
       "tensor 'x': F32[0] needs 0 bytes, data_offsets have 4"},
      {file_of(entry("F32", "[]", "[0.0,4]"), four),
       "tensor 'x': data_offsets must contain non-negative integers: 0.0"},
      {file_of(entry("F32", "[]", "[0,4,8]"), four),
       "tensor 'x': data_offsets must be [begin, end]: [0,4,8]"},
      {file_of(entry("F32", "[]", "4"), four), "tensor 'x': data_offsets must be [begin, end]: 4"},
      {file_of(entry("F32", "[]", "[-4,0]"), four),
       "tensor 'x': data_offsets must contain non-negative integers: -4"},
      {file_of(entry("F32", "[]", "[18446744073709551616,4]"), four),
       "tensor 'x': data_offsets must contain non-negative integers: 1.8446744073709552e+19"},
      {file_of(entry("F32", "[]", "[4,0]"), four), "tensor 'x': it ends before it begins: 4 to 0"},
      {file_of(entry("F32", "[2]", "[0,8]"), four),
       "tensor 'x': it ends at byte 8, past the 4 bytes of data"},
      {file_of(entry("F32", "[2]", "[0,4]"), four),
       "tensor 'x': F32[2] needs 8 bytes, data_offsets have 4"},
      {file_of(entry("F16", "[]", "[0,4]"), four),
       "tensor 'x': F16[] needs 2 bytes, data_offsets have 4"},
      // all tensors together
      {file_of(tensors("[0,4]", "[2,6]"), eight),
       "tensor 'b': it begins at byte 2, inside the tensor before it, which ends at 4"},
      {file_of(tensors("[0,4]", "[0,4]"), four),
       "tensor 'b': it begins at byte 0, inside the tensor before it, which ends at 4"},
      {file_of(tensors("[5,9]", "[0,4]"), eight + "\0"s),
       "tensor 'a': bytes 4 to 5 before it belong to no tensor"},
      {file_of(tensors("[0,4]", "[4,8]"), eight + four), "the last 4 bytes belong to no tensor"},
      {file_of("{}", four), "the last 4 bytes belong to no tensor"},
      // numbers
      {file_of_type("BOOL", 1, "\x02"), "tensor 'x': 2 is not a BOOL: it must be 0 or 1"},
      {file_of_type("I64", 1, little_endian(2147483648, 8)),
       "tensor 'x': 2147483648 does not fit i32"},
      {file_of_type("I64", 1, little_endian(static_cast<std::uint64_t>(-2147483649), 8)),
       "tensor 'x': -2147483649 does not fit i32"},
      {file_of_type("U64", 1, little_endian(~0ull, 8)),
       "tensor 'x': 18446744073709551615 does not fit i32"},
      {file_of_type("U32", 1, little_endian(2147483648, 4)),
       "tensor 'x': 2147483648 does not fit i32"},
      {file_of_type("F64", 1, little_endian(0x47effffff0000000, 8)),
       "tensor 'x': 3.4028235677973366e+38 does not fit f32"},
  };
  for (const Broken& broken : kBroken)
    EXPECT_EQ(error_of_bytes(broken.bytes), "a.safetensors: " + broken.error);
}

TEST(Safetensors, TypesOfTheFormatThatAreNotReadAreNamed) {
  for (const std::string dtype : {"C64", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ",
                                  "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4"})
    EXPECT_EQ(error_of_bytes(file_of_type(dtype, 0, "")),
              "a.safetensors: tensor 'x': dtype " + dtype +
                  " is not supported: use F16, BF16, F32, F64, BOOL or integers");
}

TEST(Safetensors, OddNamesAreEscapedAndCutInErrors) {
  const auto named = [](const std::string& name) {
    return error_of_bytes(file_of("{\"" + name + "\":1}"));
  };
  EXPECT_EQ(named(R"(a\n\u0000\"b\\)"),
            R"(a.safetensors: tensor 'a\n\u0000\"b\\': not an object: 1)");
  EXPECT_EQ(named(""), "a.safetensors: tensor '': not an object: 1");
  const std::string umlaut = "\xc3\xbc";
  std::string umlauts;
  for (int i = 0; i < 29; ++i) umlauts += umlaut;
  EXPECT_EQ(named(umlauts + "xx"), "a.safetensors: tensor '" + umlauts + "xx': not an object: 1");
  EXPECT_EQ(named(umlauts + "x" + umlaut + "x"),
            "a.safetensors: tensor '" + umlauts + "x...': not an object: 1")
      << "cut inside of a character";
  const std::string deep = R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0],")" +
                           std::string(99, 'k') + R"(":1}})";
  EXPECT_EQ(error_of_bytes(file_of(deep)),
            "a.safetensors: tensor 'x': unknown field '" + std::string(60, 'k') + "...'");
}

TEST(Safetensors, LongValuesAreCutInErrors) {
  const std::string error = error_of_bytes(file_of(R"({"x":")" + std::string(1000, 'a') + R"("})"));
  EXPECT_EQ(error, "a.safetensors: tensor 'x': not an object: \"" + std::string(59, 'a') + "...");
}

}  // namespace
}  // namespace tensorgrad
