#include "io/in_quotes.h"

#include "support/json_text.h"

namespace tensorgrad::io {

std::string cut(std::string text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.replace(end, text.npos, "...");
}

std::string in_quotes(const std::string& text) {
  const std::string json = JsonText().value(text).take();
  return "'" + cut(json.substr(1, json.size() - 2)) + "'";
}

}  // namespace tensorgrad::io
