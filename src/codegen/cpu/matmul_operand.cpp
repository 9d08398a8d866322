#include "codegen/cpu/matmul_operand.h"

#include <algorithm>

#include "codegen/cpu/panels.h"

namespace tensorgrad::cpu {

namespace {

// Rows that lie a multiple of this (in elements) apart share the sets of the first-level cache.
constexpr std::int64_t kConflict = 512;
// Values of k further apart than this are brought together if they are read more than once.
constexpr std::int64_t kFarApart = 64;
constexpr std::int64_t kGap = 16;  // between copied rows, for the same reason

std::int64_t pitch(std::int64_t n) { return ceil_div(n, kGap) * kGap + kGap; }

}  // namespace

Operand::Operand(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program, std::int64_t rows, std::int64_t columns)
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

const float* Operand::at(const Memory& memory, const Piece& piece) const {
  double no_fill = 0;
  const ir::Load& load = *program_.plain_load();
  return memory.at(load.place) + load.map.address_of_linear(piece.batch * rows_ * columns_, no_fill) +
         piece.row * row_stride_ + piece.column * column_stride_;
}

const float* Operand::run(const Memory& memory, std::int64_t begin, std::int64_t n) const {
  return program_.run(memory, {begin, static_cast<int>(n), 0, 0},
                      scratch_floats(program_.scratch()))[static_cast<std::size_t>(value_)];
}

std::int64_t Operand::left_floats(std::int64_t rows, std::int64_t columns) {
  return std::max(rows * pitch(columns), columns * pitch(rows));
}

LeftPanel Operand::left(const Memory& memory, const Piece& piece, float* to) const {
  const std::int64_t rows = piece.rows, columns = piece.columns;
  if (strided_) {
    const float* const from = at(memory, piece);
    const bool conflict = row_stride_ % kConflict == 0 && row_stride_ != 0 && rows > 1;
    if (column_stride_ == 1 && conflict) {
      const std::int64_t gap = pitch(columns);
      for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * row_stride_, columns, to + r * gap);
      return {to, gap, 1};
    }
    if (row_stride_ == 1 && column_stride_ > kFarApart) {
      const std::int64_t gap = pitch(rows);
      for (std::int64_t k = 0; k < columns; ++k) std::copy_n(from + k * column_stride_, rows, to + k * gap);
      return {to, 1, gap};
    }
    return {from, row_stride_, column_stride_};
  }
  if (columns == columns_) {  // rows follow each other
    const std::int64_t first = begin(piece), all = rows * columns;
    for (std::int64_t i = 0; i < all; i += kBlock) {
      const std::int64_t n = std::min<std::int64_t>(kBlock, all - i);
      std::copy_n(run(memory, first + i, n), n, to + i);
    }
    return {to, columns, 1};
  }
  const std::int64_t gap = pitch(columns);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < columns; i += kBlock) {
      const std::int64_t n = std::min<std::int64_t>(kBlock, columns - i);
      std::copy_n(run(memory, begin(piece) + r * columns_ + i, n), n, to + r * gap + i);
    }
  return {to, gap, 1};
}

void Operand::pack(const Memory& memory, const Piece& piece, std::int64_t NR, float* to) const {
  const std::int64_t rows = piece.rows, columns = piece.columns;
  if (strided_ && column_stride_ == 1) return pack_panels(at(memory, piece), row_stride_, rows, columns, NR, to);
  if (strided_ && row_stride_ == 1) return pack_turned_panels(at(memory, piece), column_stride_, rows, columns, NR, to);
  const std::int64_t edge = columns / NR * NR;
  if (edge < columns)
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(to + edge * rows + i * NR, NR, 0.0f);
  if (strided_) {
    const float* const from = at(memory, piece);
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t i = 0; i < rows; ++i)
        to[c / NR * NR * rows + i * NR + c % NR] = from[i * row_stride_ + c * column_stride_];
    return;
  }
  // As many rows at once as fit into a block, or as many columns.
  const std::int64_t together = columns == columns_ ? std::max<std::int64_t>(1, kBlock / columns) : 1;
  for (std::int64_t i = 0; i < rows; i += together)
    for (std::int64_t first = 0; first < columns; first += kBlock) {
      const std::int64_t n = std::min<std::int64_t>(kBlock, columns - first), lines = std::min(together, rows - i);
      const float* from = run(memory, begin(piece) + i * columns_ + first, lines * n);
      for (std::int64_t l = 0; l < lines; ++l)
        for (std::int64_t c = first; c < first + n;) {
          const std::int64_t count = std::min(NR - c % NR, first + n - c);
          std::copy_n(from, count, to + c / NR * NR * rows + (i + l) * NR + c % NR);
          from += count, c += count;
        }
    }
}

}  // namespace tensorgrad::cpu
