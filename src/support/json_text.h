// Writes JSON; json.h reads it.
//   JsonText json;
//   json.begin('{').field("name", "x").key("sizes").list(std::vector{2, 3}).end('}');
//   json.text()  // {"name":"x","sizes":[2,3]}
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tensorgrad {

class JsonText {
 public:
  // '{' or '[', and '}' or ']'.
  JsonText& begin(char bracket);
  JsonText& end(char bracket);
  JsonText& key(std::string_view name);

  JsonText& value(std::string_view text);  // bytes that are not UTF-8 become U+FFFD
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  // As few digits as give the number again; null if it is not finite.
  JsonText& value(double number);
  JsonText& value(float number);
  JsonText& value(bool truth) { return raw(truth ? "true" : "false"); }
  template <std::integral T>
  JsonText& value(T number) {
    return integer(static_cast<std::int64_t>(number));
  }
  // A value that is JSON already.
  JsonText& raw(std::string_view json);
  // A list of values.
  template <class List>
  JsonText& list(const List& values) {
    begin('[');
    for (const auto& one : values) value(one);
    return end(']');
  }

  template <class T>
  JsonText& field(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonText& integer(std::int64_t number);
  void separate();
  std::string text_;
};

}  // namespace tensorgrad
