// Kernels of kind `matmul`. Tiles of the result are computed from panels of the operands: straight from
// memory where strides allow it, else packed through the operands' index maps. Each element adds its
// products in the order of k, however the work is cut into tiles and tasks.
#include <algorithm>
#include <cstdlib>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/micro_kernel.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kTileRows = 16 * kPanelRows;
constexpr std::int64_t kTileColumns = 192;
constexpr std::int64_t kDepth = 256;  // of k at a time, so that panels stay in cache
// Values of k that lie further apart than this (in elements) share few sets of the cache: panels are packed then.
constexpr std::int64_t kFarApart = 256;
constexpr std::int64_t kFewTiles = 8;       // fewer than this are cut smaller, for more threads
constexpr std::int64_t kTaskWork = 1 << 17;  // multiplications that are worth handing to a thread
static_assert(kDepth <= kBlock && kTileColumns <= kBlock, "packing reads runs of at most a block");

// One operand [batch..., rows, columns]: memory seen through views, or a program over it.
class Operand {
 public:
  Operand(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program, std::int64_t rows, std::int64_t columns)
      : value_(static_cast<ir::Reg>(program.code.size()) - 1),
        program_(loads, program, std::span(&value_, 1)),
        rows_(rows),
        columns_(columns) {
    const ir::Load* load = program_.plain_load();
    if (!load || !load->map.is_strided() || load->source != ir::Load::Source::memory) return;
    const int rank = load->map.shape().rank();
    strided_ = true;
    row_stride_ = load->map.stride(rank - 2), column_stride_ = load->map.stride(rank - 1);
  }

  // The panels of kPanelRows rows as the micro-kernel takes them. Rows past the edge, and rows that are not
  // strided memory, are packed into `to`, column by column; past the edge they are zero.
  class Rows {
   public:
    Rows(const Operand& operand, const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t rows,
         std::int64_t column, std::int64_t depth, float* to)
        : depth_(depth), packed_(to) {
      if (operand.strided_) {
        row_ = operand.row_stride_, step_ = operand.column_stride_;
        base_ = operand.origin(memory, batch) + row * row_ + column * step_;
        if (std::abs(step_) <= kFarApart) direct_ = rows / kPanelRows;
      }
      for (std::int64_t p = direct_; p * kPanelRows < rows; ++p)
        for (std::int64_t j = 0; j < kPanelRows; ++j) {
          float* const at = to + p * kPanelRows * depth + j;
          const std::int64_t r = p * kPanelRows + j;
          if (r >= rows) {
            for (std::int64_t i = 0; i < depth; ++i) at[i * kPanelRows] = 0;
          } else {
            const float* from = base_ ? base_ + r * row_ : operand.run(memory, batch, row + r, column, depth);
            const std::int64_t step = base_ ? step_ : 1;
            for (std::int64_t i = 0; i < depth; ++i) at[i * kPanelRows] = from[i * step];
          }
        }
    }
    LeftPanel panel(std::int64_t p) const {
      if (p < direct_) return {base_ + p * kPanelRows * row_, row_, step_};
      return {packed_ + p * kPanelRows * depth_, 1, kPanelRows};
    }

   private:
    std::int64_t depth_, direct_ = 0, row_ = 0, step_ = 0;
    const float* base_ = nullptr;
    const float* packed_;
  };

  // The same for panels of NR columns; packed row by row.
  class Columns {
   public:
    Columns(const Operand& operand, const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t depth,
            std::int64_t column, std::int64_t columns, std::int64_t NR, float* to)
        : depth_(depth), NR_(NR), packed_(to) {
      const bool strided = operand.strided_;
      const std::int64_t stride = strided ? operand.column_stride_ : 1;
      if (strided) {
        row_ = operand.row_stride_;
        base_ = operand.origin(memory, batch) + row * row_ + column * stride;
        if (stride == 1 && std::abs(row_) <= kFarApart) direct_ = columns / NR;
      }
      const std::int64_t first = direct_ * NR;
      for (std::int64_t i = 0; first < columns && i < depth; ++i) {
        const float* from = strided ? base_ + i * row_ : operand.run(memory, batch, row + i, column, columns);
        for (std::int64_t c = first; c < columns; c += NR) {
          float* const panel = to + c * depth + i * NR;
          const std::int64_t n = std::min(NR, columns - c);
          if (stride == 1)
            std::copy_n(from + c, n, panel);
          else
            for (std::int64_t j = 0; j < n; ++j) panel[j] = from[(c + j) * stride];
          std::fill_n(panel + n, NR - n, 0.0f);
        }
      }
    }
    RightPanel panel(std::int64_t p) const {
      if (p < direct_) return {base_ + p * NR_, row_};
      return {packed_ + p * NR_ * depth_, NR_};
    }

   private:
    std::int64_t depth_, NR_, direct_ = 0, row_ = 0;
    const float* base_ = nullptr;
    const float* packed_;
  };

 private:
  const float* origin(const Memory& memory, std::int64_t batch) const {
    double no_fill = 0;
    const ir::Load& load = *program_.plain_load();
    return memory.at(load.place) + load.map.address_of_linear(batch * rows_ * columns_, no_fill);
  }
  const float* run(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t column, std::int64_t n) const {
    const Block block{(batch * rows_ + row) * columns_ + column, static_cast<int>(n), 0, 0};
    return program_.run(memory, block, scratch_floats(program_.scratch()))[static_cast<std::size_t>(value_)];
  }

  ir::Reg value_;
  BlockProgram program_;
  std::int64_t rows_ = 0, columns_ = 0, row_stride_ = 0, column_stride_ = 0;
  bool strided_ = false;
};

// One right operand and what becomes of its product.
struct Part {
  Part(const ir::Kernel& kernel, const ir::MatmulPart& part)
      : N(part.N),
        b(kernel.loads, part.b, kernel.K, part.N),
        kept([&] {
          std::vector<ir::Reg> regs;
          for (const ir::Store& s : part.stores) regs.push_back(s.value);
          return regs;
        }()),
        epilogue(kernel.loads, part.epilogue, kept),
        plain(part.epilogue.code.size() == 1),
        stores(part.stores),
        column_sums(part.column_sums),
        sums_columns(part.sums_columns) {}

  std::int64_t N;
  Operand b;
  std::vector<ir::Reg> kept;
  BlockProgram epilogue;
  bool plain;  // the product itself is the result
  std::vector<ir::Store> stores;
  ir::Store column_sums;
  bool sums_columns;
};

class Matmul : public Compiled {
 public:
  explicit Matmul(const ir::Kernel& kernel)
      : M_(kernel.M), K_(kernel.K), batches_(kernel.batches), a_(kernel.loads, kernel.a, kernel.M, kernel.K) {
    for (const ir::MatmulPart& part : kernel.parts) parts_.emplace_back(kernel, part);
  }

  // Tiles of all parts are numbered through; small ones are handed out several at a time.
  void run(const Memory& memory, Executor& executor) const override {
    std::int64_t across = 0, N = 0;
    for (const Part& part : parts_) across += ceil_div(part.N, kTileColumns), N += part.N;
    std::int64_t height = kTileRows;
    while (height > 2 * kPanelRows && batches_ * ceil_div(M_, height) * across < kFewTiles) height /= 2;
    const std::int64_t down = ceil_div(M_, height), tiles = batches_ * down * across;
    const std::int64_t work = std::max<std::int64_t>(1, batches_ * M_ * N * K_ / std::max<std::int64_t>(1, tiles));
    const std::int64_t together = std::max<std::int64_t>(1, kTaskWork / work);
    executor.run(ceil_div(tiles, together), [&](std::int64_t task) {
      for (std::int64_t t = task * together; t < std::min(tiles, (task + 1) * together); ++t) {
        std::int64_t column = t % across;
        const Part* part = parts_.data();
        while (column >= ceil_div(part->N, kTileColumns)) column -= ceil_div(part++->N, kTileColumns);
        const std::int64_t row = t / across % down * height;
        tile(memory, *part, t / (down * across), row, std::min(height, M_ - row), column * kTileColumns);
      }
    });
  }

 private:
  void tile(const Memory& memory, const Part& part, std::int64_t batch, std::int64_t row, std::int64_t rows,
            std::int64_t column) const {
    const std::int64_t columns = std::min(kTileColumns, part.N - column);
    const std::int64_t NR = panel_columns();
    const std::int64_t row_panels = ceil_div(rows, kPanelRows), column_panels = ceil_div(columns, NR);
    const std::int64_t width = column_panels * NR;
    float* const a = scratch_floats(static_cast<std::size_t>(kTileRows * kDepth), 1);
    float* const b = scratch_floats(static_cast<std::size_t>((kTileColumns + kMaxPanelColumns) * kDepth), 2);
    float* const c = scratch_floats(static_cast<std::size_t>(kTileRows * (kTileColumns + kMaxPanelColumns)), 3);
    const bool sums = part.sums_columns && row == 0;
    double sum[kTileColumns + kMaxPanelColumns];
    if (sums) std::fill_n(sum, width, 0.0);
    if (K_ == 0) std::fill_n(c, row_panels * kPanelRows * width, 0.0f);
    for (std::int64_t k = 0; k < K_; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, K_ - k);
      const Operand::Rows left(a_, memory, batch, row, rows, k, depth, a);
      const Operand::Columns right(part.b, memory, batch, k, depth, column, columns, NR, b);
      for (std::int64_t j = 0; j < column_panels; ++j) {
        const RightPanel panel = right.panel(j);
        if (sums)
          for (std::int64_t i = 0; i < depth; ++i)
            for (std::int64_t n = 0; n < NR; ++n) sum[j * NR + n] += static_cast<double>(panel.data[i * panel.depth + n]);
        for (std::int64_t i = 0; i < row_panels; ++i)
          micro_kernel(left.panel(i), panel, depth, c + i * kPanelRows * width + j * NR, width, k == 0);
      }
    }
    if (sums) {
      float* const to = memory.at(part.column_sums.place) + batch * part.N + column;
      for (std::int64_t n = 0; n < columns; ++n) to[n] = static_cast<float>(sum[n]);
    }
    finish(memory, part, batch, row, rows, column, columns, c, width);
  }

  void finish(const Memory& memory, const Part& part, std::int64_t batch, std::int64_t row, std::int64_t rows,
              std::int64_t column, std::int64_t columns, const float* c, std::int64_t width) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t begin = (batch * M_ + row + r) * part.N + column;
      if (part.plain) {
        for (const ir::Store& s : part.stores) std::copy_n(c + r * width, columns, memory.at(s.place) + begin);
        continue;
      }
      const Block block{begin, static_cast<int>(columns), 0, 0};
      float* const scratch = scratch_floats(part.epilogue.scratch());
      const float* const* values = part.epilogue.run(memory, block, scratch, BlockProgram::Part::all,
                                                     {.accumulator = c + r * width});
      for (const ir::Store& s : part.stores)
        std::copy_n(values[static_cast<std::size_t>(s.value)], columns, memory.at(s.place) + begin);
    }
  }

  std::int64_t M_, K_, batches_;
  Operand a_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Compiled> compile_matmul(const ir::Kernel& kernel) { return std::make_unique<Matmul>(kernel); }

}  // namespace tensorgrad::cpu
