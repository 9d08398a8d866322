#include "kernels/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/integers.h"

namespace tensorgrad::kernels {

using ir::MatmulTiles;

namespace {

// Estimates how long a matmul takes with these tiles.
double microseconds(const ir::MatmulKernel& matmul, const ir::DeviceModel::Tiles& device,
                    const ir::TileCandidate& c, std::int64_t splits) {
  const MatmulTiles& t = c.tiles;
  std::int64_t across = 0, columns = 0;
  for (const ir::MatmulPart& part : matmul.parts)
    across += ceil_div(part.N, t.TN), columns += part.N;
  const auto groups =
      static_cast<double>(matmul.batches * ceil_div(matmul.M, t.TM) * across * splits);
  const auto K = static_cast<double>(ceil_div(matmul.K, splits));
  const double work = 2.0 * t.TM * t.TN * K / (c.share * device.operations / device.workgroups);
  const double one = std::max(work, device.turn * std::ceil(K / t.TK));
  const double rounds =
      groups <= device.workgroups ? 1 : std::ceil(2 * groups / device.workgroups) / 2;
  double total = one * rounds;
  if (splits > 1)
    total += device.second_shader +
             8.0 * static_cast<double>(splits * matmul.batches * matmul.M * columns) / device.bytes;
  return total;
}

bool is_direct(const ir::MatmulKernel& matmul, const ir::DeviceModel::Tiles& device) {
  std::int64_t narrowest = matmul.M;
  for (const ir::MatmulPart& part : matmul.parts) {
    if (part.column_sums) return false;
    narrowest = std::min(narrowest, part.N);
  }
  return matmul.K <= device.direct_k || (narrowest <= device.narrow && matmul.K <= device.narrow_k);
}

}  // namespace

MatmulTiles choose_tiles(const ir::MatmulKernel& matmul, const ir::DeviceModel& model) {
  const ir::DeviceModel::Tiles& device = model.tiles;
  if (is_direct(matmul, device)) return {.direct = true};
  MatmulTiles best;
  double shortest = std::numeric_limits<double>::infinity();
  for (const ir::TileCandidate& c : device.candidates)
    for (std::int64_t splits = 1;
         splits <= device.most_splits && (splits == 1 || matmul.K >= device.long_k); splits *= 2) {
      if (matmul.K < splits * 2 * c.tiles.TK && splits > 1) break;
      const double time = microseconds(matmul, device, c, splits);
      if (time >= shortest) continue;
      shortest = time;
      best = c.tiles;
      best.splits = splits;
    }
  return best;
}

std::vector<MatmulTiles> alternatives(const ir::MatmulKernel& matmul,
                                      const ir::DeviceModel& model) {
  std::vector<MatmulTiles> out = {choose_tiles(matmul, model)};
  if (out[0].direct) return out;
  for (const ir::TileCandidate& c : model.tiles.candidates) {
    if (c.tiles.slices != out[0].slices || c.tiles.size() == out[0].size()) continue;
    out.push_back(c.tiles);
    out.back().splits = out[0].splits;
  }
  return out;
}

std::optional<MatmulTiles> alternative(const ir::MatmulKernel& matmul, const ir::DeviceModel& model,
                                       const ir::TileSize& size) {
  for (const MatmulTiles& tiles : alternatives(matmul, model))
    if (!tiles.direct && tiles.size() == size) return tiles;
  return {};
}

}  // namespace tensorgrad::kernels
