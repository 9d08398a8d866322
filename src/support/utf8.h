// UTF-8, as far as it takes to cut a text between characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace tensorgrad {

// How many bytes at the end begin a character that is not complete: 0 to 3.
inline std::size_t incomplete_tail(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // goes on with a character
    const std::size_t needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? back : 0;
  }
  return 0;
}

}  // namespace tensorgrad
