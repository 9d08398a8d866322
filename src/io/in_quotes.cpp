#include "io/in_quotes.h"

#include <nlohmann/json.hpp>

namespace tensorgrad::io {

std::string cut(std::string text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.replace(end, text.npos, "...");
}

std::string in_quotes(const std::string& text) {
  using Json = nlohmann::json;
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return "'" + cut(json.substr(1, json.size() - 2)) + "'";
}

}  // namespace tensorgrad::io
