// Small text helpers: joining, name patterns, the nearest name for "did you mean".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

// Splits a text at each separator; an empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);
// The words of a text, between white space.
std::vector<std::string> split_words(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// "12.5 MiB".
std::string in_mib(std::int64_t bytes);

// Shell-like patterns over parameter names: `*` matches any characters, `?` exactly one.
bool matches(std::string_view pattern, std::string_view text);
bool matches_any(std::span<const std::string> patterns, std::string_view text);

// Returns the name nearest to `wanted`, ignoring case, or empty if none is near.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

// A hint for an unknown name: "'l1.W'?" if one is near, else the first eight names; empty if there
// are no names.
std::string name_hint(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace tensorgrad
