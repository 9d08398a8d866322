#include "kernels/tiles.h"

#include <algorithm>

namespace tensorgrad::kernels {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr MatmulTiles kTiles[] = {
    {.TM = 128, .TN = 128, .TK = 16, .RM = 8, .RN = 8},
    {.TM = 64, .TN = 64, .TK = 16, .RM = 4, .RN = 4},
    {.TM = 32, .TN = 32, .TK = 32, .RM = 4, .RN = 4},
};
constexpr std::int64_t kEnough = 128;      // workgroups that keep a large device busy
constexpr std::int64_t kShortestPart = 128;  // of k

std::int64_t groups(const ir::Kernel& kernel, const MatmulTiles& tiles) {
  std::int64_t across = 0;
  for (const ir::MatmulPart& part : kernel.parts) across += ceil_div(part.N, tiles.TN);
  return kernel.batches * ceil_div(kernel.M, tiles.TM) * across;
}

}  // namespace

MatmulTiles choose_tiles(const ir::Kernel& kernel) {
  std::int64_t narrowest = kernel.M, columns = 0;
  bool sums = false;
  for (const ir::MatmulPart& part : kernel.parts) {
    narrowest = std::min(narrowest, part.N);
    columns += part.N;
    sums = sums || part.sums_columns;
  }
  if (!sums && (kernel.K <= 16 || (narrowest <= 16 && kernel.K <= 128))) return {.direct = true};
  MatmulTiles best = kTiles[2];
  for (const MatmulTiles& tiles : kTiles)
    if (groups(kernel, tiles) >= kEnough && kernel.M * 2 > tiles.TM && columns * 2 > tiles.TN) {
      best = tiles;
      break;
    }
  const std::int64_t have = groups(kernel, best);
  if (have < kEnough / 2 && kernel.K >= 2 * kShortestPart)
    best.splits = std::min(ceil_div(kernel.K, kShortestPart), ceil_div(kEnough, have));
  return best;
}

}  // namespace tensorgrad::kernels
