// DeviceModel: the costs and limits of one kind of device, as data. Stages that choose (which
// matmuls to join, which kernels run side by side, which variant of a kernel) ask the model of the
// device that the program is compiled for. A number that was measured on one device stands in that
// device's model alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "ir/variants.h"

namespace tensorgrad::ir {

// More than any count, and far enough from the end to be added to.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;

// Tiles that a GPU may use, and the share of its peak that full tiles of this size reach.
struct TileCandidate {
  MatmulTiles tiles;
  double share = 1;
};

// A unit of a CPU that multiplies matrices, and about how many cycles things take there.
struct MatmulUnitModel {
  MatmulUnit unit = MatmulUnit::vectors;
  std::int64_t rows = 1, columns = 1, depth = 1;  // that it computes at a time
  std::int64_t together = 1;                      // values of k whose panels stay in cache
  bool packs = false;                             // it takes both operands packed, in whole panels
  double packed_floats = 1;                       // of memory, per element of a packed operand
  double multiplication = 0;                      // of two scalars
  double left = 0;        // an element of the left operand, for each tile that reads it
  double right_once = 0;  // an element of the right operand, once,
  double right = 0;       // and for each tile that reads it
  double part = 0;        // an element of one part of k, written and read
};

struct DeviceModel {
  std::string_view name;

  // Passes `products` and `side_by_side`: matmuls of this many operations each run better one by
  // one than joined. Each of them fills the device, and smaller tiles share out better; larger ones
  // gain more from reading an operand once.
  struct Apart {
    std::int64_t from = 0, below = 0;  // operations
    constexpr bool contains(std::int64_t operations) const {
      return operations >= from && operations < below;
    }
  } apart;

  // Stage `fuse`, order of the groups: a kernel beyond one of these fills the device by itself.
  // Smaller ones that do not depend on each other run side by side.
  struct SideBySide {
    std::int64_t elements = 0;    // of each node
    std::int64_t operations = 0;  // of each matmul
    std::size_t kernels = 1;      // at most this many together
  } side_by_side;

  // The rest is for stage `lower`, which chooses variants (kernels/variants).

  struct Rows {
    std::int64_t lanes = 1;              // elements that a thread reads at once: a point
    std::int64_t alone = 0;              // points: rows up to this are walked by one thread,
    std::int64_t threads = 1;            // others by at most this many
    std::int64_t longest = kNoLimit;     // points: longer rows are cut into parts,
    std::int64_t many_lines = kNoLimit;  // unless this many rows keep the device busy
    std::int64_t least_part = 1;         // points
    std::int64_t most_parts = kNoLimit;  // of a row
  } rows;

  struct Columns {
    std::int64_t few_rows = 0;           // columns up to this are walked by one thread,
    std::int64_t many_lines = kNoLimit;  // and so are this many columns
    std::int64_t turns = 1;              // rows that one thread adds
  } columns;

  struct Scan {
    std::int64_t alone = kNoLimit;  // rows up to this are walked by one thread
  } scan;

  struct SegmentSum {
    std::int64_t many_ids = kNoLimit;       // from here on, positions are sorted by id
    std::int64_t few_positions = kNoLimit;  // up to this, positions are not cut into parts
    std::int64_t least_part = 1;            // positions
    std::int64_t workgroups = 1;            // that keep the device busy
    std::int64_t most_partial = kNoLimit;   // elements of partial sums
  } segment_sum;

  struct Attention {
    std::int64_t short_sequence = 0, small_head = 0;  // up to both, a thread computes a row
    std::int64_t many_heads = 1;                      // keep the device busy without being cut,
    std::int64_t piece = 1;  // otherwise into pieces of this many queries or keys
  } attention;

  // Matmuls of a GPU. The numbers only decide between good choices.
  struct Tiles {
    std::span<const TileCandidate> candidates;  // none: the device has no tiles
    std::int64_t direct_k = 0;                  // up to this K, no tiles;
    std::int64_t narrow = 0, narrow_k = 0;      // nor up to this N (or M) and this K
    double workgroups = 1;                      // that run at a time
    double operations = 1;                      // per microsecond
    double bytes = 1;                           // per microsecond
    double turn = 0;                            // microseconds for a tile of k, however small
    double second_shader = 0;                   // microseconds
    std::int64_t long_k = kNoLimit;             // shorter K are not worth a second shader
    std::int64_t most_splits = 1;
  } tiles;

  // Matmuls of a CPU.
  struct Blocks {
    std::span<const MatmulUnitModel> units;          // that the machine has
    std::int64_t most_rows = 1, most_columns = 1;    // of a tile
    std::int64_t least_rows = 1, least_columns = 1;  // tiles that are not cut further
    std::int64_t least_split = kNoLimit;             // of k
    std::int64_t many_tiles = 1;                     // keep all threads busy
    std::int64_t task_work = 1;                      // multiplications that are worth a task
    std::int64_t finish = 0;        // multiplications that an element of the result takes besides
    std::int64_t right_floats = 0;  // of a packed right operand that stays in the second cache
    std::int64_t block = 1;         // elements that an epilogue takes at a time
    double run_cycles = 0;          // to hand out tasks once more
    double finish_cycles = 0;       // to start an epilogue, for a row or for a block of them
  } blocks;
};

// Processors with vector instructions, measured with AVX-512.
enum class CpuUnits : std::uint8_t { vectors, vectors_and_amx, amx };
const DeviceModel& cpu_model(CpuUnits units = CpuUnits::vectors);
// GPUs through WebGPU; measured on an H200.
const DeviceModel& gpu_model();

}  // namespace tensorgrad::ir
