#include "ir/variants.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace tensorgrad::ir {

std::string text(const TileSize& size) { return fmt::format("{}x{}x{}", size.M, size.N, size.K); }

std::optional<TileSize> parse_tile_size(std::string_view text) {
  std::array<int, 3> numbers{};
  const char *at = text.data(), *const end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return {};
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || numbers[i] <= 0) return {};
    at = next;
  }
  if (at != end) return {};
  return TileSize{numbers[0], numbers[1], numbers[2]};
}

std::string text(const MatmulTiles& tiles) { return tiles.direct ? "direct" : text(tiles.size()); }

}  // namespace tensorgrad::ir
