#include "codegen/cpu/matmul_cut.h"

#include <algorithm>
#include <limits>

#include "codegen/cpu/micro_kernel.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kSmallRows = 32, kSmallColumns = 64;  // tiles that are not cut further
constexpr std::int64_t kDepth = 384;         // of k at a time, so that panels stay in cache
constexpr std::int64_t kLeastSplit = 128;    // of k
constexpr std::int64_t kManyTiles = 16;      // keep all threads busy
constexpr std::int64_t kTaskWork = 1 << 17;  // multiplications that are worth handing to a thread
constexpr std::int64_t kFinish = 16;         // multiplications that an element of the result takes besides
constexpr double kRunCycles = 4000;          // that handing out tasks once more takes
constexpr double kFinishCycles = 100;        // that starting an epilogue takes, for a row or some whole ones

// n in pieces of at most `most`, all about as long, multiples of `unit`.
std::int64_t even_piece(std::int64_t n, std::int64_t most, std::int64_t unit) {
  return std::max(unit, round_up(ceil_div(n, std::max<std::int64_t>(1, ceil_div(n, most))), unit));
}

struct Product {
  std::int64_t batches, M, K, N;
  std::span<const std::int64_t> widths;
  bool epilogues;
  std::int64_t wanted;  // tiles
};

// About how long tiles of this size take, in cycles: what they compute, and what they read and write.
double cost(const Product& p, std::int64_t rows, std::int64_t columns, std::int64_t splits) {
  std::int64_t across = 0;
  for (const std::int64_t width : p.widths) across += ceil_div(width, columns);
  const std::int64_t down = ceil_div(p.M, rows), pieces = p.batches * across * down * splits;
  const std::int64_t moved = p.M * p.K * across + p.K * p.N * down + p.M * p.N * (splits > 1 ? 3 * splits : 1);
  const double each = static_cast<double>(p.M * p.N * p.K) / 32 + static_cast<double>(moved) / 4;
  const std::int64_t starts =
      across == static_cast<std::int64_t>(p.widths.size()) ? ceil_div(p.M * p.N, kBlock) : p.M * across;
  const double finish = p.epilogues ? static_cast<double>(starts) * kFinishCycles : 0;
  const double all = static_cast<double>(p.batches) * (each + finish);
  return all / static_cast<double>(std::min(pieces, p.wanted)) + (splits > 1 ? kRunCycles : 0);
}

}  // namespace

Cut cut_matmul(std::int64_t batches, std::int64_t M, std::int64_t K, std::span<const std::int64_t> widths,
               bool epilogues) {
  std::int64_t N = 0;
  for (const std::int64_t width : widths) N += width;
  const std::int64_t work = batches * M * N * (K + kFinish);
  const Product product{batches, M, K, N, widths, epilogues, std::clamp<std::int64_t>(work / kTaskWork, 1, kManyTiles)};
  Cut cut;
  std::int64_t rows = kTileRows, columns = kTileColumns;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t r = kTileRows; r >= kSmallRows; r /= 2)
    for (std::int64_t c = kTileColumns; c >= kSmallColumns; c /= 2)
      for (std::int64_t n = 1; n == 1 || (n <= kManyTiles && K / n >= kLeastSplit); n *= 2)
        if (const double time = cost(product, r, c, n); time < least)
          least = time, rows = r, columns = c, cut.splits = n;
  cut.depth = even_piece(ceil_div(K, cut.splits), kDepth, 8);
  cut.split = round_up(ceil_div(K, cut.splits), cut.depth);
  cut.splits = std::max<std::int64_t>(1, ceil_div(K, std::max<std::int64_t>(1, cut.split)));
  cut.height = even_piece(M, rows, kPanelRows);
  cut.down = ceil_div(M, cut.height);
  for (const std::int64_t width : widths) cut.width = std::max(cut.width, even_piece(width, columns, panel_columns()));
  for (const std::int64_t width : widths) cut.across += ceil_div(width, cut.width);
  const std::int64_t tiles = std::max<std::int64_t>(1, batches * cut.down * cut.across * cut.splits);
  cut.together = std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(1, work / tiles));
  return cut;
}

}  // namespace tensorgrad::cpu
