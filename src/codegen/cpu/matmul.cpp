// Kernels of kind `matmul`. Tiles of the result are computed from packed panels; packing reads
// through the operands' index maps, so transposes and other views cost nothing more. Each element
// adds its products in the order of k.
#include <algorithm>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/micro_kernel.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kTileRows = 16 * kPanelRows;
constexpr std::int64_t kTileColumns = 192;
constexpr std::int64_t kDepth = 256;  // of k at a time, so that panels stay in cache
static_assert(kDepth <= kBlock && kTileColumns <= kBlock, "packing reads runs of at most a block");

// One operand [batch..., rows, columns].
class Operand {
 public:
  explicit Operand(const ir::Load& load) : load_(load), reader_(load) {
    const ir::IndexMap& map = load.map;
    const int rank = map.shape().rank();
    rows_ = map.shape()[rank - 2], columns_ = map.shape()[rank - 1];
    strided_ = map.is_strided() && load.source == ir::Load::Source::memory;
    if (strided_) row_stride_ = map.stride(rank - 2), column_stride_ = map.stride(rank - 1);
  }

  // Panels of kPanelRows rows, column by column; rows past the edge are zero.
  void pack_rows(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                 std::int64_t depth, float* to) const {
    const float* base = strided_ ? origin(memory, batch) + row * row_stride_ + column * column_stride_ : nullptr;
    float block[kBlock];
    for (std::int64_t r = 0; r < rows; r += kPanelRows, to += kPanelRows * depth) {
      const int n = static_cast<int>(std::min<std::int64_t>(kPanelRows, rows - r));
      for (int j = 0; j < kPanelRows; ++j) {
        if (j >= n) {
          for (std::int64_t i = 0; i < depth; ++i) to[i * kPanelRows + j] = 0;
        } else if (strided_) {
          const float* from = base + (r + j) * row_stride_;
          for (std::int64_t i = 0; i < depth; ++i) to[i * kPanelRows + j] = from[i * column_stride_];
        } else {
          const float* from = run(memory, batch, row + r + j, column, depth, block);
          for (std::int64_t i = 0; i < depth; ++i) to[i * kPanelRows + j] = from[i];
        }
      }
    }
  }

  // Panels of NR columns, row by row; columns past the edge are zero.
  void pack_columns(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t depth, std::int64_t column,
                    std::int64_t columns, std::int64_t NR, float* to) const {
    const float* base = strided_ ? origin(memory, batch) + row * row_stride_ + column * column_stride_ : nullptr;
    float block[kBlock];
    for (std::int64_t i = 0; i < depth; ++i) {
      const float* from = strided_ ? base + i * row_stride_ : run(memory, batch, row + i, column, columns, block);
      const std::int64_t stride = strided_ ? column_stride_ : 1;
      for (std::int64_t c = 0; c < columns; c += NR) {
        float* panel = to + c * depth + i * NR;
        const std::int64_t n = std::min(NR, columns - c);
        if (stride == 1)
          std::copy_n(from + c, n, panel);
        else
          for (std::int64_t j = 0; j < n; ++j) panel[j] = from[(c + j) * stride];
        std::fill_n(panel + n, NR - n, 0.0f);
      }
    }
  }

 private:
  const float* origin(const Memory& memory, std::int64_t batch) const {
    double no_fill = 0;
    return memory.at(load_.place) + load_.map.address_of_linear(batch * rows_ * columns_, no_fill);
  }
  const float* run(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t column, std::int64_t n,
                   float* block) const {
    return reader_.read(memory, (batch * rows_ + row) * columns_ + column, static_cast<int>(n), block);
  }

  ir::Load load_;
  Reader reader_;
  std::int64_t rows_ = 0, columns_ = 0, row_stride_ = 0, column_stride_ = 0;
  bool strided_ = false;
};

class Matmul : public Compiled {
 public:
  explicit Matmul(const ir::Kernel& kernel)
      : a_(kernel.loads[0]), b_(kernel.loads[1]), place_(kernel.store.place) {
    M_ = kernel.space[-2], N_ = kernel.space[-1], K_ = kernel.loads[0].map.shape().back();
    batches_ = M_ > 0 && N_ > 0 ? kernel.space.count() / (M_ * N_) : 0;
  }

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t down = ceil_div(M_, kTileRows), across = ceil_div(N_, kTileColumns);
    executor.run(batches_ * down * across, [&](std::int64_t task) {
      tile(memory, task / (down * across), task / across % down * kTileRows, task % across * kTileColumns);
    });
  }

 private:
  void tile(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t column) const {
    const std::int64_t rows = std::min(kTileRows, M_ - row), columns = std::min(kTileColumns, N_ - column);
    const std::int64_t NR = panel_columns();
    const std::int64_t row_panels = ceil_div(rows, kPanelRows), column_panels = ceil_div(columns, NR);
    const std::int64_t width = column_panels * NR;
    float* const a = scratch_floats(static_cast<std::size_t>(kTileRows * kDepth), 1);
    float* const b = scratch_floats(static_cast<std::size_t>((kTileColumns + kMaxPanelColumns) * kDepth), 2);
    float* const c = scratch_floats(static_cast<std::size_t>(kTileRows * (kTileColumns + kMaxPanelColumns)), 3);
    if (K_ == 0) std::fill_n(c, row_panels * kPanelRows * width, 0.0f);
    for (std::int64_t k = 0; k < K_; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, K_ - k);
      a_.pack_rows(memory, batch, row, rows, k, depth, a);
      b_.pack_columns(memory, batch, k, depth, column, columns, NR, b);
      for (std::int64_t j = 0; j < column_panels; ++j)
        for (std::int64_t i = 0; i < row_panels; ++i)
          micro_kernel(a + i * kPanelRows * depth, b + j * NR * depth, depth, c + i * kPanelRows * width + j * NR,
                       width, k == 0);
    }
    float* const out = memory.at(place_) + batch * M_ * N_ + row * N_ + column;
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(c + r * width, columns, out + r * N_);
  }

  Operand a_, b_;
  ir::Place place_;
  std::int64_t M_ = 0, N_ = 0, K_ = 0, batches_ = 0;
};

}  // namespace

std::unique_ptr<Compiled> compile_matmul(const ir::Kernel& kernel) { return std::make_unique<Matmul>(kernel); }

}  // namespace tensorgrad::cpu
