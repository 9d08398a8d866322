#include "io/strict_reader.h"

#include <set>
#include <system_error>
#include <vector>

#include "io/json_error.h"
#include "io/unicode.h"
#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::io {
namespace {

using Json = nlohmann::json;

// Fit for an error: cut between characters, and UTF-8.
std::string shortened(std::string_view text, std::size_t bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (at + character.bytes > bytes) return out + "...";
    out += character.valid ? text.substr(at, character.bytes) : "\xef\xbf\xbd";
    at += character.bytes;
  }
  return out;
}


}  // namespace

Json parse_json(std::string_view text, int depth) {
  // The parser takes a NUL for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    user_error("not JSON: byte {} is NUL", nul);
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int level, Json::parse_event_t event, Json& parsed) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && level >= depth) user_error("nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      user_error("{} is there twice", shown(parsed));
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    user_error("not JSON: {}", shortened(reason(error), 200));
  }
}

std::string shown(const Json& value) {
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

std::string read_limited(const std::filesystem::path& path, std::size_t max_bytes) {
  std::error_code ignored;  // whoever reads will say it
  const std::uintmax_t size = std::filesystem::file_size(path, ignored);
  if (!ignored && size > max_bytes) user_error("{}: {} bytes, at most {} are allowed", path.string(), size, max_bytes);
  return read_file(path);
}

}  // namespace tensorgrad::io
