// Small text helpers: joining, name patterns, the nearest name for "did you mean".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

// The parts between separators; one empty part for an empty text.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// "12.5 MiB".
std::string in_mib(std::int64_t bytes);

// Shell-like patterns over parameter names: `*` matches any run of characters, `?` one.
bool matches(std::string_view pattern, std::string_view text);
bool matches_any(std::span<const std::string> patterns, std::string_view text);

// The name of `names` nearest to `wanted`, or empty when none is near.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

// A hint for a name that is not there: "'l1.W'?" when one is near, else what there is, as far as it
// fits a line; empty when there is nothing.
std::string name_hint(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace tensorgrad
