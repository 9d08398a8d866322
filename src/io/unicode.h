// Characters of a text in UTF-8, read strictly, and what kind of character each is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// Kinds as byte-level BPE tells them apart. An unscoped enum, because the table has 800 rows.
enum CharacterKind : std::uint8_t { kLetter, kNumber, kSpace, kOther };

CharacterKind kind_of(char32_t code);

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  // else it is one byte that begins no character
  bool incomplete =
      false;  // not valid here, but more bytes behind the end of the text may make it so
};

// The character that begins at `at`, which is inside the text. Overlong forms, surrogates and what
// lies above U+10FFFF are not valid.
Character character_at(std::string_view text, std::size_t at);

bool is_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code);

}  // namespace tensorgrad::io
