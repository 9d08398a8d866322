// UTF-8: enough to cut a text between characters.
#pragma once

#include <cstddef>
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

}  // namespace tensorgrad
