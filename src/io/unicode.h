// Decodes UTF-8 strictly, and classifies characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// The kinds that byte-level BPE distinguishes. An unscoped enum, because the table has 800 rows.
enum CharacterKind : std::uint8_t { kLetter, kNumber, kSpace, kOther };

CharacterKind kind_of(char32_t code);

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  // false: one byte that begins no character
  bool incomplete =
      false;  // invalid so far, but more bytes after the end of the text may complete it
};

// Decodes the character at `at`, which must be inside the text. Overlong forms, surrogates and
// codes above U+10FFFF are not valid.
Character character_at(std::string_view text, std::size_t at);

bool is_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code);

}  // namespace tensorgrad::io
