// Which variant of a matrix product runs, and with which tiles. The order in which it adds is
// decided by shape alone, so that the same product has the same bits everywhere; among tiles that
// add in that order a device may take the fastest (`Kernel::tiles`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace tensorgrad::kernels {

struct MatmulTiles {
  bool direct = false;         // no tiles: a thread walks k for its element or quad
  int TM = 0, TN = 0, TK = 0;  // of the result and of k, per workgroup
  int RM = 0, RN = 0;          // of the result, per thread
  int slices = 1;  // parts of TK, each by threads of its own, joined in order in the end
  std::int64_t splits =
      1;  // parts of k, each by workgroups of its own, joined in order by a second shader
  std::int64_t threads() const { return std::int64_t{TM / RM} * (TN / RN) * slices; }
  std::string name() const;  // "128x64x16"
};

// By Kernel::tiles where it names one of the alternatives, else by shape.
MatmulTiles choose_tiles(const ir::Kernel& kernel);

// All that give the same bits as the choice by shape, which comes first.
std::vector<MatmulTiles> alternatives(const ir::Kernel& kernel);

// The parts of k are multiples of this, whatever the tiles.
inline constexpr std::int64_t kSplitUnit = 64;
// Column sums are added by this many threads in turns, whatever the tiles (but for slices).
inline constexpr std::int64_t kSumLanes = 8;

}  // namespace tensorgrad::kernels
