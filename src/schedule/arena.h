// Memory for tensors that live for a while: each from the step that makes it to the last that reads
// it. Two tensors may share bytes when their lives do not meet.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorgrad::schedule {

struct Block {
  std::int64_t elements = 0;
  int born = 0, dies = 0;  // both included
};

// As much as anybody could want, in one piece.
inline constexpr std::int64_t kOnePiece = std::int64_t{1} << 60;

struct Packing {
  std::vector<std::int64_t> offsets;  // of each block, in elements; multiples of kAlignment
  std::int64_t elements = 0;
};

// First fit in several orders; the smallest wins. Deterministic. No block lies across a multiple of
// `piece` (itself a multiple of kAlignment), so that memory can be had in pieces; but for blocks
// that are longer.
Packing pack(const std::vector<Block>& blocks, std::int64_t piece = kOnePiece);

// What no packing can be smaller than: the most that lives at once, and when that is first.
struct Peak {
  std::int64_t elements = 0;
  int when = 0;
};
Peak most_alive(const std::vector<Block>& blocks);

}  // namespace tensorgrad::schedule
