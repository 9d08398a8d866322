// Tiles of a matmul on a GPU. The order of additions (splits and slices) is chosen by shape and
// device model, so that the same matmul has the same bits; among tiles that add in this order, the
// tuner may pick the fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device_model.h"
#include "ir/kernel.h"

namespace tensorgrad::kernels {

ir::MatmulTiles choose_tiles(const ir::MatmulKernel& matmul, const ir::DeviceModel& model);

// All tiles that give the same bits as the chosen ones, which come first.
std::vector<ir::MatmulTiles> alternatives(const ir::MatmulKernel& matmul,
                                          const ir::DeviceModel& model);
// The alternative of this size, if there is one.
std::optional<ir::MatmulTiles> alternative(const ir::MatmulKernel& matmul,
                                           const ir::DeviceModel& model, const ir::TileSize& size);

// The parts of k are multiples of this, whatever the tiles.
inline constexpr std::int64_t kSplitUnit = 64;
// Column sums are added by this many threads in turns, whatever the tiles (but for slices).
inline constexpr std::int64_t kSumLanes = 8;

}  // namespace tensorgrad::kernels
