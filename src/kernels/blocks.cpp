#include "kernels/blocks.h"

#include <algorithm>
#include <limits>

#include "support/integers.h"

namespace tensorgrad::kernels {

using Device = ir::DeviceModel::Blocks;
using ir::MatmulUnitModel;

namespace {

struct Matmul {
  MatmulShape shape;
  std::int64_t N = 0;
  std::int64_t wanted = 1;  // number of tiles
};

// Whether rows that were packed for some columns can be reused for the next ones. This requires
// that all values of k fit into one step and that the right operand stays in the L2 cache.
bool packs_once(const Matmul& m, const Device& device, const MatmulUnitModel& unit,
                std::int64_t splits) {
  const double floats =
      static_cast<double>(m.N * round_up(m.shape.K, unit.depth)) * unit.packed_floats;
  return unit.packs && ceil_div(m.shape.K, splits) <= unit.together &&
         floats <= static_cast<double>(device.right_floats);
}

// Estimates the cycles for tiles of this size: arithmetic, reads and writes.
double cost(const Matmul& m, const Device& device, const MatmulUnitModel& unit, std::int64_t rows,
            std::int64_t columns, std::int64_t splits) {
  const MatmulShape& p = m.shape;
  std::int64_t across = 0, padded = 0;
  for (const std::int64_t width : p.widths)
    across += ceil_div(width, columns), padded += round_up(width, unit.columns);
  const std::int64_t down = ceil_div(p.M, rows), pieces = p.batches * across * down * splits;
  const std::int64_t multiplications =
      unit.packs ? round_up(p.M, unit.rows) * padded * round_up(p.K, unit.depth) : p.M * m.N * p.K;
  const std::int64_t repeats = packs_once(m, device, unit, splits) ? 1 : across;
  const double each =
      static_cast<double>(multiplications) * unit.multiplication +
      static_cast<double>(p.M * p.K * repeats) * unit.left +
      static_cast<double>(p.K * m.N) * (unit.right_once + static_cast<double>(down) * unit.right) +
      static_cast<double>(p.M * m.N) *
          (splits > 1 ? static_cast<double>(splits) * unit.part : unit.store);
  const std::int64_t starts = across == static_cast<std::int64_t>(p.widths.size())
                                  ? ceil_div(p.M * m.N, device.block)
                                  : p.M * across;
  const double finish = p.epilogues ? static_cast<double>(starts) * device.finish_cycles : 0;
  const double all = static_cast<double>(p.batches) * (each + finish);
  // One more run to add parts, and one to pack the right operand.
  const int runs = (splits > 1 ? 1 : 0) + (unit.packs && down > 1 ? 1 : 0);
  return all / static_cast<double>(std::min(pieces, m.wanted)) + runs * device.run_cycles;
}

}  // namespace

ir::MatmulBlocks choose_blocks(const MatmulShape& shape, const Device& device) {
  Matmul matmul{shape};
  for (const std::int64_t width : shape.widths) matmul.N += width;
  ir::MatmulBlocks out;
  out.rows = device.most_rows, out.columns = device.most_columns;
  out.task_work = device.task_work;
  out.work = shape.batches * shape.M * matmul.N * (shape.K + device.finish);
  matmul.wanted = std::clamp<std::int64_t>(out.work / device.task_work, 1, device.many_tiles);
  double least = std::numeric_limits<double>::infinity();
  const auto each_tile = [&](const Matmul& m, const MatmulUnitModel& unit, std::int64_t splits,
                             auto better) {
    for (std::int64_t r = device.most_rows; r >= device.least_rows; r /= 2)
      for (std::int64_t c = device.most_columns; c >= device.least_columns; c /= 2)
        if (const double time = cost(m, device, unit, r, c, splits); time < least)
          least = time, better(r, c);
  };
  // The unit and the parts of k determine the order of additions. They are chosen without the
  // epilogue, so that a matmul gives the same bits with any epilogue. The tiles are chosen
  // afterwards.
  Matmul alone = matmul;
  alone.shape.epilogues = false;
  const MatmulUnitModel* by = &device.units[0];
  for (const MatmulUnitModel& unit : device.units)
    for (std::int64_t n = 1;
         n == 1 || (n <= device.many_tiles && shape.K / n >= device.least_split); n *= 2)
      each_tile(alone, unit, n, [&](std::int64_t, std::int64_t) { out.splits = n, by = &unit; });
  least = std::numeric_limits<double>::infinity();
  each_tile(matmul, *by, out.splits,
            [&](std::int64_t r, std::int64_t c) { out.rows = r, out.columns = c; });
  out.unit = by->unit;
  out.depth = even_piece(ceil_div(shape.K, out.splits), by->together, by->depth);
  out.split = round_up(ceil_div(shape.K, out.splits), out.depth);
  out.splits = std::max<std::int64_t>(1, ceil_div(shape.K, std::max<std::int64_t>(1, out.split)));
  out.rows_once = packs_once(matmul, device, *by, out.splits);
  return out;
}

}  // namespace tensorgrad::kernels
