// Attributes: a JSON object of settings, read by name and type. finish() refuses settings that were
// not read, so that none is ignored silently. null counts as missing.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::tool {

class Attributes {
 public:
  // `what` names an item in errors: "attribute", "model setting". `object` must outlive this.
  Attributes(const Json& object, std::string_view what);

  // Functions without a fallback throw if the key is missing.
  std::int64_t integer(const char* key);
  std::int64_t integer(const char* key, std::int64_t fallback);
  std::optional<std::int64_t> optional_integer(const char* key);
  double number(const char* key);
  double number(const char* key, double fallback);
  std::string text(const char* key);
  std::string text(const char* key, const std::string& fallback);
  std::vector<std::int64_t> integers(const char* key);

  // Integers that count axes, layers or heads.
  int small(const char* key);
  int small(const char* key, int fallback);
  // An integer for both directions, or [height, width].
  Pair pair(const char* key);
  Pair pair(const char* key, Pair fallback);
  std::optional<Pair> optional_pair(const char* key);

  void finish() const;

 private:
  const Json* find(const char* key);
  const Json& require(const char* key);
  [[noreturn]] void refuse(const char* key, const Json& value, const char* wanted) const;
  std::int64_t as_integer(const char* key, const Json& value) const;
  int as_small(const char* key, const Json& value) const;
  double as_number(const char* key, const Json& value) const;
  std::string as_text(const char* key, const Json& value) const;
  Pair as_pair(const char* key, const Json& value) const;

  const Json& object_;
  std::string_view what_;
  std::set<std::string> used_;
};

}  // namespace tensorgrad::tool
