// Variants: how a kernel is computed where a device has a choice. `kernels/variants` chooses, a
// Kernel carries the choice, and a backend executes it. What decides the order of additions
// (splits, parts, slices) is chosen by shape and device model alone, so that the same program has
// the same bits on the same device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorgrad::ir {

struct RowsVariant {
  enum class Walk : std::uint8_t {
    elements,  // no reductions: each element by itself
    rows,      // whole rows, each by `threads` threads
    parts,     // few long rows: parts of `part` first, then joined in order
  };
  Walk walk = Walk::elements;
  std::int64_t threads = 1;  // a power of two; a backend may use fewer. A CPU uses one.
  std::int64_t part = 0;     // elements, or on a GPU quads where rows are whole quads
  friend bool operator==(const RowsVariant&, const RowsVariant&) = default;
};

struct ColumnsVariant {
  bool alone = false;      // one thread walks down a column; otherwise several share it
  std::int64_t turns = 1;  // rows that one thread adds; longer columns are cut into parts
  friend bool operator==(const ColumnsVariant&, const ColumnsVariant&) = default;
};

struct ScanVariant {
  bool alone = true;  // one thread walks along a row; otherwise a workgroup does
  friend bool operator==(const ScanVariant&, const ScanVariant&) = default;
};

struct SegmentSumVariant {
  // Columns that one workgroup adds.
  static constexpr std::int64_t kColumns = 32;
  // Positions are sorted by id first. A backend that cannot sort them searches.
  bool sorts = false;
  std::int64_t parts = 1;  // of the positions, joined in order; used where ids are searched
  friend bool operator==(const SegmentSumVariant&, const SegmentSumVariant&) = default;
};

struct AttentionVariant {
  bool row_per_thread = false;  // short sequences of small heads; otherwise tiles
  std::int64_t queries = 0;     // of one head that a task takes
  std::int64_t keys = 0;        // of one part, in the gradient: parts are added in order
  friend bool operator==(const AttentionVariant&, const AttentionVariant&) = default;
};

// Rows, columns and values of k of a tile.
struct TileSize {
  int M = 0, N = 0, K = 0;
  friend bool operator==(const TileSize&, const TileSize&) = default;
};
std::string text(const TileSize& size);                     // "128x64x16"
std::optional<TileSize> parse_tile_size(std::string_view);  // nothing where it is no size

// A matmul on a GPU.
struct MatmulTiles {
  bool direct = false;         // no tiles: a thread walks along k for its element or quad
  int TM = 0, TN = 0, TK = 0;  // of the result and of k, per workgroup
  int RM = 0, RN = 0;          // of the result, per thread
  int slices = 1;              // parts of TK, each by its own threads, joined in order
  std::int64_t splits = 1;     // parts of k, each by its own workgroups; a second shader joins them
  std::int64_t threads() const { return std::int64_t{TM / RM} * (TN / RN) * slices; }
  TileSize size() const { return {TM, TN, TK}; }
  friend bool operator==(const MatmulTiles&, const MatmulTiles&) = default;
};
std::string text(const MatmulTiles& tiles);  // its size, or "direct"

// What multiplies matrices on a CPU: vector instructions, or Intel's tile unit.
enum class MatmulUnit : std::uint8_t { vectors, amx };

// A matmul on a CPU. A backend rounds rows and columns to whole panels of its vectors.
struct MatmulBlocks {
  MatmulUnit unit = MatmulUnit::vectors;
  // The matmul of the transposed operands is computed: a single column becomes a row. Only where
  // the left operand is strided memory and there is one part without column sums.
  bool transposed = false;
  std::int64_t rows = 0, columns = 0;  // of a tile, at most
  std::int64_t depth = 0;              // of k at a time
  std::int64_t splits = 1, split = 0;  // parts of k, and their length: a multiple of depth
  bool rows_once = false;              // the left operand is packed once for all columns
  std::int64_t work = 0;               // multiplications in all, with what an element takes besides
  std::int64_t task_work = 1;          // multiplications that are worth a task
  friend bool operator==(const MatmulBlocks&, const MatmulBlocks&) = default;
};

}  // namespace tensorgrad::ir
