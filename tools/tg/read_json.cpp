#include "read_json.h"

#include <algorithm>

#include "support/json.h"
#include "support/utf8.h"

namespace tensorgrad::tool {

namespace {

Json converted(const tensorgrad::Json& value) {
  if (value.is_object()) {
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();  // its own functions look for duplicates
    for (const auto& [name, each] : value.members())
      members.emplace_back(std::string(name), converted(each));
    return object;
  }
  if (value.is_list()) {
    Json list = Json::array();
    for (const tensorgrad::Json& item : value.items()) list.push_back(converted(item));
    return list;
  }
  if (value.is_text()) return std::string(value.text());
  if (value.is_boolean()) return value.boolean();
  if (const auto natural = value.natural()) return *natural;
  if (const auto integer = value.integer()) return *integer;
  if (value.is_number()) return value.number();
  return nullptr;
}

}  // namespace

Json parse_json(std::string_view text, int depth) {
  return converted(tensorgrad::parse_json(text, depth).root());
}

std::string shown(const Json& value) { return cut(value.dump()); }

std::string reason(const nlohmann::json::exception& error) {
  std::string text = error.what();
  const std::size_t end = text.find("] ");
  if (text[0] == '[' && end != text.npos) text.erase(0, end + 2);
  if (constexpr std::size_t kFirst = 160, kLast = 60; text.size() > kFirst + 3 + kLast)
    text.replace(kFirst, text.size() - kFirst - kLast, "...");
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 127; }, '?');
  return text;
}

}  // namespace tensorgrad::tool
