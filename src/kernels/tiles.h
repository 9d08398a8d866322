// Tiles of a matmul on a GPU. The order of additions (splits and slices) depends only on the shape
// and the device model, so that the same matmul gives the same bits. The tuner may pick the fastest
// of the tiles that keep this order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device_model.h"
#include "ir/kernel.h"

namespace tensorgrad::kernels {

ir::MatmulTiles choose_tiles(const ir::MatmulKernel& matmul, const ir::DeviceModel& model);

// All tiles that give the same bits as the default choice, which comes first.
std::vector<ir::MatmulTiles> alternatives(const ir::MatmulKernel& matmul,
                                          const ir::DeviceModel& model);
// The alternative of this size, if there is one.
std::optional<ir::MatmulTiles> alternative(const ir::MatmulKernel& matmul,
                                           const ir::DeviceModel& model, const ir::TileSize& size);

// The parts of k are multiples of this, for all tiles.
inline constexpr std::int64_t kSplitUnit = 64;
// This many threads take turns adding column sums, for all tiles (except with slices).
inline constexpr std::int64_t kSumLanes = 8;

}  // namespace tensorgrad::kernels
