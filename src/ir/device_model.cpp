#include "ir/device_model.h"

namespace tensorgrad::ir {

namespace {

constexpr TileCandidate kTiles[] = {
    {{.TM = 128, .TN = 128, .TK = 16, .RM = 8, .RN = 8}, 0.51},
    {{.TM = 128, .TN = 64, .TK = 16, .RM = 8, .RN = 4}, 0.58},
    {{.TM = 64, .TN = 128, .TK = 16, .RM = 4, .RN = 8}, 0.56},
    {{.TM = 64, .TN = 64, .TK = 32, .RM = 4, .RN = 4}, 0.45},
    {{.TM = 32, .TN = 32, .TK = 64, .RM = 4, .RN = 4, .slices = 4}, 0.35},
};

constexpr DeviceModel kGpu = {
    .name = "gpu",
    .apart = {.from = std::int64_t{1} << 26, .below = std::int64_t{1} << 30},
    .side_by_side = {.elements = std::int64_t{1} << 22,
                     .operations = std::int64_t{1} << 30,
                     .kernels = 4},
    .recompute = {.constants = 8, .ops = 4, .matmul_reads = 128},
    .take_turns = {.bytes = 1 << 19, .share = 256},
    .rows = {.lanes = 4,
             .alone = 4,
             .threads = 256,
             .longest = 4096,
             .many_lines = 64,
             .least_part = 1024,
             .most_parts = 256},
    .columns = {.few_rows = 16, .many_lines = 65536, .turns = 8},
    .scan = {.alone = 32},
    .segment_sum = {.many_ids = 1024,
                    .few_positions = 2048,
                    .least_part = 512,
                    .workgroups = 4096,
                    .most_partial = std::int64_t{1} << 26},
    .attention = {.short_sequence = 16, .small_head = 32},
    .tiles = {.candidates = kTiles,
              .direct_k = 16,
              .narrow = 4,
              .narrow_k = 256,
              .workgroups = 128,
              .operations = 50e6,
              .bytes = 2.5e6,
              .turn = 0.5,
              .second_shader = 3.0,
              .long_k = 1024,
              .most_splits = 64},
    .blocks = {},
};

// Measured with matmuls from training.
constexpr MatmulUnitModel kUnits[] = {
    {.unit = MatmulUnit::vectors,
     .depth = 8,
     .together = 384,
     .multiplication = 1.0 / 32,
     .left = 0.25,
     .right_once = 0,
     .right = 0.25,
     .part = 0.75,
     .store = 0.25},
    {.unit = MatmulUnit::amx,
     .rows = 16,
     .columns = 32,
     .depth = 32,
     .together = 128,
     .packs = true,
     .packed_floats = 1.5,
     .multiplication = 1.0 / 64,
     .left = 0.6,
     .right_once = 0.55,
     .right = 0.2,
     .part = 1.0,
     .store = 0.25},
};

constexpr DeviceModel cpu_with(std::span<const MatmulUnitModel> units) {
  return {
      .name = "cpu",
      // The same values as the GPU's, from before there were models: not measured on a CPU yet.
      .apart = {.from = std::int64_t{1} << 26, .below = std::int64_t{1} << 30},
      .side_by_side = {.elements = std::int64_t{1} << 22,
                       .operations = std::int64_t{1} << 30,
                       .kernels = 4},
      .recompute = {.constants = 8, .ops = 4, .matmul_reads = 128},
      .take_turns = {.bytes = 1 << 19, .share = 256},
      // Rows up to `longest` fit into scratch memory: schedule::kLongestRow.
      .rows = {.longest = 4096, .least_part = 1 << 14},
      .columns = {.turns = 256},
      .scan = {},
      .segment_sum = {},
      .attention = {.many_heads = 16, .piece = 128},
      .tiles = {},
      .blocks = {.units = units,
                 .most_rows = 128,
                 .most_columns = 512,
                 .least_rows = 32,
                 .least_columns = 64,
                 .least_split = 128,
                 .many_tiles = 16,
                 .task_work = 1 << 17,
                 .finish = 16,
                 .right_floats = 1 << 18,
                 .block = 1024,
                 .run_cycles = 4000,
                 .finish_cycles = 100},
  };
}

constexpr std::span<const MatmulUnitModel> kAllUnits = kUnits;
constexpr DeviceModel kVectors = cpu_with(kAllUnits.first(1)), kBoth = cpu_with(kAllUnits),
                      kAmx = cpu_with(kAllUnits.subspan(1));

}  // namespace

const DeviceModel& cpu_model(CpuUnits units) {
  switch (units) {
    case CpuUnits::vectors:
      return kVectors;
    case CpuUnits::vectors_and_amx:
      return kBoth;
    case CpuUnits::amx:
      return kAmx;
  }
  return kVectors;
}

const DeviceModel& gpu_model() { return kGpu; }

}  // namespace tensorgrad::ir
