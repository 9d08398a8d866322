// The keywords and characters of a Graph's text form, shared by the printer and the parser.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tensorgrad::ir {

// Indexed by Result::Kind.
inline constexpr std::array<std::string_view, 6> kResultWords = {
    "output", "capture", "gradient", "update", "flat_gradient", "flat_update"};

// Starts the line of a FlatRange: range "l1.W" = [64,128] has the offset 64 and 128 elements.
inline constexpr std::string_view kRangeWord = "range";

// The NaN that is written as plain "nan". Any other NaN is written with its bits.
inline constexpr std::uint64_t kPlainNan = 0x7ff8000000000000u;

// Characters of the names of ops, attributes and types.
constexpr bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Characters that need no quotes in a call site: files, scopes, composites.
constexpr bool is_bare_char(char c) {
  return is_word_char(c) || c == '.' || c == '/' || c == '-' || c == '+' || c == '~';
}

// Quotes the text, with \" \\ \n \t \r and \xHH for other control characters.
std::string quote(std::string_view text);

std::string print(const Result& result);  // update "l1.W" = %12
std::string print(const FlatRange& range);

}  // namespace tensorgrad::ir
