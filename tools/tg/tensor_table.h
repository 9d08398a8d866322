// A table of tensors for people: types, shapes and statistics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor_stats.h"

namespace tensorgrad::tool {

struct TensorRow {
  std::string name, dtype, shape;  // dtype as stored: BF16
  std::int64_t count = 0, bytes = 0;
  TensorStats stats;
};

// One line per tensor if it fits `width` (0: no limit), otherwise two, with the statistics in the
// second. A name that is too long for its column gets its own line.
std::string tensor_table(const std::vector<const TensorRow*>& tensors, std::size_t width);

// "3 NaN, 1 inf"; empty if all are finite.
std::string bad_words(const TensorStats& stats);

// Makes text of a file safe for a terminal: escapes control characters.
std::string plain(std::string_view text);

}  // namespace tensorgrad::tool
