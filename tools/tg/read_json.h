// JSON from files as values of nlohmann-json, which the tool changes and prints.
#pragma once

#include <string>
#include <string_view>

#include "command.h"

namespace tensorgrad::tool {

// Parses strictly, as the library does (support/json.h). Throws a UserError.
Json parse_json(std::string_view text, int depth = kDeepestJson);

// A value for an error message: on one line, cut if long.
std::string shown(const Json& value);

// The words of nlohmann-json's error about a value, as part of an error of ours: without the prefix
// "[json.exception.type_error.302] ", on one line, cut if long.
std::string reason(const nlohmann::json::exception& error);

}  // namespace tensorgrad::tool
