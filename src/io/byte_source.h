// Random access to the bytes of a file or of memory, so that readers need not hold all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "support/file.h"

namespace tensorgrad::io {

struct ByteSource {
  std::uint64_t size = 0;
  // Fills `to` from offset `at`. All of it must exist.
  std::function<void(std::uint64_t at, std::span<char> to)> read;
};

// The argument must outlive the source.
inline ByteSource source_of(std::string_view bytes) {
  return {bytes.size(), [bytes](std::uint64_t at, std::span<char> to) {
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
          }};
}
inline ByteSource source_of(const InputFile& file) {
  return {file.size(), [&file](std::uint64_t at, std::span<char> to) { file.read(at, to); }};
}

}  // namespace tensorgrad::io
