#include "attributes.h"

#include <cmath>
#include <limits>

#include "support/fail.h"

namespace tensorgrad::tool {

Attributes::Attributes(const Json& object, std::string_view what) : object_(object), what_(what) {
  if (!object.is_object()) user_error("{}s must be an object: {}", what, object.dump());
}

const Json* Attributes::find(const char* key) {
  used_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Attributes::require(const char* key) {
  if (const Json* found = find(key)) return *found;
  user_error("the {} '{}' is missing", what_, key);
}

void Attributes::refuse(const char* key, const Json& value, const char* wanted) const {
  user_error("the {} '{}' must be {}: {}", what_, key, wanted, value.dump());
}

std::int64_t Attributes::as_integer(const char* key, const Json& value) const {
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0;
  if (value.is_number_integer() && !too_large) return value.get<std::int64_t>();
  if (value.is_number_float()) {  // 2.0 counts as an integer
    const double number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 1e15)
      return static_cast<std::int64_t>(number);
  }
  refuse(key, value, "an integer");
}

int Attributes::as_small(const char* key, const Json& value) const {
  const std::int64_t number = as_integer(key, value);
  if (number != static_cast<int>(number)) refuse(key, value, "a small integer");
  return static_cast<int>(number);
}

double Attributes::as_number(const char* key, const Json& value) const {
  if (!value.is_number()) refuse(key, value, "a number");
  return value.get<double>();
}

std::string Attributes::as_text(const char* key, const Json& value) const {
  if (!value.is_string()) refuse(key, value, "a string");
  return value.get<std::string>();
}

Pair Attributes::as_pair(const char* key, const Json& value) const {
  if (!value.is_array()) return as_integer(key, value);
  if (value.size() != 2) refuse(key, value, "an integer or a pair of them");
  return {as_integer(key, value[0]), as_integer(key, value[1])};
}

std::int64_t Attributes::integer(const char* key) { return as_integer(key, require(key)); }
std::int64_t Attributes::integer(const char* key, std::int64_t fallback) {
  return optional_integer(key).value_or(fallback);
}
std::optional<std::int64_t> Attributes::optional_integer(const char* key) {
  const Json* found = find(key);
  return found ? std::optional(as_integer(key, *found)) : std::nullopt;
}

double Attributes::number(const char* key) { return as_number(key, require(key)); }
double Attributes::number(const char* key, double fallback) {
  const Json* found = find(key);
  return found ? as_number(key, *found) : fallback;
}

std::string Attributes::text(const char* key) { return as_text(key, require(key)); }
std::string Attributes::text(const char* key, const std::string& fallback) {
  const Json* found = find(key);
  return found ? as_text(key, *found) : fallback;
}

std::vector<std::int64_t> Attributes::integers(const char* key) {
  const Json& list = require(key);
  if (!list.is_array()) refuse(key, list, "a list of integers");
  std::vector<std::int64_t> out;
  for (const Json& item : list) out.push_back(as_integer(key, item));
  return out;
}

int Attributes::small(const char* key) { return as_small(key, require(key)); }
int Attributes::small(const char* key, int fallback) {
  const Json* found = find(key);
  return found ? as_small(key, *found) : fallback;
}
Pair Attributes::pair(const char* key) { return as_pair(key, require(key)); }
Pair Attributes::pair(const char* key, Pair fallback) {
  return optional_pair(key).value_or(fallback);
}
std::optional<Pair> Attributes::optional_pair(const char* key) {
  const Json* found = find(key);
  return found ? std::optional(as_pair(key, *found)) : std::nullopt;
}

void Attributes::finish() const {
  for (const auto& [key, value] : object_.items())
    if (!used_.count(key)) user_error("unknown {} '{}': {}", what_, key, value.dump());
}

}  // namespace tensorgrad::tool
