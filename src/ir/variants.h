// Variants: the algorithm of a kernel where a device has a choice. `kernels/variants` chooses, a
// Kernel carries the choice, and a backend executes it. Everything that affects the order of
// additions (splits, parts, slices) depends only on the shape and the device model, so that the
// same program gives the same bits on the same device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorgrad::ir {

struct RowsVariant {
  enum class Walk : std::uint8_t {
    elements,  // no reductions: each element is independent
    rows,      // whole rows, `threads` threads per row
    parts,     // few long rows: parts of `part` first, then combined in order
  };
  Walk walk = Walk::elements;
  std::int64_t threads = 1;  // a power of two; a backend may use fewer. A CPU uses one.
  std::int64_t part = 0;     // elements, or quads on a GPU if rows are whole quads
  bool operator==(const RowsVariant&) const = default;
};

struct ColumnsVariant {
  bool alone = false;      // one thread walks down a column; otherwise several threads share it
  std::int64_t turns = 1;  // rows that one thread adds; longer columns are cut into parts
  bool operator==(const ColumnsVariant&) const = default;
};

struct ScanVariant {
  bool alone = true;  // one thread walks along a row; otherwise a workgroup does
  bool operator==(const ScanVariant&) const = default;
};

struct SegmentSumVariant {
  // Columns per workgroup.
  static constexpr std::int64_t kColumns = 32;
  // Sort positions by id first. A backend that cannot sort searches instead.
  bool sorts = false;
  std::int64_t parts = 1;  // parts of the positions, combined in order; used when ids are searched
  bool operator==(const SegmentSumVariant&) const = default;
};

struct AttentionVariant {
  bool row_per_thread = false;  // short sequences of small heads; otherwise tiles
  std::int64_t queries = 0;     // queries of one head per task
  std::int64_t keys = 0;        // keys per part, in the gradient: parts are added in order
  bool operator==(const AttentionVariant&) const = default;
};

// Rows, columns and k values of a tile.
struct TileSize {
  int M = 0, N = 0, K = 0;
  bool operator==(const TileSize&) const = default;
};
std::string text(const TileSize& size);                     // "128x64x16"
std::optional<TileSize> parse_tile_size(std::string_view);  // empty if the text is not a size

// A matmul on a GPU.
struct MatmulTiles {
  bool direct = false;         // no tiles: a thread walks along k for its element or quad
  int TM = 0, TN = 0, TK = 0;  // tile of the result and of k, per workgroup
  int RM = 0, RN = 0;          // elements of the result, per thread
  int slices = 1;              // parts of TK, each with its own threads, combined in order
  std::int64_t splits = 1;  // parts of k, each with its own workgroups; a second shader adds them
  std::int64_t threads() const { return std::int64_t{TM / RM} * (TN / RN) * slices; }
  TileSize size() const { return {TM, TN, TK}; }
  bool operator==(const MatmulTiles&) const = default;
};
std::string text(const MatmulTiles& tiles);  // the tile size, or "direct"

// The CPU unit for matmuls: vector instructions, or Intel's tile unit.
enum class MatmulUnit : std::uint8_t { vectors, amx };

// A matmul on a CPU. A backend rounds rows and columns to whole panels of its vectors.
struct MatmulBlocks {
  MatmulUnit unit = MatmulUnit::vectors;
  // Compute the matmul of the transposed operands: a single column becomes a row. Only possible if
  // the left operand is strided memory and there is one part without column sums.
  bool transposed = false;
  std::int64_t rows = 0, columns = 0;  // maximum size of a tile
  std::int64_t depth = 0;              // values of k per step
  std::int64_t splits = 1, split = 0;  // parts of k, and their length: a multiple of depth
  bool rows_once = false;              // the left operand is packed once for all columns
  std::int64_t work = 0;       // multiplications in total, including the overhead per element
  std::int64_t task_work = 1;  // minimum multiplications per task
  bool operator==(const MatmulBlocks&) const = default;
};

}  // namespace tensorgrad::ir
