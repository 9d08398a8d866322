// Which variant of a matrix product runs, and with which tiles: by shape alone, so that the same product
// adds in the same order everywhere.
#pragma once

#include <cstdint>

#include "ir/kernel.h"

namespace tensorgrad::kernels {

struct MatmulTiles {
  bool direct = false;            // no tiles: a thread walks k for its element or quad
  int TM = 0, TN = 0, TK = 0;     // of the result and of k, per workgroup
  int RM = 0, RN = 0;             // of the result, per thread
  int slices = 1;                 // parts of TK, each by threads of its own, joined in order in the end
  std::int64_t splits = 1;        // parts of k, each by workgroups of its own, joined in order by a second shader
  std::int64_t threads() const { return std::int64_t{TM / RM} * (TN / RN) * slices; }
};

MatmulTiles choose_tiles(const ir::Kernel& kernel);

}  // namespace tensorgrad::kernels
