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

// One operand [batch..., rows, columns], read by (batch, row, column).
class Operand {
 public:
  explicit Operand(const ir::Load& load) : load_(load) {
    const ir::IndexMap& map = load.map;
    const int rank = map.shape().rank();
    rows_ = map.shape()[rank - 2], columns_ = map.shape()[rank - 1];
    strided_ = map.is_strided() && load.source == ir::Load::Source::memory;
    if (strided_) row_stride_ = map.stride(rank - 2), column_stride_ = map.stride(rank - 1);
  }

  // f(row, column) for one batch, as a callable that is cheap to call.
  template <class F>
  void with(const Memory& memory, std::int64_t batch, F f) const {
    const std::int64_t start = batch * rows_ * columns_;
    if (strided_) {
      double fill = 0;
      const float* base = memory.at(load_.place) + load_.map.address_of_linear(start, fill);
      const std::int64_t rs = row_stride_, cs = column_stride_;
      f([base, rs, cs](std::int64_t r, std::int64_t c) { return base[r * rs + c * cs]; });
    } else {
      const float* base = load_.source == ir::Load::Source::memory ? memory.at(load_.place) : nullptr;
      f([this, base, start](std::int64_t r, std::int64_t c) {
        double fill = 0;
        const std::int64_t address = load_.map.address_of_linear(start + r * columns_ + c, fill);
        if (address < 0) return static_cast<float>(fill);
        return base ? base[address] : static_cast<float>(load_.value);
      });
    }
  }

 private:
  ir::Load load_;
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
      a_.with(memory, batch, [&](auto at) { pack_rows(at, row, rows, k, depth, a); });
      b_.with(memory, batch, [&](auto at) { pack_columns(at, column, columns, k, depth, NR, b); });
      for (std::int64_t j = 0; j < column_panels; ++j)
        for (std::int64_t i = 0; i < row_panels; ++i)
          micro_kernel(a + i * kPanelRows * depth, b + j * NR * depth, depth, c + i * kPanelRows * width + j * NR,
                       width, k == 0);
    }
    float* const out = memory.at(place_) + batch * M_ * N_ + row * N_ + column;
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(c + r * width, columns, out + r * N_);
  }

  // Panels of kPanelRows rows, k by k; rows past the edge are zero.
  template <class At>
  static void pack_rows(At at, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth, float* to) {
    for (std::int64_t r = 0; r < rows; r += kPanelRows) {
      const int n = static_cast<int>(std::min<std::int64_t>(kPanelRows, rows - r));
      for (std::int64_t i = 0; i < depth; ++i, to += kPanelRows) {
        for (int j = 0; j < n; ++j) to[j] = at(row + r + j, k + i);
        for (int j = n; j < kPanelRows; ++j) to[j] = 0;
      }
    }
  }

  template <class At>
  static void pack_columns(At at, std::int64_t column, std::int64_t columns, std::int64_t k, std::int64_t depth,
                           std::int64_t NR, float* to) {
    for (std::int64_t c = 0; c < columns; c += NR) {
      const std::int64_t n = std::min(NR, columns - c);
      for (std::int64_t i = 0; i < depth; ++i, to += NR) {
        for (std::int64_t j = 0; j < n; ++j) to[j] = at(k + i, column + c + j);
        for (std::int64_t j = n; j < NR; ++j) to[j] = 0;
      }
    }
  }

  Operand a_, b_;
  ir::Place place_;
  std::int64_t M_ = 0, N_ = 0, K_ = 0, batches_ = 0;
};

}  // namespace

std::unique_ptr<Compiled> compile_matmul(const ir::Kernel& kernel) { return std::make_unique<Matmul>(kernel); }

}  // namespace tensorgrad::cpu
