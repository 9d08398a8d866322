#include "codegen/cpu/matmul_cut.h"

#include <algorithm>

#include "codegen/cpu/amx.h"
#include "codegen/cpu/micro_kernel.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

Cut cut_matmul(const ir::MatmulBlocks& blocks, std::int64_t batches, std::int64_t M,
               std::span<const std::int64_t> widths) {
  const bool amx = blocks.unit == ir::MatmulUnit::amx;
  const std::int64_t panel_rows = amx ? kAmxRows : kPanelRows,
                     columns = amx ? kAmxColumns : panel_columns();
  Cut cut;
  cut.height = even_piece(M, std::min(blocks.rows, kTileRows), panel_rows);
  cut.down = ceil_div(M, cut.height);
  for (const std::int64_t width : widths)
    cut.width =
        std::max(cut.width, even_piece(width, std::min(blocks.columns, kTileColumns), columns));
  for (const std::int64_t width : widths) cut.across += ceil_div(width, cut.width);
  const std::int64_t tiles =
      std::max<std::int64_t>(1, batches * cut.down * cut.across * blocks.splits);
  cut.together =
      std::max<std::int64_t>(1, blocks.task_work / std::max<std::int64_t>(1, blocks.work / tiles));
  return cut;
}

}  // namespace tensorgrad::cpu
