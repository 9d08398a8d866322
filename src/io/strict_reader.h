// What readers of texts from anywhere share: JSON without ambiguity, what may stand in an error,
// whole files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// JSON that is nested at most `depth` deep and has no key twice in an object.
nlohmann::json parse_json(std::string_view text, int depth);

// A value or a text for an error message: in one line, long ones are cut.
std::string shown(const nlohmann::json& value);

// A file as a whole; one that is too long is an error.
std::string read_limited(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace tensorgrad::io
