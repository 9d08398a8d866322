// Shared by readers of untrusted text: unambiguous JSON, and values shown in errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// Strict JSON for untrusted input. Throws a UserError for an object with a duplicate key, nesting
// deeper than `depth` (1: a flat object), a NUL anywhere, text behind the value, and numbers too
// large for a double. Takes time linear in the text. Instantiated for nlohmann::json and
// nlohmann::ordered_json.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, int depth);

// Formats a value or a text for an error message: on one line, cut if long.
std::string shown(const nlohmann::json& value);

}  // namespace tensorgrad::io
