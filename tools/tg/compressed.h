// The compression of a text by gzip and xz, to compare with a language model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad::tool {

struct CompressedText {
  std::string program;
  double bits_per_byte = 0;
};

// Bits per byte that a program needs for the last `last_bytes` of a file after it has seen the
// rest: the compressed size of the whole minus that of the rest. Leaves out programs that are not
// installed or that fail. Leaves out all programs for a file that would take more than some
// seconds, or that cannot be read.
std::vector<CompressedText> compressed_text(const std::string& file, std::int64_t last_bytes);

}  // namespace tensorgrad::tool
