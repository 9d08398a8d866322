#include "support/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "support/utf8.h"

namespace tensorgrad {

namespace {

constexpr std::string_view kShort = "\b\f\n\r\t";

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (!character.valid)
      out += "\xEF\xBF\xBD";  // U+FFFD
    else if (character.code == '"' || character.code == '\\')
      out += {'\\', text[at]};
    else if (const auto known = kShort.find(text[at]);
             known != kShort.npos && character.code < 0x20)
      out += {'\\', "bfnrt"[known]};
    else if (character.code < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
    else
      out += text.substr(at, character.bytes);
    at += character.bytes;
  }
  out += '"';
}

template <class T>
std::string text_of(T number) {
  if (!std::isfinite(number)) return "null";
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";  // not an integer
  return text;
}

}  // namespace

void JsonText::separate() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':')
    text_ += ',';
}

JsonText& JsonText::begin(char bracket) {
  separate();
  text_ += bracket;
  return *this;
}
JsonText& JsonText::end(char bracket) {
  text_ += bracket;
  return *this;
}
JsonText& JsonText::key(std::string_view name) {
  separate();
  append_quoted(text_, name);
  text_ += ':';
  return *this;
}
JsonText& JsonText::value(std::string_view text) {
  separate();
  append_quoted(text_, text);
  return *this;
}
JsonText& JsonText::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}
JsonText& JsonText::integer(std::int64_t number) { return raw(fmt::format("{}", number)); }
JsonText& JsonText::value(double number) { return raw(text_of(number)); }
JsonText& JsonText::value(float number) { return raw(text_of(number)); }

}  // namespace tensorgrad
