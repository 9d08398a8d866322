#include "kernels/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/integers.h"

namespace tensorgrad::kernels {

namespace {

// A tile and the share of a device's peak that full tiles of it reach (measured on an H200).
struct Candidate {
  MatmulTiles tiles;
  double share;
};
constexpr Candidate kCandidates[] = {
    {{.TM = 128, .TN = 128, .TK = 16, .RM = 8, .RN = 8}, 0.51},
    {{.TM = 128, .TN = 64, .TK = 16, .RM = 8, .RN = 4}, 0.58},
    {{.TM = 64, .TN = 128, .TK = 16, .RM = 4, .RN = 8}, 0.56},
    {{.TM = 64, .TN = 64, .TK = 32, .RM = 4, .RN = 4}, 0.45},
    {{.TM = 32, .TN = 32, .TK = 64, .RM = 4, .RN = 4, .slices = 4}, 0.35},
};

// A large device, in numbers that decide nothing but which of two good choices is taken.
constexpr double kCores = 128;         // workgroups at a time
constexpr double kOperations = 50e6;   // per microsecond
constexpr double kTurn = 0.5;          // microseconds for a tile of k, however small
constexpr double kBytes = 2.5e6;       // per microsecond
constexpr double kSecondShader = 3.0;  // microseconds
constexpr std::int64_t kLongK = 1024;  // shorter ones are not worth a second shader

double microseconds(const ir::Kernel& kernel, const Candidate& c, std::int64_t splits,
                    std::int64_t columns) {
  const MatmulTiles& t = c.tiles;
  std::int64_t across = 0;
  for (const ir::MatmulPart& part : kernel.parts) across += ceil_div(part.N, t.TN);
  const auto groups =
      static_cast<double>(kernel.batches * ceil_div(kernel.M, t.TM) * across * splits);
  const auto K = static_cast<double>(ceil_div(kernel.K, splits));
  const double work = 2.0 * t.TM * t.TN * K / (c.share * kOperations / kCores);
  const double one = std::max(work, kTurn * std::ceil(K / t.TK));
  const double rounds = groups <= kCores ? 1 : std::ceil(2 * groups / kCores) / 2;
  double total = one * rounds;
  if (splits > 1)
    total += kSecondShader +
             8.0 * static_cast<double>(splits * kernel.batches * kernel.M * columns) / kBytes;
  return total;
}

}  // namespace

std::string MatmulTiles::name() const {
  return direct ? "direct" : fmt::format("{}x{}x{}", TM, TN, TK);
}

namespace {

MatmulTiles by_shape(const ir::Kernel& kernel) {
  std::int64_t narrowest = kernel.M, columns = 0;
  bool sums = false;
  for (const ir::MatmulPart& part : kernel.parts) {
    narrowest = std::min(narrowest, part.N);
    columns += part.N;
    sums = sums || part.sums_columns;
  }
  if (!sums && (kernel.K <= 16 || (narrowest <= 4 && kernel.K <= 256))) return {.direct = true};
  MatmulTiles best;
  double shortest = std::numeric_limits<double>::infinity();
  for (const Candidate& c : kCandidates)
    for (std::int64_t splits = 1; splits <= 64 && (splits == 1 || kernel.K >= kLongK);
         splits *= 2) {
      if (kernel.K < splits * 2 * c.tiles.TK && splits > 1) break;
      const double time = microseconds(kernel, c, splits, columns);
      if (time >= shortest) continue;
      shortest = time;
      best = c.tiles;
      best.splits = splits;
    }
  return best;
}

}  // namespace

std::vector<MatmulTiles> alternatives(const ir::Kernel& kernel) {
  std::vector<MatmulTiles> out = {by_shape(kernel)};
  if (out[0].direct) return out;
  for (const Candidate& c : kCandidates) {
    if (c.tiles.slices != out[0].slices || c.tiles.name() == out[0].name()) continue;
    out.push_back(c.tiles);
    out.back().splits = out[0].splits;
  }
  return out;
}

MatmulTiles choose_tiles(const ir::Kernel& kernel) {
  if (kernel.tiles.empty()) return by_shape(kernel);
  const std::vector<MatmulTiles> all = alternatives(kernel);
  const auto named = std::find_if(all.begin(), all.end(),
                                  [&](const MatmulTiles& t) { return t.name() == kernel.tiles; });
  return named == all.end() ? all[0] : *named;
}

}  // namespace tensorgrad::kernels
