// Errors of the JSON parser as part of our own errors.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace tensorgrad::io {

// The parser's message without the prefix "[json.exception.parse_error.101] ". It may quote the
// last input: a long text keeps its beginning and its end, and non-ASCII characters become '?'.
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
