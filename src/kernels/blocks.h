// Blocks of a matmul on a CPU: which unit computes it, tiles of the result, and parts of k.
#pragma once

#include <cstdint>
#include <span>

#include "ir/device_model.h"
#include "ir/variants.h"

namespace tensorgrad::kernels {

// [M, K] x [K, N] for each batch, where N is the sum of `widths`, the columns of each part.
struct MatmulShape {
  std::int64_t batches = 1, M = 0, K = 0;
  std::span<const std::int64_t> widths;
  bool epilogues = false;  // the result is not only stored
};

ir::MatmulBlocks choose_blocks(const MatmulShape& shape, const ir::DeviceModel::Blocks& device);

}  // namespace tensorgrad::kernels
