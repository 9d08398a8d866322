// Splits the result of a matmul into tiles: the chosen block sizes, rounded to whole panels of the
// unit that computes them.
#pragma once

#include <cstdint>
#include <span>

#include "ir/variants.h"

namespace tensorgrad::cpu {

inline constexpr std::int64_t kTileRows = 128, kTileColumns = 512;  // maximum, before rounding

struct Cut {
  std::int64_t height = 0, width = 0;  // tile size, in whole panels
  std::int64_t down = 0, across = 0;   // tiles per batch
  std::int64_t together = 1;           // tiles per task
};

// `widths` holds the column count of each part.
Cut cut_matmul(const ir::MatmulBlocks& blocks, std::int64_t batches, std::int64_t M,
               std::span<const std::int64_t> widths);

}  // namespace tensorgrad::cpu
