// UTF-8: strict decoding, encoding, and cutting a text between characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorgrad {

// Number of bytes at the end that begin an incomplete character: 0 to 3.
inline std::size_t incomplete_tail(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // continuation byte
    const std::size_t needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? back : 0;
  }
  return 0;
}

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

// Keeps at most 60 bytes of valid UTF-8, cut between two characters, and appends "..." if it cuts.
std::string cut(std::string text);

void append_utf8(std::string& text, char32_t code);

}  // namespace tensorgrad
