// Kernels of kind `matmul`. The result is split into tiles as the kernel's variant says. Operands
// are read in place while that is fast. A right operand that many tiles share is packed into panels
// once, in advance; each tile packs the rest itself. Where tiles are few and k is long, k is split
// too, and the parts are added in order. A tile is computed by vector code or by the processor's
// tile unit (amx.h), which needs all operands packed in its own layout.
#include <algorithm>
#include <atomic>
#include <utility>

#include "codegen/cpu/amx.h"
#include "codegen/cpu/matmul_cut.h"
#include "codegen/cpu/matmul_operand.h"
#include "codegen/cpu/micro_kernel.h"
#include "codegen/cpu/panels.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

using ir::MatmulUnit;

namespace {

constexpr std::int64_t kColumnsPacked = 128;     // per task
constexpr std::int64_t kPacked = 1 << 22;        // floats packed at a time
constexpr std::int64_t kSmallOperand = 1 << 15;  // floats that need no packing: they stay in cache
constexpr std::int64_t kLargeBlock = 1 << 16;    // floats from which on a block needs prefetching
constexpr std::int64_t kLine = 16;               // floats per cache line
constexpr std::int64_t kFinished = 1 << 12;      // floats that stay in cache until the epilogue,
constexpr std::int64_t kFinishedRows =
    32;  // or this many rows, so that the right operand is not read too often
constexpr std::int64_t kAmxFinished =
    1 << 14;  // the same for the tile unit: the L1 cache is full of pieces
constexpr std::int64_t kRowsTogether =
    1 << 17;  // floats of the left operand that stay in the L2 cache

// One right operand and the epilogue of its result.
struct Part {
  Part(const ir::Kernel& kernel, const ir::MatmulKernel& core, const ir::MatmulPart& part)
      : N(part.N),
        b(kernel.loads, part.b, core.K, part.N),
        kept([&] {
          std::vector<ir::Reg> regs;
          for (const ir::Store& s : part.stores) regs.push_back(s.value);
          return regs;
        }()),
        epilogue(kernel.loads, part.epilogue, kept),
        plain(part.epilogue.code.size() == 1),
        stores(part.stores),
        column_sums(part.column_sums.value_or(ir::Store{})),
        sums_columns(part.column_sums.has_value()) {}

  std::int64_t N;
  Operand b;
  std::vector<ir::Reg> kept;
  std::int64_t line = 1;  // line length of the epilogue: whole rows, or 1
  BlockProgram epilogue;
  bool plain;  // no epilogue: the accumulator is the result
  std::vector<ir::Store> stores;
  std::vector<bool> stored;  // stores done by the epilogue itself
  ir::Store column_sums;
  bool sums_columns;
  bool dots = false;  // a row vector times contiguous columns
  // How the micro-kernel gets the columns: from memory, as lines or panels that each tile reads, or
  // as panels that all tiles share.
  enum class Packing : std::uint8_t { none, lines, by_tile, shared } packing = Packing::none;
};

// A range of columns of one part of one batch.
struct Stripe {
  const Part* part;
  std::int64_t batch, column, columns;
};

// A tile of the result, for a range of k.
struct Tile {
  Stripe stripe;
  std::int64_t row, rows, k_begin, k_end;
  const float* packed;  // shared panels of the stripe, or null
  double* sums;         // of the stripe's columns, or null
  float* c;             // accumulators for this range of k
  std::int64_t c_stride;
  bool finishes;      // all of k: the epilogue runs as soon as the sums are complete
  float* to;          // destination, if the sums are the result without an epilogue, or null
  std::uint64_t run;  // identifies this run among all kernel runs
};

// The right operand of a tile for a range of k: columns from `packed_from` on are in panels, the
// columns before it are read in place.
struct RightColumns {
  RightPanel ready;
  const float* panels;
  std::int64_t packed_from;
  std::int64_t NR, depth;

  bool packed(std::int64_t j) const { return j >= packed_from; }
  RightPanel panel(std::int64_t j) const {
    return packed(j) ? RightPanel{panels + (j - packed_from) * depth, NR}
                     : RightPanel{ready.data + j, ready.depth};
  }
};

class Matmul : public Compiled {
 public:
  Matmul(const ir::Kernel& kernel, const ir::MatmulKernel& core, const ir::MatmulBlocks& blocks)
      : by_(blocks.unit),
        M_(core.M),
        K_(core.K),
        batches_(core.batches),
        NR_(panel_columns()),
        a_(kernel.loads, core.a, core.M, core.K) {
    for (const ir::MatmulPart& part : core.parts) {
      parts_.emplace_back(kernel, core, part);
      N_ += part.N;
    }
    if (blocks.transposed) {
      Part& part = parts_[0];
      std::swap(a_, part.b);
      a_ = a_.transposed(), part.b = part.b.transposed();
      std::swap(M_, N_);
      part.N = N_;
    }
    std::vector<std::int64_t> widths;
    for (const Part& part : parts_) widths.push_back(part.N);
    const Cut cut = cut_matmul(blocks, batches_, M_, widths);
    height_ = cut.height, width_ = cut.width, down_ = cut.down, across_ = cut.across;
    depth_ = blocks.depth, splits_ = blocks.splits, split_ = blocks.split;
    together_ = cut.together;
    // At least four groups of rows, so that each thread gets its own groups.
    rows_together_ =
        std::clamp<std::int64_t>(kRowsTogether / std::max<std::int64_t>(1, K_ * height_), 1,
                                 std::max<std::int64_t>(1, down_ / 4));
    if (blocks.rows_once) rows_together_ = 1;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      // A row that all rows share, such as a bias, is read once where tiles are as wide as rows.
      Part& part = parts_[i];
      if (part.N == core.parts[i].N && part.N > 1 &&
          part.N <= std::min<std::int64_t>(width_, kBlock)) {
        part.line = part.N;
        part.epilogue = BlockProgram(kernel.loads, core.parts[i].epilogue, part.kept, part.line);
      }
      part.stored = part.epilogue.store_at(part.stores);
    }
    for (Part& part : parts_) {
      part.dots = M_ == 1 && part.b.is_turned_right() && !part.sums_columns;
      const bool ready = by_ == MatmulUnit::vectors &&
                         (part.dots || (part.b.is_right() &&
                                        (K_ * part.N <= kSmallOperand || M_ <= 2 * kTileRows)));
      const bool lines = by_ == MatmulUnit::vectors && part.b.has_lines();
      part.packing = ready          ? Part::Packing::none
                     : M_ > height_ ? Part::Packing::shared
                     : lines        ? Part::Packing::lines
                                    : Part::Packing::by_tile;
      shares_ = shares_ || part.packing == Part::Packing::shared;
    }
    // Shared panels occupy the buffer where a tile would pack its edge or read its lines.
    for (Part& part : parts_)
      if (shares_ && (part.N % panel_lanes() != 0 || part.packing == Part::Packing::lines))
        part.packing = Part::Packing::shared;
  }

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t stripes = batches_ * across_, room = stripe_room();
    if (stripes == 0) return;         // no columns
    std::int64_t together = stripes;  // stripes of one batch, or of whole batches
    if (shares_) {
      const std::int64_t most =
          std::max<std::int64_t>(1, kPacked / std::max<std::int64_t>(1, room));
      together = most < across_ ? most : most / across_ * across_;
    }
    static std::atomic<std::uint64_t> runs = 0;
    const std::uint64_t run = ++runs;
    for (std::int64_t first = 0, count; first < stripes; first += count) {
      count = std::min(together, stripes - first);
      if (together < across_) count = std::min(count, across_ - first % across_);
      float* packed = nullptr;
      if (shares_) {
        packed = scratch_floats(usize(count * room), 2);
        pack(memory, executor, first, count, packed);
      }
      const Round round{first, count, std::min(count, across_), run};
      if (splits_ > 1)
        split_tiles(memory, executor, round, packed);
      else
        whole_tiles(memory, executor, round, packed);
    }
  }

 private:
  Stripe stripe(std::int64_t s) const {
    std::int64_t column = s % across_;
    const Part* part = parts_.data();
    while (column >= ceil_div(part->N, width_)) column -= ceil_div(part++->N, width_);
    column *= width_;
    return {part, s / across_, column, std::min(width_, part->N - column)};
  }

  // Stripes that are computed at a time: this many of each batch.
  struct Round {
    std::int64_t first, count, of_batch;
    std::uint64_t run;
  };

  // Floats of the packed columns of a stripe, block after block of k: panels and, for the tile
  // unit, the column sums, which are doubles.
  std::int64_t block_room(std::int64_t columns) const {
    if (by_ == MatmulUnit::amx) return sums_at(columns) + 2 * round_up(columns, kAmxColumns);
    return round_up(columns, NR_) * depth_;
  }
  std::int64_t stripe_room() const { return ceil_div(K_, depth_) * block_room(width_); }
  std::int64_t sums_at(std::int64_t columns) const {
    return amx_room(round_up(columns, kAmxColumns), depth_);
  }

  // Tile t of a round: the stripe within the round, and the tile within the stripe. The order is
  // batch by batch, and within a batch by groups of rows: threads take consecutive tasks, so they
  // find in cache what they wrote in the previous kernel.
  std::pair<std::int64_t, std::int64_t> tile_at(const Round& round, std::int64_t t) const {
    const std::int64_t of_batch = round.of_batch * down_, batch = t / of_batch, rest = t % of_batch;
    const std::int64_t group = rest / (round.of_batch * rows_together_),
                       at = group * rows_together_;
    const std::int64_t rows = std::min(rows_together_, down_ - at), i = rest - at * round.of_batch;
    return {batch * round.of_batch + i / rows, at + i % rows};
  }

  // Packs the panels of stripes first .. first + count - 1: for each block of k, all panels. Each
  // task packs a few of them.
  void pack(const Memory& memory, Executor& executor, std::int64_t first, std::int64_t count,
            float* to) const {
    const std::int64_t blocks = ceil_div(K_, depth_),
                       step = round_up(kColumnsPacked, std::max(NR_, kAmxColumns)),
                       pieces = ceil_div(width_, step);
    executor.run(count * blocks * pieces, [&](std::int64_t task) {
      const std::int64_t own = task / (blocks * pieces), block = task / pieces % blocks,
                         k = block * depth_, from = task % pieces * step;
      const Stripe s = stripe(first + own);
      if (s.part->packing != Part::Packing::shared || from >= s.columns) return;
      const std::int64_t depth = std::min(depth_, K_ - k);
      float* const at = to + own * stripe_room() + block * block_room(s.columns);
      const Operand::Piece piece{s.batch, k, depth, s.column + from,
                                 std::min(step, s.columns - from)};
      if (by_ == MatmulUnit::amx)
        split_right(memory, s, piece, from, at);
      else
        s.part->b.pack(memory, piece, NR_, at + from * depth);
    });
  }

  // Tiles that sum over all of k; a task takes several small ones.
  void whole_tiles(const Memory& memory, Executor& executor, const Round& round,
                   const float* packed) const {
    const std::int64_t tiles = round.count * down_;
    executor.run(ceil_div(tiles, together_), [&](std::int64_t task) {
      for (std::int64_t t = task * together_; t < std::min(tiles, (task + 1) * together_); ++t) {
        const auto [own, down] = tile_at(round, t);
        const Stripe s = stripe(round.first + own);
        const std::int64_t row = down * height_;
        double sums[kTileColumns + kMaxPanelColumns];
        const bool adds = s.part->sums_columns && row == 0;
        Tile tile{.stripe = s,
                  .row = row,
                  .rows = std::min(height_, M_ - row),
                  .k_begin = 0,
                  .k_end = K_,
                  .packed = packed ? packed + own * stripe_room() : nullptr,
                  .sums = adds ? sums : nullptr,
                  .c = scratch_floats(usize(height_ * width_), 3),
                  .c_stride = s.columns,
                  .finishes = true,
                  .to = nullptr,
                  .run = round.run};
        if (adds) std::fill_n(sums, round_up(s.columns, NR_), 0.0);
        if (s.part->plain && !s.part->stores.empty())
          tile.to =
              memory.at(s.part->stores[0].place) + (s.batch * M_ + row) * s.part->N + s.column;
        compute(memory, tile);
        if (adds) {
          float* const to = memory.at(s.part->column_sums.place) + s.batch * s.part->N + s.column;
          for (std::int64_t n = 0; n < s.columns; ++n) to[n] = static_cast<float>(sums[n]);
        }
      }
    });
  }

  // Tiles that each sum over a part of k, into separate memory; then the parts are added.
  void split_tiles(const Memory& memory, Executor& executor, const Round& round,
                   const float* packed) const {
    const std::int64_t tiles = round.count * down_, room = height_ * width_,
                       padded = width_ + kMaxPanelColumns;
    float* const parts = scratch_floats(usize(splits_ * tiles * room), 3);
    std::vector<double> sums;
    if (std::any_of(parts_.begin(), parts_.end(),
                    [](const Part& part) { return part.sums_columns; }))
      sums.resize(usize(splits_ * round.count * padded));
    executor.run(splits_ * tiles, [&](std::int64_t i) {
      const std::int64_t part = i / tiles, t = i % tiles;
      const auto [own, down] = tile_at(round, t);
      const Stripe s = stripe(round.first + own);
      const std::int64_t row = down * height_;
      const bool adds = s.part->sums_columns && row == 0;
      compute(memory, {.stripe = s,
                       .row = row,
                       .rows = std::min(height_, M_ - row),
                       .k_begin = part * split_,
                       .k_end = std::min(K_, (part + 1) * split_),
                       .packed = packed ? packed + own * stripe_room() : nullptr,
                       .sums = adds ? sums.data() + (own * splits_ + part) * padded : nullptr,
                       .c = parts + (t * splits_ + part) * room,
                       .c_stride = s.columns,
                       .finishes = false,
                       .to = nullptr,
                       .run = round.run});
    });
    executor.run(tiles, [&](std::int64_t t) {
      const auto [own, down] = tile_at(round, t);
      const Stripe s = stripe(round.first + own);
      const std::int64_t row = down * height_, rows = std::min(height_, M_ - row);
      float* const c = parts + t * splits_ * room;
      add_parts(c, room, splits_, rows * s.columns, c);
      if (s.part->sums_columns && row == 0) {
        float* const to = memory.at(s.part->column_sums.place) + s.batch * s.part->N + s.column;
        for (std::int64_t n = 0; n < s.columns; ++n) {
          double sum = 0;
          for (std::int64_t p = 0; p < splits_; ++p)
            sum += sums[usize((own * splits_ + p) * padded + n)];
          to[n] = static_cast<float>(sum);
        }
      }
      finish(memory, s, row, rows, c, s.columns);
    });
  }

  // Computes the sums of a tile, and their epilogue.
  void compute(const Memory& memory, const Tile& tile) const {
    const auto& [part, batch, column, columns] = tile.stripe;
    if (tile.k_begin == tile.k_end) {  // nothing to add
      for (std::int64_t i = 0; i < tile.rows; ++i)
        std::fill_n(tile.c + i * tile.c_stride, columns, 0.0f);
      if (tile.finishes) finish(memory, tile.stripe, tile.row, tile.rows, tile.c, tile.c_stride);
      return;
    }
    if (by_ == MatmulUnit::amx) return compute_by_amx(memory, tile);
    float* const room_a = scratch_floats(usize(height_ * depth_), 1);
    for (std::int64_t k = tile.k_begin; k < tile.k_end; k += depth_) {
      const std::int64_t depth = std::min(depth_, tile.k_end - k);
      const bool first = k == tile.k_begin, finishes = tile.finishes && k + depth == tile.k_end;
      const LeftRows left = a_.left(memory, {batch, tile.row, tile.rows, k, depth}, room_a);
      if (part->dots) {
        row_of_dots(memory, tile, left.first, k, depth, room_a);
        if (finishes) finish(memory, tile.stripe, tile.row, tile.rows, tile.c, tile.c_stride);
        continue;
      }
      const RightColumns right = right_columns(memory, tile, k, depth);
      // The last sums go to their destination. Rows that get their epilogue in groups stay in cache
      // until then; if nothing is added to them again, the next group reuses their memory.
      const bool delivers = finishes && tile.to, in_turn = finishes && !part->plain;
      const std::int64_t few = round_up(std::max(kFinishedRows, kFinished / columns), kPanelRows);
      const std::int64_t some = in_turn ? few : tile.rows;
      for (std::int64_t row = 0; row < tile.rows; row += some) {
        const std::int64_t rows = std::min(some, tile.rows - row);
        float* const sums = first && in_turn ? tile.c : tile.c + row * tile.c_stride;
        float* const c = delivers ? tile.to : sums;
        const std::int64_t stride = delivers ? part->N : tile.c_stride;
        multiply({left.panel(row / kPanelRows), left.next}, rows, right, columns,
                 first ? Before{} : Before{sums, tile.c_stride}, c, stride,
                 row == 0 ? tile.sums : nullptr);
        if (finishes) finish(memory, tile.stripe, tile.row + row, rows, c, stride);
      }
    }
  }

  // One row times contiguous columns, as dot products.
  void row_of_dots(const Memory& memory, const Tile& tile, const LeftPanel& left, std::int64_t k,
                   std::int64_t depth, float* room) const {
    const Stripe& s = tile.stripe;
    const float* row = left.data;
    if (left.depth != 1) {
      for (std::int64_t i = 0; i < depth; ++i) room[i] = row[i * left.depth];
      row = room;
    }
    const RightPanel right = s.part->b.right(memory, {s.batch, k, depth, s.column, s.columns});
    add_dots(row, right.data, s.part->b.column(), depth, s.columns, tile.c, k == tile.k_begin);
  }

  // The right operand of a tile, packed where necessary.
  RightColumns right_columns(const Memory& memory, const Tile& tile, std::int64_t k,
                             std::int64_t depth) const {
    const auto& [part, batch, column, columns] = tile.stripe;
    RightColumns right{
        {}, tile.packed ? tile.packed + k / depth_ * block_room(columns) : nullptr, 0, NR_, depth};
    if (part->packing == Part::Packing::none) {
      right.ready = part->b.right(memory, {batch, k, depth, column, columns});
      right.packed_from = columns % panel_lanes() == 0 ? columns : columns / NR_ * NR_;
    }
    if (part->packing == Part::Packing::lines) {
      float* const to = scratch_floats(usize(Operand::lines_room(depth, columns)), 2);
      right.ready = part->b.lines(memory, {batch, k, depth, column, columns}, to);
      right.packed_from = columns;
    } else if (part->packing != Part::Packing::shared && right.packed_from < columns) {
      float* const to = scratch_floats(usize(depth_ * width_), 2);
      part->b.pack(memory,
                   {batch, k, depth, column + right.packed_from, columns - right.packed_from}, NR_,
                   to);
      right.panels = to;
    }
    return right;
  }

  // c = before + rows times columns, panel by panel, and the sums of these columns, unless null.
  // Prefetches the next panel, a slice with each call.
  void multiply(const LeftRows& left, std::int64_t rows, const RightColumns& right,
                std::int64_t columns, const Before& before, float* c, std::int64_t stride,
                double* sums) const {
    const std::int64_t depth = right.depth, calls = ceil_div(rows, kPanelRows),
                       slice = ceil_div(depth, calls);
    for (std::int64_t j = 0; j < columns; j += NR_) {
      const RightPanel panel = right.panel(j);
      const std::int64_t n = std::min(NR_, columns - j);
      if (sums) add_column_sums(panel.data, panel.depth, depth, n, sums + j);
      const bool follows = j + NR_ < columns;
      const bool in_place = follows && !right.packed(j + NR_) && depth * columns >= kLargeBlock;
      const std::int64_t step = follows && right.packed(j) ? 4 * NR_ / calls : 0;
      for (std::int64_t i = 0; i < calls; ++i) {
        if (in_place)
          for (std::int64_t r = i * slice; r < std::min(depth, (i + 1) * slice); ++r) {
            const float* const next = panel.data + r * panel.depth + NR_;
            for (std::int64_t at = 0; at < NR_; at += kLine) __builtin_prefetch(next + at, 0, 2);
          }
        const Ahead ahead{
            step ? reinterpret_cast<const char*>(panel.data + NR_ * depth) + i * step * depth
                 : nullptr,
            step};
        const std::int64_t row = i * kPanelRows;
        micro_kernel(left.panel(i), panel,
                     static_cast<int>(std::min<std::int64_t>(kPanelRows, rows - row)),
                     static_cast<int>(n), depth,
                     before.data ? Before{before.data + row * before.row + j, before.row} : before,
                     c + row * stride + j, stride, ahead);
      }
    }
  }

  // --- on the tile unit ---

  // Computes the sums of a tile, and their epilogue. Partial sums over k are stored in whole panels
  // until the last ones are added.
  void compute_by_amx(const Memory& memory, const Tile& tile) const {
    const auto& [part, batch, column, columns] = tile.stripe;
    const AmxSession session;
    const bool one_round = tile.k_end - tile.k_begin <= depth_;
    float* const sums = one_round ? nullptr : scratch_floats(usize(height_ * width_), 5);
    for (std::int64_t k = tile.k_begin; k < tile.k_end; k += depth_) {
      const std::int64_t depth = std::min(depth_, tile.k_end - k);
      const float* const right = right_pieces(memory, tile, k, depth);
      if (tile.sums) {
        const double* const more = reinterpret_cast<const double*>(right + sums_at(columns));
        for (std::int64_t n = 0; n < columns; ++n) tile.sums[n] += more[n];
      }
      const AmxStep step{left_pieces(memory, tile, k, depth), right, depth,
                         k == tile.k_begin ? nullptr : sums};
      if (k + depth < tile.k_end) {
        for (std::int64_t j = 0; j < columns; j += kAmxColumns)
          for (std::int64_t i = 0; i < tile.rows; i += kAmxRows)
            product(step, i, j, sums + i * width_ + j, width_);
        continue;
      }
      // Rows that get their epilogue in groups stay in cache until then; the next group reuses
      // their memory.
      const bool delivers = tile.finishes && tile.to, in_turn = tile.finishes && !part->plain;
      const std::int64_t some =
          in_turn ? round_up(std::max(kFinishedRows, kAmxFinished / columns), kAmxRows) : tile.rows;
      const std::int64_t stride = delivers ? part->N : tile.c_stride;
      float* const c = delivers ? tile.to : tile.c;
      for (std::int64_t row = 0; row < tile.rows; row += some) {
        const std::int64_t rows = std::min(some, tile.rows - row);
        last_products(memory, tile, step, row, rows, c, stride);
        if (tile.finishes) finish(memory, tile.stripe, tile.row + row, rows, c, stride);
      }
    }
  }

  // Operands for a range of k, and the previous sums.
  struct AmxStep {
    const float *left, *right;
    std::int64_t depth;
    const float* before;  // or null
  };

  // A panel of rows times a panel of columns.
  void product(const AmxStep& step, std::int64_t row, std::int64_t column, float* c,
               std::int64_t stride) const {
    amx_product(step.left + amx_room(row, step.depth), step.right + amx_room(column, step.depth),
                step.depth, step.before ? step.before + row * width_ + column : nullptr, width_, c,
                stride);
  }

  // A range of elements of a tile.
  struct Elements {
    std::int64_t row = 0, rows = 0, column = 0, columns = 0;
  };

  // Computes some rows for the last block of k. Each panel is checked while the next one is
  // computed: an immediate check would wait for its results.
  void last_products(const Memory& memory, const Tile& tile, const AmxStep& step, std::int64_t row,
                     std::int64_t rows, float* c, std::int64_t stride) const {
    const std::int64_t columns = tile.stripe.columns;
    Elements before;
    float* at = nullptr;
    const auto look = [&] {
      if (at && !amx_is_finite(at, stride, before.rows, before.columns))
        product_by_vectors(memory, tile, before, at, stride);
    };
    for (std::int64_t j = 0; j < columns; j += kAmxColumns)
      for (std::int64_t i = 0; i < rows; i += kAmxRows) {
        const Elements e{row + i, std::min(kAmxRows, rows - i), j,
                         std::min(kAmxColumns, columns - j)};
        last_product(step, e, c + i * stride + j, stride);
        look();
        before = e, at = c + i * stride + j;
      }
    look();
  }

  // Writes nothing past the edges.
  void last_product(const AmxStep& step, const Elements& e, float* c, std::int64_t stride) const {
    if (e.rows == kAmxRows && e.columns == kAmxColumns)
      return product(step, e.row, e.column, c, stride);
    alignas(64) float all[kAmxRows * kAmxColumns];
    product(step, e.row, e.column, all, kAmxColumns);
    for (std::int64_t i = 0; i < e.rows; ++i)
      std::copy_n(all + i * kAmxColumns, e.columns, c + i * stride);
  }

  // Computes with vectors what the unit cannot: infinities, NaNs, and values that it rounds to
  // infinity. Covers all of the tile's k.
  void product_by_vectors(const Memory& memory, const Tile& tile, const Elements& e, float* c,
                          std::int64_t stride) const {
    const std::int64_t left_room = round_up(e.rows, kPanelRows) * depth_;
    float* const room = scratch_floats(usize(left_room + round_up(e.columns, NR_) * depth_), 4);
    for (std::int64_t k = tile.k_begin; k < tile.k_end; k += depth_) {
      const std::int64_t depth = std::min(depth_, tile.k_end - k);
      const LeftRows left =
          a_.left(memory, {tile.stripe.batch, tile.row + e.row, e.rows, k, depth}, room);
      tile.stripe.part->b.pack(
          memory, {tile.stripe.batch, k, depth, tile.stripe.column + e.column, e.columns}, NR_,
          room + left_room);
      const RightColumns right{{}, room + left_room, 0, NR_, depth};
      multiply(left, e.rows, right, e.columns, k == tile.k_begin ? Before{} : Before{c, stride}, c,
               stride, nullptr);
    }
  }

  // The rows of a tile for a range of k, in pieces. Adjacent tiles use the same rows: the thread
  // may still have them, in scratch memory that nothing else uses.
  const float* left_pieces(const Memory& memory, const Tile& tile, std::int64_t k,
                           std::int64_t depth) const {
    struct Which {
      std::uint64_t run = 0;
      std::int64_t batch = 0, row = 0, k = 0;
      bool operator==(const Which&) const = default;
    };
    thread_local Which last;
    float* const to = scratch_floats(usize(amx_room(height_, depth_)), kKeptRows);
    const Which wanted{tile.run, tile.stripe.batch, tile.row, k};
    if (last == wanted) return to;
    last = {};  // in case of an exception
    a_.split_left(memory, {tile.stripe.batch, tile.row, tile.rows, k, depth}, to);
    last = wanted;
    return to;
  }

  // A block of a tile's columns.
  const float* right_pieces(const Memory& memory, const Tile& tile, std::int64_t k,
                            std::int64_t depth) const {
    const Stripe& s = tile.stripe;
    if (tile.packed) return tile.packed + k / depth_ * block_room(s.columns);
    float* const to = scratch_floats(usize(block_room(width_)), 2);
    split_right(memory, s, {s.batch, k, depth, s.column, s.columns}, 0, to);
    return to;
  }

  // Splits some columns of a block, from column `first` of the stripe on.
  void split_right(const Memory& memory, const Stripe& s, const Operand::Piece& piece,
                   std::int64_t first, float* block) const {
    double* const sums = reinterpret_cast<double*>(block + sums_at(s.columns)) + first;
    s.part->b.split_right(memory, piece, block + amx_room(first, piece.rows),
                          s.part->sums_columns ? sums : nullptr);
  }

  // --- epilogue ---

  // Runs the epilogue. Rows that are contiguous in the result are processed together.
  void finish(const Memory& memory, const Stripe& s, std::int64_t row, std::int64_t rows,
              const float* c, std::int64_t stride) const {
    const Part& part = *s.part;
    if (part.plain) {
      for (const ir::Store& store : part.stores)
        for (std::int64_t r = 0; r < rows; ++r) {
          float* const to = memory.at(store.place) + (s.batch * M_ + row + r) * part.N + s.column;
          if (to != c + r * stride) std::copy_n(c + r * stride, s.columns, to);
        }
      return;
    }
    float* const scratch = scratch_floats(part.epilogue.scratch());
    if (part.line > 1) part.epilogue.prepare(memory, scratch);
    const bool joined = s.columns == part.N && stride == s.columns;
    const std::int64_t runs = joined ? 1 : rows, length = joined ? rows * s.columns : s.columns;
    const std::int64_t most = kBlock / part.line * part.line;
    for (std::int64_t r = 0; r < runs; ++r)
      for (std::int64_t i = 0; i < length; i += most) {
        const std::int64_t begin = (s.batch * M_ + row + r) * part.N + s.column + i,
                           n = std::min(most, length - i);
        const Block block{begin, static_cast<int>(n), begin / part.line,
                          static_cast<int>(n / part.line)};
        const float* const* values = part.epilogue.run(
            memory, block, scratch, BlockProgram::Part::all, {.accumulator = c + r * stride + i});
        for (std::size_t k = 0; k < part.stores.size(); ++k)
          if (!part.stored[k])
            std::copy_n(values[usize(part.stores[k].value)], n,
                        memory.at(part.stores[k].place) + begin);
      }
  }

  MatmulUnit by_;
  std::int64_t M_, K_, N_ = 0, batches_;
  std::int64_t NR_;
  std::int64_t height_ = 0, width_ = 0, depth_ = 0;  // tile size, and block size of k
  std::int64_t down_ = 0, across_ = 0;               // tiles per batch
  std::int64_t rows_together_ = 1;                   // rows of tiles per group
  std::int64_t splits_ = 1, split_ = 0;              // parts of k
  std::int64_t together_ = 1;                        // tiles per task
  bool shares_ = false;
  Operand a_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::MatmulKernel& core) {
  const auto* const blocks = std::get_if<ir::MatmulBlocks>(&core.variant);
  if (!blocks) internal_error("no blocks were chosen: {}", kernel.name);
  return std::make_unique<Matmul>(kernel, core, *blocks);
}

}  // namespace tensorgrad::cpu
