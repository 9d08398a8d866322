// How the result of a matrix product is cut into tiles: by shape alone.
#pragma once

#include <cstdint>
#include <span>

#include "codegen/cpu/compiled.h"

namespace tensorgrad::cpu {

inline constexpr std::int64_t kTileRows = 128, kTileColumns = 512;  // before whole panels

// What computes a product: vectors, or the tile unit (amx.h) where there is one.
enum class Products : std::uint8_t { vectors, amx };

struct Cut {
  Products by = Products::vectors;
  std::int64_t height = 0, width = 0;  // of a tile: whole panels
  std::int64_t depth = 0;              // of k at a time
  std::int64_t down = 0, across = 0;   // tiles of a batch
  std::int64_t splits = 1, split = 0;  // parts of k, and how long each is: whole blocks of `depth`
  std::int64_t together = 1;           // tiles of a task
  bool rows_once = false;              // the left operand is prepared once for all columns
};

// `widths` are the columns of each part; `epilogues`: more becomes of the product than to be
// stored; `choice`: what may compute it, of which the fastest is taken.
Cut cut_matmul(std::int64_t batches, std::int64_t M, std::int64_t K,
               std::span<const std::int64_t> widths, bool epilogues,
               std::span<const Products> choice);

}  // namespace tensorgrad::cpu
