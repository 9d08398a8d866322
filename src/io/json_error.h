// What a JSON parser says, as part of an error of our own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tensorgrad::io {

// The text without the library's "[json.exception.parse_error.101] " in front.
inline std::string reason(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text[0] == '[' && end != text.npos ? text.substr(end + 2) : text;
}

}  // namespace tensorgrad::io
