// Tensors as a table for people: what they are and what their numbers are like.
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

// One line per tensor where it fits `width` (0: it always does), otherwise two: the second has the
// statistics. A name that is too long for its column gets a line of its own.
std::string tensor_table(const std::vector<const TensorRow*>& tensors, std::size_t width);

// "3 NaN, 1 inf"; empty when all are finite.
std::string bad_words(const TensorStats& stats);

// Text of a file as it may stand on a terminal: control characters are written out.
std::string plain(std::string_view text);

}  // namespace tensorgrad::tool
