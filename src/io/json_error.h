// What a JSON parser says, as part of an error of our own.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace tensorgrad::io {

// The text without the library's "[json.exception.parse_error.101] " in front. It may quote what
// was read last: a long text keeps its beginning and its end, and what is not ASCII becomes '?'.
inline std::string reason(const nlohmann::json::exception& error) {
  std::string text = error.what();
  const std::size_t end = text.find("] ");
  if (text[0] == '[' && end != text.npos) text.erase(0, end + 2);
  if (constexpr std::size_t kFirst = 160, kLast = 60; text.size() > kFirst + 3 + kLast)
    text.replace(kFirst, text.size() - kFirst - kLast, "...");
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 127; }, '?');
  return text;
}

}  // namespace tensorgrad::io
