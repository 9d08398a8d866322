#include "kernels/variants.h"

#include <algorithm>

#include "kernels/blocks.h"
#include "kernels/tiles.h"
#include "support/integers.h"

namespace tensorgrad::kernels {

namespace {

using ir::DeviceModel;

std::int64_t power_of_two(std::int64_t at_least) {
  std::int64_t p = 1;
  while (p < at_least) p *= 2;
  return p;
}

ir::RowsVariant chosen(const ir::RowsKernel& k, const DeviceModel& model) {
  using Walk = ir::RowsVariant::Walk;
  const DeviceModel::Rows& device = model.rows;
  const auto& code = k.program.code;
  if (std::none_of(code.begin(), code.end(), [](const ir::Instr& in) { return in.line; }))
    return {.walk = Walk::elements};
  const std::int64_t points =
      k.length > 0 && k.length % device.lanes == 0 ? k.length / device.lanes : k.length;
  if (points > device.longest && k.lines < device.many_lines)
    return {.walk = Walk::parts,
            .threads = device.threads,
            .part = std::max(device.least_part, ceil_div(points, device.most_parts))};
  // For rows of a few points, one thread is faster than several with barriers.
  if (points <= device.alone) return {.walk = Walk::rows};
  return {.walk = Walk::rows, .threads = std::min(device.threads, power_of_two(points))};
}

ir::ColumnsVariant chosen(const ir::ColumnsKernel& k, const DeviceModel& model) {
  const DeviceModel::Columns& device = model.columns;
  return {.alone = k.length <= device.few_rows || k.lines >= device.many_lines,
          .turns = device.turns};
}

ir::ScanVariant chosen(const ir::ScanKernel& k, const DeviceModel& model) {
  return {.alone = k.length <= model.scan.alone};
}

ir::SegmentSumVariant chosen(const ir::SegmentSumKernel& k, const DeviceModel& model) {
  const DeviceModel::SegmentSum& device = model.segment_sum;
  const std::int64_t P = k.length, D = k.lines, V = k.extent;
  ir::SegmentSumVariant out{.sorts = V >= device.many_ids && P > 0};
  if (P <= device.few_positions || V * D == 0) return out;
  // Few positions per workgroup, unless that gives too many workgroups.
  const std::int64_t groups = V * ceil_div(D, ir::SegmentSumVariant::kColumns);
  out.parts =
      std::clamp<std::int64_t>(device.workgroups / groups, 1, ceil_div(P, device.least_part));
  if (V * D * out.parts > device.most_partial) out.parts = 1;
  return out;
}

ir::AttentionVariant chosen(const ir::AttentionCore& k, const DeviceModel& model) {
  const DeviceModel::Attention& device = model.attention;
  const ir::AttentionShape& s = k.shape;
  ir::AttentionVariant out{.row_per_thread = std::max(s.T, s.S) <= device.short_sequence &&
                                             std::max(s.D, s.V) <= device.small_head,
                           .queries = s.T,
                           .keys = s.S};
  if (s.B * s.H < device.many_heads) out.queries = std::min(s.T, device.piece);
  // Heads that share keys are one unit of work: their gradients of k and v are added in order.
  const std::int64_t groups = std::max<std::int64_t>(1, s.B * s.G);
  if (groups < device.many_heads) {
    const std::int64_t parts =
        std::min(ceil_div(s.S, device.piece), ceil_div(device.many_heads, groups));
    out.keys = ceil_div(s.S, std::max<std::int64_t>(1, parts));
  }
  return out;
}

// Whether the operand is a single load of strided memory.
bool is_strided(const ir::Kernel& kernel, const ir::ScalarProgram& program) {
  if (program.code.size() != 1 || program.code[0].op != ir::ScalarOp::load) return false;
  const ir::Load& load = kernel.loads[usize(program.code[0].slot)];
  return load.source == ir::Load::Source::memory && load.map.is_strided();
}

ir::MatmulBlocks chosen_blocks(const ir::Kernel& kernel, const ir::MatmulKernel& k,
                               const DeviceModel& model) {
  MatmulShape shape{.batches = k.batches, .M = k.M, .K = k.K, .widths = {}};
  std::vector<std::int64_t> widths;
  for (const ir::MatmulPart& part : k.parts) {
    widths.push_back(part.N);
    shape.epilogues = shape.epilogues || part.epilogue.code.size() != 1;
  }
  // A single column is a row of the transposed result. Its elements have the same order in memory.
  const bool transposed = k.parts.size() == 1 && k.parts[0].N == 1 && !k.parts[0].column_sums &&
                          is_strided(kernel, k.a);
  if (transposed) std::swap(shape.M, widths[0]);
  shape.widths = widths;
  ir::MatmulBlocks out = choose_blocks(shape, model.blocks);
  out.transposed = transposed;
  return out;
}

}  // namespace

void choose_variants(ir::Kernel& kernel, const DeviceModel& model) {
  std::visit(
      [&](auto& core) {
        if constexpr (std::is_same_v<decltype(core), ir::MatmulKernel&>) {
          if (model.tiles.candidates.empty())
            core.variant = chosen_blocks(kernel, core, model);
          else
            core.variant = choose_tiles(core, model);
        } else if constexpr (requires { core.variant; }) {
          core.variant = chosen(core, model);
        }
      },
      kernel.core);
}

}  // namespace tensorgrad::kernels
