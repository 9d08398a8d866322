// What JsonText writes is what nlohmann-json reads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/json_text.h"

namespace tensorgrad {
namespace {

using nlohmann::json;

TEST(JsonText, WritesWhatItsExampleSays) {
  JsonText text;
  text.begin('{').field("name", "x").key("sizes").list(std::vector{2, 3}).end('}');
  EXPECT_EQ(text.text(), R"({"name":"x","sizes":[2,3]})");
}

TEST(JsonText, SeparatesValuesAtEveryDepth) {
  JsonText text;
  text.begin('[').begin('[').end(']').begin('{').end('}').value(true).begin('[').value(1);
  text.begin('{').field("a", "[").field("b", ":").key("c").raw("null").end('}').end(']');
  EXPECT_EQ(json::parse(text.end(']').take()),
            json::parse(R"([[],{},true,[1,{"a":"[","b":":","c":null}]])"));
}

TEST(JsonText, EscapesEveryByteThatJsonRefuses) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\xC3\xA9\xF0\x9F\x98\x80";  // U+E9, U+1F600
  JsonText text;
  text.begin('{').field(all, all).end('}');
  EXPECT_EQ(json::parse(text.text()).at(all).get<std::string>(), all);
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  JsonText text;
  text.value(std::string_view("a\xFF\xC3|\xED\xA0\x80\xF0\x9F\x98"));
  EXPECT_EQ(json::parse(text.text()).get<std::string>(),
            "a\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(JsonText, KeepsTheBitsOfNumbers) {
  for (const double number :
       {0.0, -0.0, 1.0, 0.1, 1e-5, 1e22, -2.5e-300, 5e-324, std::numeric_limits<double>::max()}) {
    JsonText text;
    text.value(number);
    const auto read = json::parse(text.text()).get<double>();
    EXPECT_EQ(read, number) << text.text();
    EXPECT_EQ(std::signbit(read), std::signbit(number)) << text.text();
  }
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    JsonText text;
    text.value(number);
    EXPECT_EQ(text.text(), "null");
  }
  JsonText shortest;
  EXPECT_EQ(shortest.begin('[').value(1e-5f).value(0.1f).value(3.0f).end(']').text(),
            "[1e-05,0.1,3.0]");
  JsonText text;
  text.begin('[').value(std::numeric_limits<std::int64_t>::min()).value(std::size_t{7}).end(']');
  EXPECT_EQ(text.text(), "[-9223372036854775808,7]");
}

}  // namespace
}  // namespace tensorgrad
