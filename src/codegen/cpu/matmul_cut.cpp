#include "codegen/cpu/matmul_cut.h"

#include <algorithm>
#include <limits>

#include "codegen/cpu/amx.h"
#include "codegen/cpu/micro_kernel.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kSmallRows = 32, kSmallColumns = 64;  // tiles that are not cut further
constexpr std::int64_t kLeastSplit = 128;                    // of k
constexpr std::int64_t kManyTiles = 16;                      // keep all threads busy
constexpr std::int64_t kTaskWork = 1 << 17;  // multiplications that are worth handing to a thread
constexpr std::int64_t kFinish = 16;  // multiplications that an element of the result takes besides
constexpr double kRunCycles = 4000;   // that handing out tasks once more takes
constexpr double kFinishCycles =
    100;  // that starting an epilogue takes, for a row or some whole ones

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

// What computes products, and about how many cycles things take there.
struct Unit {
  std::int64_t rows, columns, depth;  // of panels
  std::int64_t together;              // of k, so that panels stay in cache
  bool prepares;                      // operands, in whole panels
  double multiplication;              // of two numbers
  double left, right_once,
      right;    // an element of an operand: the right one once, and each with every tile
  double part;  // an element of a part of k, written and read
};

// By measurements of products of training, with AVX-512.
Unit unit_of(Products by) {
  if (by == Products::amx)
    return {.rows = kAmxRows,
            .columns = kAmxColumns,
            .depth = kAmxDepth,
            .together = 128,
            .prepares = true,
            .multiplication = 1.0 / 64,
            .left = 0.6,
            .right_once = 0.55,
            .right = 0.2,
            .part = 1.0};
  return {.rows = kPanelRows,
          .columns = panel_columns(),
          .depth = 8,
          .together = 384,
          .prepares = false,
          .multiplication = 1.0 / 32,
          .left = 0.25,
          .right_once = 0,
          .right = 0.25,
          .part = 0.75};
}

// Whether rows that were prepared for some columns are still there for the next ones: all values of
// k at a time, and the right operand stays in the second cache.
bool prepares_once(const Product& p, const Unit& unit, std::int64_t splits) {
  constexpr std::int64_t kRight = 1 << 18;  // floats
  return unit.prepares && ceil_div(p.K, splits) <= unit.together && amx_room(p.N, p.K) <= kRight;
}

// About how long tiles of this size take, in cycles: what they compute, and what they read and
// write.
double cost(const Product& p, const Unit& unit, std::int64_t rows, std::int64_t columns,
            std::int64_t splits) {
  std::int64_t across = 0, padded = 0;
  for (const std::int64_t width : p.widths)
    across += ceil_div(width, columns), padded += round_up(width, unit.columns);
  const std::int64_t down = ceil_div(p.M, rows), pieces = p.batches * across * down * splits;
  const std::int64_t products = unit.prepares
                                    ? round_up(p.M, unit.rows) * padded * round_up(p.K, unit.depth)
                                    : p.M * p.N * p.K;
  const std::int64_t repeats = prepares_once(p, unit, splits) ? 1 : across;
  const double each =
      static_cast<double>(products) * unit.multiplication +
      static_cast<double>(p.M * p.K * repeats) * unit.left +
      static_cast<double>(p.K * p.N) * (unit.right_once + static_cast<double>(down) * unit.right) +
      static_cast<double>(p.M * p.N) *
          (splits > 1 ? static_cast<double>(splits) * unit.part : 0.25);
  const std::int64_t starts = across == static_cast<std::int64_t>(p.widths.size())
                                  ? ceil_div(p.M * p.N, kBlock)
                                  : p.M * across;
  const double finish = p.epilogues ? static_cast<double>(starts) * kFinishCycles : 0;
  const double all = static_cast<double>(p.batches) * (each + finish);
  // Once more to add parts, and to prepare the right side.
  const int runs = (splits > 1 ? 1 : 0) + (unit.prepares && down > 1 ? 1 : 0);
  return all / static_cast<double>(std::min(pieces, p.wanted)) + runs * kRunCycles;
}

}  // namespace

Cut cut_matmul(std::int64_t batches, std::int64_t M, std::int64_t K,
               std::span<const std::int64_t> widths, bool epilogues,
               std::span<const Products> choice) {
  std::int64_t N = 0;
  for (const std::int64_t width : widths) N += width;
  const std::int64_t work = batches * M * N * (K + kFinish);
  const Product product{batches,
                        M,
                        K,
                        N,
                        widths,
                        epilogues,
                        std::clamp<std::int64_t>(work / kTaskWork, 1, kManyTiles)};
  Cut cut;
  std::int64_t rows = kTileRows, columns = kTileColumns;
  double least = std::numeric_limits<double>::infinity();
  const auto each_tile = [&](const Product& p, Products by, std::int64_t n, auto better) {
    for (std::int64_t r = kTileRows; r >= kSmallRows; r /= 2)
      for (std::int64_t c = kTileColumns; c >= kSmallColumns; c /= 2)
        if (const double time = cost(p, unit_of(by), r, c, n); time < least)
          least = time, better(r, c);
  };
  // The unit and the parts of k decide the order of additions: by shape alone, so that a product
  // has the same bits whatever becomes of it. Then the tiles.
  Product alone = product;
  alone.epilogues = false;
  for (const Products by : choice)
    for (std::int64_t n = 1; n == 1 || (n <= kManyTiles && K / n >= kLeastSplit); n *= 2)
      each_tile(alone, by, n, [&](std::int64_t, std::int64_t) { cut.splits = n, cut.by = by; });
  least = std::numeric_limits<double>::infinity();
  each_tile(product, cut.by, cut.splits,
            [&](std::int64_t r, std::int64_t c) { rows = r, columns = c; });
  const Unit unit = unit_of(cut.by);
  cut.depth = even_piece(ceil_div(K, cut.splits), unit.together, unit.depth);
  cut.split = round_up(ceil_div(K, cut.splits), cut.depth);
  cut.splits = std::max<std::int64_t>(1, ceil_div(K, std::max<std::int64_t>(1, cut.split)));
  cut.height = even_piece(M, rows, unit.rows);
  cut.down = ceil_div(M, cut.height);
  for (const std::int64_t width : widths)
    cut.width = std::max(cut.width, even_piece(width, columns, unit.columns));
  for (const std::int64_t width : widths) cut.across += ceil_div(width, cut.width);
  cut.rows_once = prepares_once(product, unit, cut.splits);
  const std::int64_t tiles =
      std::max<std::int64_t>(1, batches * cut.down * cut.across * cut.splits);
  cut.together = std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(1, work / tiles));
  return cut;
}

}  // namespace tensorgrad::cpu
