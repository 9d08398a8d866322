// Reads JSON objects by name and type.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "c/arguments.h"
#include "support/fail.h"
#include "support/text.h"
#include "support/words.h"

namespace tensorgrad {

template <>
struct Words<NonFinite> {
  static constexpr const char* kWhat = "non_finite";
  static constexpr Word<NonFinite> kAll[] = {
      {"fail", NonFinite::fail}, {"skip", NonFinite::skip}, {"ignore", NonFinite::ignore}};
};

}  // namespace tensorgrad

namespace tensorgrad::c {

// Reads an object by name. finish() refuses names that nothing asked for.
class Object {
 public:
  Object(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json.is_object()) user_error("{} must be an object: {}", what_, shown(json));
  }

  const Json* find(const char* name) {
    asked_.emplace_back(name);
    const Json* found = json_.find(name);
    return found && !found->is_null() ? found : nullptr;
  }
  // Sets `to` if the name is there.
  template <class T>
  void read(const char* name, T& to) {
    if (const Json* value = find(name)) to = as<T>(name, *value);
  }
  template <class T>
  T require(const char* name) {
    if (const Json* value = find(name)) return as<T>(name, *value);
    user_error("{}: '{}' is missing", what_, name);
  }
  void finish() const {
    for (const auto& [name, value] : json_.members())
      if (std::find(asked_.begin(), asked_.end(), name) == asked_.end())
        user_error("{}: unknown name '{}'\n  hint: {}", what_, name, name_hint(name, asked_));
  }

 private:
  [[noreturn]] void refuse(const char* name, const Json& value, const char* wanted) const {
    user_error("{}: '{}' must be {}: {}", what_, name, wanted, shown(value));
  }

  template <class T>
  T as(const char* name, const Json& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) refuse(name, value, "true or false");
      return value.boolean();
    } else if constexpr (std::is_enum_v<T>) {
      if (!value.is_text()) refuse(name, value, "a word");
      return from_word<T>(value.text());
    } else if constexpr (std::is_integral_v<T>) {
      const std::optional<std::int64_t> number = integer_of(value);
      if (!number || !std::in_range<T>(*number))
        refuse(name, value,
               std::is_unsigned_v<T> ? "an integer that is not negative" : "an integer");
      return static_cast<T>(*number);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) refuse(name, value, "a number");
      return static_cast<T>(value.number());
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_text()) refuse(name, value, "a text");
      return std::string(value.text());
    } else if constexpr (std::is_same_v<T, Schedule>) {
      return read_schedule(value);
    } else if constexpr (std::is_same_v<T, Shape>) {
      return Shape(as<std::vector<std::int64_t>>(name, value), kNowhere);
    } else if constexpr (std::is_same_v<T, std::optional<NameFilter>>) {
      return as<NameFilter>(name, value);
    } else {  // a vector
      if (!value.is_list()) refuse(name, value, "a list");
      T list;
      for (const Json& item : value.items()) list.push_back(as<typename T::value_type>(name, item));
      return list;
    }
  }

  const Json& json_;
  std::string what_;
  std::vector<std::string> asked_;
};

}  // namespace tensorgrad::c
