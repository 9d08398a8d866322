// DeviceModel: the costs and limits of one kind of device, as data. Stages that make choices (which
// matmuls to join, which kernels run concurrently, which variant of a kernel) query the model of
// the device that the program is compiled for. A value that was measured on one device appears only
// in that device's model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "ir/variants.h"

namespace tensorgrad::ir {

// Larger than any count, and small enough that additions do not overflow.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;

// A tile size that a GPU may use, and the fraction of peak throughput that full tiles reach.
struct TileCandidate {
  MatmulTiles tiles;
  double share = 1;
};

// A CPU unit that multiplies matrices, and approximate costs in cycles.
struct MatmulUnitModel {
  MatmulUnit unit = MatmulUnit::vectors;
  std::int64_t rows = 1, columns = 1, depth = 1;  // computed per step
  std::int64_t together = 1;                      // values of k whose panels stay in cache
  bool packs = false;                             // needs both operands packed, in whole panels
  double packed_floats = 1;                       // memory per element of a packed operand
  double multiplication = 0;                      // per scalar multiplication
  double left = 0;        // per element of the left operand and tile that reads it
  double right_once = 0;  // per element of the right operand, once
  double right = 0;       // per element of the right operand and tile that reads it
  double part = 0;        // per element of one part of k, written and read
  double store = 0;       // one element of the result, if k has one part
};

struct DeviceModel {
  std::string_view name;

  // Passes `products` and `side_by_side`: matmuls with this many operations each run faster
  // separately than joined. Each one fills the device, and smaller tiles balance the load better.
  // Larger matmuls gain more from reading an operand once.
  struct Apart {
    std::int64_t from = 0, below = 0;  // operations
    constexpr bool contains(std::int64_t operations) const {
      return operations >= from && operations < below;
    }
  } apart;

  // Stage `fuse`, order of the groups: a kernel above one of these limits fills the device by
  // itself. Smaller, independent kernels run concurrently.
  struct SideBySide {
    std::int64_t elements = 0;    // per node
    std::int64_t operations = 0;  // per matmul
    std::size_t kernels = 1;      // maximum number of concurrent kernels
  } side_by_side;

  // Stage `fuse`: what is cheaper to compute again than to store.
  struct Recompute {
    int constants = 0;              // ops on constants and positions alone, in a row
    std::size_t ops = 0;            // an operand of a matmul with at most this many cheap ops,
    std::int64_t matmul_reads = 0;  // or one that the matmul reads at most this many times
  } recompute;

  // Stage `plan`: kernels that run side by side take turns if that saves at least this much of the
  // arena.
  struct TakeTurns {
    std::int64_t bytes = 0;
    std::int64_t share = 1;  // of the arena: one part in this many
  } take_turns;

  // The rest is for stage `lower`, which chooses variants (kernels/variants).

  struct Rows {
    std::int64_t lanes = 1;           // elements per vector load; that many elements are one point
    std::int64_t alone = 0;           // points: one thread walks rows up to this length
    std::int64_t threads = 1;         // maximum number of threads for longer rows
    std::int64_t longest = kNoLimit;  // points: longer rows are cut into parts
    std::int64_t many_lines = kNoLimit;  // this many rows are not cut: the device is busy
    std::int64_t least_part = 1;         // minimum points per part
    std::int64_t most_parts = kNoLimit;  // maximum parts per row
  } rows;

  struct Columns {
    std::int64_t few_rows = 0;           // one thread walks columns with up to this many rows
    std::int64_t many_lines = kNoLimit;  // with this many columns, one thread walks each column
    std::int64_t turns = 1;              // rows that one thread adds
  } columns;

  struct Scan {
    std::int64_t alone = kNoLimit;  // one thread walks rows up to this length
  } scan;

  struct SegmentSum {
    std::int64_t many_ids = kNoLimit;       // from this many ids on, positions are sorted by id
    std::int64_t few_positions = kNoLimit;  // up to this many, positions are not cut into parts
    std::int64_t least_part = 1;            // minimum positions per part
    std::int64_t workgroups = 1;            // needed to keep the device busy
    std::int64_t most_partial = kNoLimit;   // maximum elements of partial sums
  } segment_sum;

  struct Attention {
    std::int64_t short_sequence = 0, small_head = 0;  // up to both, one thread computes a row
    std::int64_t many_heads = 1;                      // this many heads are not cut
    std::int64_t piece = 1;  // queries or keys per piece when heads are cut
  } attention;

  // Matmuls on a GPU. These values only decide between good choices.
  struct Tiles {
    std::span<const TileCandidate> candidates;  // empty: the device has no tiles
    std::int64_t direct_k = 0;                  // up to this K, no tiles are used
    std::int64_t narrow = 0, narrow_k = 0;      // up to this N (or M) and this K, no tiles are used
    double workgroups = 1;                      // running concurrently
    double operations = 1;                      // per microsecond
    double bytes = 1;                           // per microsecond
    double turn = 0;                            // microseconds per tile of k, of any size
    double second_shader = 0;                   // microseconds
    std::int64_t long_k = kNoLimit;             // a shorter K is not worth a second shader
    std::int64_t most_splits = 1;
  } tiles;

  // Matmuls on a CPU.
  struct Blocks {
    std::span<const MatmulUnitModel> units;          // the units of the machine
    std::int64_t most_rows = 1, most_columns = 1;    // maximum size of a tile
    std::int64_t least_rows = 1, least_columns = 1;  // smaller tiles are not cut further
    std::int64_t least_split = kNoLimit;             // minimum length of a part of k
    std::int64_t many_tiles = 1;                     // enough tiles to keep all threads busy
    std::int64_t task_work = 1;                      // minimum multiplications per task
    std::int64_t finish = 0;        // overhead per result element, in multiplications
    std::int64_t right_floats = 0;  // largest packed right operand that stays in the L2 cache
    std::int64_t block = 1;         // elements that an epilogue processes at a time
    double run_cycles = 0;          // to distribute tasks once more
    double finish_cycles = 0;       // to start an epilogue, for a row or for a block of rows
  } blocks;
};

// CPUs with vector instructions, measured with AVX-512.
enum class CpuUnits : std::uint8_t { vectors, vectors_and_amx, amx };
const DeviceModel& cpu_model(CpuUnits units = CpuUnits::vectors);
// GPUs through WebGPU, measured on an H200.
const DeviceModel& gpu_model();

}  // namespace tensorgrad::ir
