// How the result of a matmul is cut into tiles: the blocks that were chosen, in whole panels of the
// unit that computes it.
#pragma once

#include <cstdint>
#include <span>

#include "ir/variants.h"

namespace tensorgrad::cpu {

inline constexpr std::int64_t kTileRows = 128, kTileColumns = 512;  // at most, before whole panels

struct Cut {
  std::int64_t height = 0, width = 0;  // of a tile: whole panels
  std::int64_t down = 0, across = 0;   // tiles of a batch
  std::int64_t together = 1;           // tiles of a task
};

// `widths` are the columns of each part.
Cut cut_matmul(const ir::MatmulBlocks& blocks, std::int64_t batches, std::int64_t M,
               std::span<const std::int64_t> widths);

}  // namespace tensorgrad::cpu
