#include "io/strict_reader.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "io/json_error.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/json_text.h"
#include "support/utf8.h"

namespace tensorgrad::io {
namespace {

using Json = nlohmann::json;

// Shortens a text for an error: cut between characters, valid UTF-8.
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

// Builds a value from the parser's events. The parser's own callback is too slow: at the end of
// each entry it walks all earlier entries of the object, and 20,000 tensors took seconds.
template <class Value>
class Builder : public Value::json_sax_t {
 public:
  explicit Builder(int depth) : depth_(usize(depth)) {}

  Value take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Value::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(Value::object()); }
  bool start_array(std::size_t) override { return open(Value::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }
  bool key(std::string& name) override {
    Level& level = open_.back();
    if (!level.keys.insert(name).second) user_error("{} occurs twice", shown(name));
    level.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    user_error("not JSON: {}", reason(error));
  }

 private:
  // An incomplete object or array. Its address is stable, because nothing is added to its parent
  // before it is complete.
  struct Level {
    Value* value;
    std::string key = {};  // of the next entry
    std::unordered_set<std::string> keys = {};
  };

  Value* place(Value&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Level& level = open_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    auto& object = level.value->template get_ref<typename Value::object_t&>();
    if constexpr (requires { object.push_back({level.key, value}); })  // ordered_json: vector
      return &object.emplace_back(std::move(level.key), std::move(value)).second;
    else
      return &object.emplace(std::move(level.key), std::move(value)).first->second;
  }

  bool add(Value value) { return place(std::move(value)), true; }

  bool open(Value value) {
    if (open_.size() == depth_) user_error("nested too deeply");
    Value* placed = place(std::move(value));
    open_.push_back({placed});
    return true;
  }

  std::size_t depth_;
  Value root_;
  std::vector<Level> open_;
};

}  // namespace

template <class Value>
Value parse_json(std::string_view text, int depth) {
  // The parser treats a NUL as the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    user_error("not JSON: byte {} is NUL", nul);
  Builder<Value> builder(depth);
  Value::sax_parse(text, &builder);
  return builder.take();
}

template nlohmann::json parse_json(std::string_view text, int depth);
template nlohmann::ordered_json parse_json(std::string_view text, int depth);

// As value.dump() would, whose code takes more room in a page's download.
static void write(JsonText& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      out.begin('{');
      for (const auto& [name, each] : value.items()) write(out.key(name), each);
      out.end('}');
      return;
    case Json::value_t::array:
      out.begin('[');
      for (const Json& each : value) write(out, each);
      out.end(']');
      return;
    case Json::value_t::string:
      out.value(value.get_ref<const std::string&>());
      return;
    case Json::value_t::boolean:
      out.value(value.get<bool>());
      return;
    case Json::value_t::number_integer:
      out.value(value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      out.raw(fmt::format("{}", value.get<std::uint64_t>()));
      return;
    case Json::value_t::number_float:
      out.value(value.get<double>());
      return;
    default:
      out.raw("null");
  }
}

std::string shown(const Json& value) {
  JsonText text;
  write(text, value);
  return shortened(text.text(), 60);
}

}  // namespace tensorgrad::io
