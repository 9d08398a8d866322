// Values of JSON texts, and what is refused. Texts made at random are in json_random_test.cpp.
#include "support/json.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/error_of.h"

namespace tensorgrad {
namespace {

using namespace std::string_literals;
using Own = tensorgrad::Json;  // other tests have a Json of another kind

std::string error_in(std::string_view text, int depth = 100) {
  return error_of([&] { parse_json(text, depth); });
}

// ---- values

TEST(Json, ReadsWhatItsExampleSays) {
  const JsonDocument document = parse_json(R"({"name": "x", "sizes": [2, 3]})", 2);
  EXPECT_EQ(document.root().find("name")->text(), "x");
  EXPECT_EQ(document.root().find("sizes")->size(), 2u);
}

TEST(Json, ValuesOfEveryKind) {
  const JsonDocument document =
      parse_json(R"([null, true, false, 7, -7, 1.5, "x", [], {}, [[1], {"a": 2}, 3]])", 3);
  const Own& list = document.root();
  ASSERT_TRUE(list.is_list());
  ASSERT_EQ(list.size(), 10u);
  EXPECT_TRUE(list[0].is_null());
  EXPECT_TRUE(list[1].is_boolean() && list[1].boolean());
  EXPECT_TRUE(list[2].is_boolean() && !list[2].boolean());
  EXPECT_TRUE(list[3].is_integer() && list[3].is_number());
  EXPECT_EQ(list[3].integer(), 7);
  EXPECT_EQ(list[3].natural(), 7u);
  EXPECT_EQ(list[3].number(), 7);
  EXPECT_EQ(list[4].integer(), -7);
  EXPECT_EQ(list[4].natural(), std::nullopt);
  EXPECT_EQ(list[4].number(), -7);
  EXPECT_TRUE(list[5].is_number() && !list[5].is_integer());
  EXPECT_EQ(list[5].number(), 1.5);
  EXPECT_EQ(list[5].integer(), std::nullopt);
  EXPECT_TRUE(list[6].is_text());
  EXPECT_EQ(list[6].text(), "x");
  EXPECT_TRUE(list[7].is_list() && list[7].size() == 0);
  EXPECT_TRUE(list[8].is_object() && list[8].size() == 0);
  EXPECT_EQ(list[9][0][0].integer(), 1);
  EXPECT_EQ(list[9][1].find("a")->integer(), 2);
  EXPECT_EQ(list[9][2].integer(), 3);
}

TEST(Json, ValuesOfOtherKindsAreNeutral) {
  const JsonDocument document = parse_json(R"([null, true, 7, 1.5, "x", [1], {"a": 1}])", 2);
  const Own& list = document.root();
  for (const Own& item : list.items()) {
    EXPECT_EQ(item.boolean(), item.is_boolean());
    EXPECT_EQ(item.number() != 0, item.is_number());
    EXPECT_EQ(item.text().empty(), !item.is_text());
    EXPECT_EQ(item.integer().has_value(), item.is_integer());
    EXPECT_EQ(item.natural().has_value(), item.is_integer());
    EXPECT_EQ(item.size() != 0, item.is_list() || item.is_object());
    EXPECT_EQ(item.find("a") != nullptr, item.is_object());
    EXPECT_EQ(item.items().begin() != item.items().end(), item.is_list());
    EXPECT_EQ(item.members().begin() != item.members().end(), item.is_object());
  }
}

TEST(Json, MembersKeepTheOrderOfTheText) {
  const JsonDocument document = parse_json(R"({"b": [1, {"x": 2}], "a": {"b": 3}, "": 4})", 3);
  std::string all;
  for (const auto& [name, value] : document.root().members())
    all += std::string(name) + value.to_json() + ";";
  EXPECT_EQ(all, R"(b[1,{"x":2}];a{"b":3};4;)");
  EXPECT_EQ(document.root().find("")->integer(), 4);
  EXPECT_EQ(document.root().find("x"), nullptr) << "of another object";
}

TEST(Json, IntegersAreExact) {
  const JsonDocument document = parse_json(
      "[9223372036854775807, 9223372036854775808, 18446744073709551615, "
      "18446744073709551616, -9223372036854775808, -9223372036854775809, -0]",
      1);
  const Own& list = document.root();
  EXPECT_EQ(list[0].integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(list[1].integer(), std::nullopt);
  EXPECT_EQ(list[1].natural(), std::uint64_t{1} << 63);
  EXPECT_EQ(list[1].number(), 0x1p63);
  EXPECT_EQ(list[2].natural(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(list[3].is_integer());
  EXPECT_EQ(list[3].number(), 0x1p64);
  EXPECT_EQ(list[4].integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(list[5].is_integer());
  EXPECT_EQ(list[6].integer(), 0);
  EXPECT_EQ(list[6].natural(), 0u);
}

TEST(Json, ADocumentKeepsItsTextsWhenItMoves) {
  JsonDocument first = parse_json(std::string("[\"short\"]"), 1);
  const JsonDocument second = std::move(first);
  EXPECT_EQ(second.root()[0].text(), "short");
}

TEST(Json, IsWrittenWithoutWhiteSpace) {
  for (const char* text :
       {"null", "[]", "{}", "18446744073709551615", "-9223372036854775808", "1e+308", "5e-324",
        "-0.0", R"("\u0000\n\"\\é😀")", R"({"b":[true,false,null,{}],"a":{"c":[1,[2.5]]}})"})
    EXPECT_EQ(parse_json(text, 4).root().to_json(), text);
  EXPECT_EQ(parse_json(" { \"a\" :\r\n[ 1 ,\t2 ] } ", 2).root().to_json(), R"({"a":[1,2]})");
}

TEST(Json, IsShownOnOneLineAndCut) {
  EXPECT_EQ(shown("a\n\xff"), "\"a\\n\uFFFD\"");
  EXPECT_EQ(shown(std::string(57, 'a') + "éé"), "\"" + std::string(57, 'a') + "é...");
  EXPECT_EQ(shown(std::string(58, 'a') + "éé"), "\"" + std::string(58, 'a') + "...");
  const std::string long_list = "[" + std::string(100, ' ') + "\"" + std::string(100, 'b') + "\"]";
  EXPECT_EQ(shown(parse_json(long_list, 1).root()), "[\"" + std::string(58, 'b') + "...");
}

// A program may have chosen a locale with a decimal comma.
TEST(Json, NumbersDoNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"})
    if (std::setlocale(LC_NUMERIC, locale)) {
      EXPECT_EQ(parse_json("1.5e1", 1).root().number(), 15) << locale;
    }
  std::setlocale(LC_NUMERIC, before.c_str());
}

// ---- what is refused

TEST(JsonErrors, SayWhereAndWhatWasExpected) {
  const std::pair<std::string, std::string> rows[] = {
      {"", "line 1, column 1: expected a value, found the end"},
      {" \n\t", "line 2, column 2: expected a value, found the end"},
      {"x", "line 1, column 1: expected a value, found \"x\""},
      {"NaN", "line 1, column 1: expected a value, found \"NaN\""},
      {"tru", "line 1, column 1: expected a value, found \"tru\""},
      {"True", "line 1, column 1: expected a value, found \"True\""},
      {"nulll", "line 1, column 5: expected the end, found \"l\""},
      {"[1,\n 2,\n x]", "line 3, column 2: expected a value, found \"x]\""},
      {"[\"é😀\", x]", "line 1, column 8: expected a value, found \"x]\""},
      {"[1 2]", "line 1, column 4: expected ',' or ']', found \"2]\""},
      {"[1,]", "line 1, column 4: expected a value, found \"]\""},
      {"[", "line 1, column 2: expected a value, found the end"},
      {"[1", "line 1, column 3: expected ',' or ']', found the end"},
      {"[1}", "line 1, column 3: expected ',' or ']', found \"}\""},
      {"]", "line 1, column 1: expected a value, found \"]\""},
      {"{", "line 1, column 2: expected a name in quotes, found the end"},
      {"{a: 1}", "line 1, column 2: expected a name in quotes, found \"a: 1}\""},
      {"{\"a\" 1}", "line 1, column 6: expected ':', found \"1}\""},
      {"{\"a\":}", "line 1, column 6: expected a value, found \"}\""},
      {"{\"a\":1", "line 1, column 7: expected ',' or '}', found the end"},
      {"{\"a\":1,}", "line 1, column 8: expected a name in quotes, found \"}\""},
      {"{\"a\":1]", "line 1, column 7: expected ',' or '}', found \"]\""},
      {"{} // why", "line 1, column 4: expected the end, found \"// why\""},
      {"{}\0{"s, "line 1, column 3: expected the end, found \"\\u0000{\""},
      {"{}" + std::string(1, '\0'), "line 1, column 3: expected the end, found \"\\u0000\""},
      {"1 é" + std::string(50, 'x'),
       "line 1, column 3: expected the end, found \"é" + std::string(18, 'x') + "\""},
      {"1 " + std::string(19, 'x') + "é",
       "line 1, column 3: expected the end, found \"" + std::string(19, 'x') + "\""},
      // numbers
      {"-", "line 1, column 2: expected a digit, found the end"},
      {"-x", "line 1, column 2: expected a digit, found \"x\""},
      {"+1", "line 1, column 1: expected a value, found \"+1\""},
      {".5", "line 1, column 1: expected a value, found \".5\""},
      {"01", "line 1, column 2: expected the end, found \"1\""},
      {"1.", "line 1, column 3: expected a digit, found the end"},
      {"1.e5", "line 1, column 3: expected a digit, found \"e5\""},
      {"1e+", "line 1, column 4: expected a digit, found the end"},
      {"1e+-5", "line 1, column 4: expected a digit, found \"-5\""},
      {"0x10", "line 1, column 2: expected the end, found \"x10\""},
      {"[0, 1e999]", "line 1, column 5: the number is too large"},
      {"-1e309", "line 1, column 1: the number is too large"},
      {std::string(400, '9'), "line 1, column 1: the number is too large"},
      // texts
      {"\"a", "line 1, column 3: expected '\"', found the end"},
      {"'a'", "line 1, column 1: expected a value, found \"'a'\""},
      {"\"a\n\"", "line 1, column 3: a control character in a text must be escaped"},
      {"\"a\0\""s, "line 1, column 3: a control character in a text must be escaped"},
      {R"("a\x")", R"(line 1, column 3: expected an escape such as \n or \u0041, found "\\x\"")"},
      {R"("\)", R"(line 1, column 2: expected an escape such as \n or \u0041, found "\\")"},
      {"\"\\\0\""s,
       R"(line 1, column 2: expected an escape such as \n or \u0041, found "\\\u0000\"")"},
      {R"("\u12x4")", R"(line 1, column 6: expected four hexadecimal digits, found "x4\"")"},
      {R"("\u12)", R"(line 1, column 6: expected four hexadecimal digits, found the end)"},
      {R"("\ud800")", "line 1, column 2: an unpaired surrogate"},
      {R"("\udc00")", "line 1, column 2: an unpaired surrogate"},
      {R"("\udc00\udc00")", "line 1, column 2: an unpaired surrogate"},
      {R"("\ud800\ud800")", "line 1, column 2: an unpaired surrogate"},
      {R"("\ud800\n")", "line 1, column 2: an unpaired surrogate"},
      {R"("\ud800 \udc00")", "line 1, column 2: an unpaired surrogate"},
      {"\"\xff\"", "line 1, column 2: not UTF-8"},
      {"\"\xc3\"", "line 1, column 2: not UTF-8"},
      {"\"\xc0\x80\"", "line 1, column 2: not UTF-8"},
      {"\"\xed\xa0\x80\"", "line 1, column 2: not UTF-8"},
      {"\"\xf4\x90\x80\x80\"", "line 1, column 2: not UTF-8"},
      {"\"\xf0\x9f\x98", "line 1, column 2: not UTF-8"},
      {"\xff", "line 1, column 1: expected a value, found \"\uFFFD\""},
      {"\xef\xbb", "line 1, column 1: expected a value, found \"\uFFFD\uFFFD\""},
  };
  for (const auto& [text, error] : rows) EXPECT_EQ(error_in(text), "not JSON: " + error) << text;
}

TEST(JsonErrors, OfTwoMembersOfOneName) {
  EXPECT_EQ(error_in(R"({"a": 1, "b": 2, "a": 3})"), "\"a\" occurs twice");
  EXPECT_EQ(error_in(R"({"x": 1, "\u0078": 2})"), "\"x\" occurs twice");
  EXPECT_EQ(error_in(R"([{"a": {"": 1, "b": {}, "": 1}}])"), "\"\" occurs twice");
  EXPECT_EQ(error_in(R"({"a": {"a": {"a": 1}, "b": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]})"),
            "no error");
}

TEST(JsonErrors, OfNesting) {
  EXPECT_EQ(error_in("[[1]]", 2), "no error");
  EXPECT_EQ(error_in("[[[1]]]", 2), "nested too deeply");
  EXPECT_EQ(error_in(R"({"a": [{}]})", 2), "nested too deeply");
  EXPECT_EQ(error_in("7", 0), "no error");
  EXPECT_EQ(error_in("{}", 0), "nested too deeply");
  EXPECT_EQ(error_in(std::string(1'000'000, '[')), "nested too deeply");
}

TEST(JsonErrors, OfATextOfFourGiB) {
  if constexpr (sizeof(std::size_t) > 4) {
    const std::string_view huge(" ", std::size_t{1} << 32);  // refused before it is read
    EXPECT_EQ(error_in(huge),
              "not JSON: the text has 4294967296 bytes, at most 4294967295 are allowed");
  }
}

TEST(Json, ManyMembers) {
  constexpr int kMembers = 100'000;
  std::string text = "{";
  for (int i = 0; i < kMembers; ++i) text += "\"name " + std::to_string(i * 7919LL) + "\":0,";
  EXPECT_EQ(parse_json(text + "\"\":1}", 1).root().size(), kMembers + 1u);
  EXPECT_EQ(error_in(text + "\"name 7919\":1}"), "\"name 7919\" occurs twice");
}

}  // namespace
}  // namespace tensorgrad
