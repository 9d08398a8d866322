#include "support/json.h"

#include <fmt/format.h>

#include <limits>

#include "support/json_text.h"
#include "support/utf8.h"

namespace tensorgrad {

bool Json::boolean() const { return is_boolean() && bits_ != 0; }

double Json::number() const {
  if (kind_ == Kind::real) return real_;
  if (kind_ != Kind::integer) return 0;
  return negative_ ? static_cast<double>(static_cast<std::int64_t>(bits_))
                   : static_cast<double>(bits_);
}

std::string_view Json::text() const {
  return is_text() ? std::string_view(text_, size_) : std::string_view();
}

std::optional<std::int64_t> Json::integer() const {
  if (!is_integer() || (!negative_ && bits_ > std::numeric_limits<std::int64_t>::max())) return {};
  return static_cast<std::int64_t>(bits_);
}

std::optional<std::uint64_t> Json::natural() const {
  if (!is_integer() || negative_) return {};
  return bits_;
}

std::size_t Json::size() const { return is_list() || is_object() ? size_ : 0; }

const Json& Json::operator[](std::size_t index) const {
  const Json* item = this + 1;
  for (; index > 0; --index) item = item->behind();
  return *item;
}

const Json* Json::find(std::string_view name) const {
  for (const auto& [own, value] : members())
    if (own == name) return &value;
  return nullptr;
}

static void write(JsonText& out, const Json& value) {
  if (value.is_object()) {
    out.begin('{');
    for (const auto& [name, each] : value.members()) write(out.key(name), each);
    out.end('}');
  } else if (value.is_list()) {
    out.begin('[');
    for (const Json& each : value.items()) write(out, each);
    out.end(']');
  } else if (value.is_text()) {
    out.value(value.text());
  } else if (value.is_boolean()) {
    out.value(value.boolean());
  } else if (const auto natural = value.natural()) {
    out.raw(fmt::format("{}", *natural));
  } else if (const auto integer = value.integer()) {
    out.value(*integer);
  } else if (value.is_number()) {
    out.value(value.number());
  } else {
    out.raw("null");
  }
}

std::string Json::to_json() const {
  JsonText out;
  write(out, *this);
  return out.take();
}

std::string shown(const Json& value) { return cut(value.to_json()); }
std::string shown(std::string_view text) { return cut(JsonText().value(text).take()); }

}  // namespace tensorgrad
