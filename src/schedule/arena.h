// Packs temporaries into memory by lifetime. A tensor lives from the step that writes it to the
// last step that reads it. Two tensors may share memory if their lifetimes do not overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorgrad::schedule {

struct Block {
  std::int64_t elements = 0;
  int born = 0, dies = 0;  // inclusive
};

// No limit on the size of a piece.
inline constexpr std::int64_t kOnePiece = std::int64_t{1} << 60;

struct Packing {
  std::vector<std::int64_t> offsets;  // of each block, in elements; multiples of kAlignment
  std::int64_t elements = 0;
};

// First fit in several orders; the smallest packing wins. Deterministic. No block crosses a
// multiple of `piece` (itself a multiple of kAlignment), except blocks that are longer, so that
// memory can be allocated in pieces.
Packing pack(const std::vector<Block>& blocks, std::int64_t piece = kOnePiece);

// A lower bound for any packing: the maximum number of live elements, and the first stage with it.
struct Peak {
  std::int64_t elements = 0;
  int when = 0;
};
Peak most_alive(const std::vector<Block>& blocks);

}  // namespace tensorgrad::schedule
