// The reader of JSON and nlohmann-json accept the same texts and read the same values: of texts
// made at random, and of damaged ones.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/json.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

using namespace std::string_literals;
using Own = tensorgrad::Json;  // other tests have a Json of another kind
using Other = nlohmann::ordered_json;

constexpr int kDeep = 100;

bool is_same(const Own& own, const Other& other) {
  switch (other.type()) {
    case Other::value_t::null:
      return own.is_null();
    case Other::value_t::boolean:
      return own.is_boolean() && own.boolean() == other.get<bool>();
    case Other::value_t::number_unsigned:
      return own.natural() == other.get<std::uint64_t>();
    case Other::value_t::number_integer:
      return own.integer() == other.get<std::int64_t>();
    case Other::value_t::number_float:
      return own.is_number() && !own.is_integer() && own.number() == other.get<double>() &&
             std::signbit(own.number()) == std::signbit(other.get<double>());
    case Other::value_t::string:
      return own.is_text() && own.text() == other.get_ref<const std::string&>();
    case Other::value_t::array: {
      if (!own.is_list() || own.size() != other.size()) return false;
      std::size_t at = 0;
      for (const Own& item : own.items())
        if (!is_same(item, other[at++])) return false;
      return at == other.size();
    }
    case Other::value_t::object: {
      if (!own.is_object() || own.size() != other.size()) return false;
      auto at = other.begin();
      for (const auto& [name, value] : own.members()) {
        if (name != at.key() || !is_same(value, at.value())) return false;
        ++at;
      }
      return at == other.end();
    }
    default:
      return false;
  }
}

// Discarded if the text is not JSON, or has a duplicate name. (A NUL ends it for nlohmann-json.)
Other parse_other(const std::string& text) {
  std::vector<std::set<std::string>> names;
  bool twice = false;
  const auto look = [&](int, Other::parse_event_t event, Other& value) {
    if (event == Other::parse_event_t::object_start) names.emplace_back();
    if (event == Other::parse_event_t::object_end) names.pop_back();
    if (event == Other::parse_event_t::key)
      twice = twice || !names.back().insert(value.get<std::string>()).second;
    return true;
  };
  Other value = Other::parse(text, look, false);
  if (twice || text.find('\0') != text.npos) return Other(Other::value_t::discarded);
  return value;
}

void expect_same(const std::string& text) {
  const Other other = parse_other(text);
  std::string error;
  try {
    const JsonDocument own = parse_json(text, kDeep);
    EXPECT_TRUE(is_same(own.root(), other)) << text;
    const std::string written = own.root().to_json();
    EXPECT_TRUE(is_same(parse_json(written, kDeep).root(), other)) << text << "\n" << written;
  } catch (const UserError& refused) {
    error = refused.what();
  }
  EXPECT_EQ(error.empty(), !other.is_discarded()) << text << "\n" << error;
}

// Writes random JSON: each kind of value, each way to write a character, white space anywhere.
class JsonWriter {
 public:
  explicit JsonWriter(std::uint32_t seed) : random_(seed) {}

  // Below `count`. (The distributions of <random> differ between libraries.)
  std::size_t pick(std::size_t count) { return random_() % count; }
  template <class T, std::size_t count>
  T one_of(const T (&all)[count]) {
    return all[pick(count)];
  }

  std::string value(int depth) {
    std::string out = space();
    switch (pick(depth > 0 ? 8 : 5)) {
      case 0:
        out += one_of({"null", "true", "false"});
        break;
      case 1:
      case 2:
        out += number();
        break;
      case 3:
      case 4:
        out += text();
        break;
      case 5:
        out += list(depth);
        break;
      default:
        out += object(depth);
    }
    return out + space();
  }

 private:
  std::string space() {
    std::string out;
    while (pick(4) == 0) out += one_of({' ', '\n', '\r', '\t'});
    return out;
  }

  std::string digits(std::size_t most) {
    std::string out;
    for (std::size_t i = 1 + pick(most); i > 0; --i) out += static_cast<char>('0' + pick(10));
    return out;
  }

  std::string number() {
    if (pick(3) == 0)
      return one_of({"0",
                     "-0",
                     "-0.0",
                     "0.1",
                     "1E+2",
                     "5e-324",
                     "2e-324",
                     "1e-400",
                     "1e308",
                     "1.7976931348623157e308",
                     "1.7976931348623159e308",
                     "1e309",
                     "-1e400",
                     "9007199254740993",
                     "9007199254740993.0",
                     "4503599627370497.5",
                     "18446744073709551615",
                     "18446744073709551616",
                     "9223372036854775808",
                     "-9223372036854775808",
                     "-9223372036854775809",
                     "2.2250738585072011e-308",
                     "0.000000000000000000000000000000000000001e39",
                     "1e00000000000000000001"});
    std::string out = pick(2) ? "-" : "";
    out += pick(2) ? std::to_string(random_()) : pick(2) ? "0" : "7" + digits(25);
    if (pick(2)) out += "." + digits(20);
    if (pick(3) == 0) out += one_of({"e", "E", "e+", "e-", "E-"}) + digits(3);
    return out;
  }

  std::string text() {
    std::string out = "\"";
    while (pick(4) != 0)
      out += one_of({"a",
                     "b",
                     "0",
                     " ",
                     "\x7f",
                     "é",
                     "光",
                     "😀",
                     "\uFFFF",
                     "\U0010FFFF",
                     "\\n",
                     "\\\"",
                     "\\\\",
                     "\\/",
                     "\\b",
                     "\\f",
                     "\\r",
                     "\\t",
                     "\\u0041",
                     "\\u0000",
                     "\\u00e9",
                     "\\uFFFF",
                     "\\ud83d\\ude00",
                     "\\uDBFF\\uDFFF",
                     "[",
                     "{",
                     ",",
                     ":"});
    return out + "\"";
  }

  std::string list(int depth) {
    std::string out = "[";
    for (std::size_t i = pick(5); i > 0; --i) out += value(depth - 1) + (i > 1 ? "," : "");
    return out + (out.size() == 1 ? space() : "") + "]";
  }

  std::string object(int depth) {
    std::string out = "{";
    for (std::size_t i = pick(5); i > 0; --i)
      out += space() + text() + space() + ":" + value(depth - 1) + (i > 1 ? "," : "");
    return out + (out.size() == 1 ? space() : "") + "}";
  }

  std::mt19937 random_;
};

TEST(JsonAsTheOther, OnGeneratedTexts) {
  JsonWriter writer(1);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = writer.value(5);
    expect_same(text);
    accepted += !parse_other(text).is_discarded();
  }
  EXPECT_GT(accepted, 1000);  // the others have duplicate names or numbers that are too large
}

TEST(JsonAsTheOther, OnDamagedTexts) {
  const std::string kBytes = "\"\\{}[]:,0123456789.eE+-truefalsn \n\t/bu\x00\x01\x1f\x80\xc3\xff"s;
  JsonWriter writer(2);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = writer.value(3);
    for (std::size_t changes = 1 + writer.pick(2); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = writer.pick(text.size());
      const char byte = kBytes[writer.pick(kBytes.size())];
      switch (writer.pick(5)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1 + writer.pick(3));
          break;
        case 3:
          text.resize(at);
          break;
        default:
          text.insert(at, text.substr(writer.pick(text.size()), 1 + writer.pick(6)));
      }
    }
    expect_same(text);
    (parse_other(text).is_discarded() ? refused : accepted) += 1;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(JsonAsTheOther, OnAByteOrderMark) {
  expect_same("\xef\xbb\xbf[1]");
  expect_same("\xef\xbb\xbf");
  expect_same(" \xef\xbb\xbf[1]");
  expect_same("\xef\xbb[1]");
}

}  // namespace
}  // namespace tensorgrad
