#include "codegen/cpu/matmul_operand.h"

#include <algorithm>
#include <utility>

#include "codegen/cpu/amx.h"
#include "codegen/cpu/panels.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

// Values of k with a larger stride are packed: otherwise a panel has few of them per cache line.
constexpr std::int64_t kFarApart = 64;
// Floats of windows that are read before they are packed.
constexpr std::int64_t kLines = 1 << 12;

}  // namespace

Operand::Operand(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program,
                 std::int64_t rows, std::int64_t columns)
    : value_(static_cast<ir::Reg>(program.code.size()) - 1),
      program_(loads, program, std::span(&value_, 1)),
      rows_(rows),
      columns_(columns) {
  const ir::Load* load = program_.plain_load();
  if (!load || load->source != ir::Load::Source::memory) return;
  if (!load->map.is_strided()) {
    windows_ = WindowMatrix::make(*load, false);
    auto turned = WindowMatrix::make(*load, true);
    turned_ = windows_ && turned->run_length() > windows_->run_length();
    if (turned_) windows_ = std::move(turned);
    return;
  }
  const int rank = load->map.shape().rank();
  strided_ = true;
  row_stride_ = load->map.stride(rank - 2), column_stride_ = load->map.stride(rank - 1);
}

Operand Operand::transposed() const {
  Operand out = *this;
  std::swap(out.rows_, out.columns_);
  std::swap(out.row_stride_, out.column_stride_);
  out.turned_ = !turned_;
  return out;
}

const float* Operand::at(const Memory& memory, const Piece& piece) const {
  double no_fill = 0;
  const ir::Load& load = *program_.plain_load();
  return memory.at(load.place) +
         load.map.address_of_linear(piece.batch * rows_ * columns_, no_fill) +
         piece.row * row_stride_ + piece.column * column_stride_;
}

const float* Operand::run(const Memory& memory, std::int64_t begin, std::int64_t n) const {
  return program_.run(memory, {begin, static_cast<int>(n), 0, 0},
                      scratch_floats(program_.scratch()))[usize(value_)];
}

void Operand::read_windows(const Memory& memory, const Piece& piece, std::int64_t step,
                           float* to) const {
  thread_local WindowMatrix::Columns columns;
  if (turned_) {
    windows_->columns(piece.batch, piece.row, piece.rows, columns);
    for (std::int64_t c = 0; c < piece.columns; ++c)
      windows_->read(memory, columns, piece.column + c, to + c * step);
  } else {
    windows_->columns(piece.batch, piece.column, piece.columns, columns);
    for (std::int64_t r = 0; r < piece.rows; ++r)
      windows_->read(memory, columns, piece.row + r, to + r * step);
  }
}

std::int64_t Operand::line_step(std::int64_t columns) {
  constexpr std::int64_t kLine = 16;  // floats per cache line
  const std::int64_t lines = ceil_div(round_up(columns, panel_lanes()), kLine);
  return (lines | 1) * kLine;
}

RightPanel Operand::lines(const Memory& memory, const Piece& piece, float* to) const {
  const std::int64_t step = line_step(piece.columns);
  read_windows(memory, piece, step, to);
  return {to, step};
}

LeftRows Operand::left(const Memory& memory, const Piece& piece, float* to) const {
  const std::int64_t rows = piece.rows, columns = piece.columns, MR = kPanelRows;
  if (strided_) {
    const float* const from = at(memory, piece);
    if (row_stride_ == 1 && column_stride_ > kFarApart) {
      pack_left(from, column_stride_, columns, rows, to);
      return {{to, 1, MR}, MR * columns};
    }
    return {{from, row_stride_, column_stride_}, MR * row_stride_};
  }
  if (windows_) {
    read_windows(memory, piece, turned_ ? rows : columns, to);
    if (turned_) return {{to, 1, rows}, MR};
    return {{to, columns, 1}, MR * columns};
  }
  // Rows of a program are contiguous if they are whole.
  const bool whole = columns == columns_;
  const std::int64_t lines = whole ? 1 : rows, length = whole ? rows * columns : columns;
  for (std::int64_t r = 0; r < lines; ++r)
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min<std::int64_t>(kBlock, length - i);
      std::copy_n(run(memory, begin(piece) + r * columns_ + i, n), n, to + r * columns + i);
    }
  return {{to, columns, 1}, MR * columns};
}

void Operand::pack(const Memory& memory, const Piece& piece, std::int64_t NR, float* to) const {
  const std::int64_t rows = piece.rows, columns = piece.columns;
  if (strided_ && column_stride_ == 1)
    return pack_panels(at(memory, piece), row_stride_, rows, columns, NR, rows, to);
  if (strided_ && row_stride_ == 1)
    return pack_turned_panels(at(memory, piece), column_stride_, rows, columns, NR, to);
  if (strided_) {
    const std::int64_t edge = columns / NR * NR;
    if (edge < columns)
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(to + edge * rows + i * NR, NR, 0.0f);
    const float* const from = at(memory, piece);
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t i = 0; i < rows; ++i)
        to[c / NR * NR * rows + i * NR + c % NR] = from[i * row_stride_ + c * column_stride_];
    return;
  }
  if (windows_) {
    // Lines that stay in the L1 cache: some panels, or some rows of all panels.
    const std::int64_t line = turned_ ? rows : columns,
                       lines = std::max<std::int64_t>(1, kLines / std::max<std::int64_t>(1, line));
    const std::int64_t some = turned_ ? round_up(std::min(lines, columns), NR) : lines;
    float* const room = scratch_floats(usize(some * line));
    if (turned_)
      for (std::int64_t c = 0; c < columns; c += some) {
        const std::int64_t n = std::min(some, columns - c);
        read_windows(memory, {piece.batch, piece.row, rows, piece.column + c, n}, rows, room);
        pack_turned_panels(room, rows, rows, n, NR, to + c * rows);
      }
    else
      for (std::int64_t i = 0; i < rows; i += some) {
        const std::int64_t n = std::min(some, rows - i);
        read_windows(memory, {piece.batch, piece.row + i, n, piece.column, columns}, columns, room);
        pack_panels(room, columns, n, columns, NR, rows, to + i * NR);
      }
    return;
  }
  // As many rows at once as fit in a block, or as many columns: whole panels, because a block is.
  static_assert(kBlock % kMaxPanelColumns == 0);
  const std::int64_t together =
      columns == columns_ ? std::max<std::int64_t>(1, kBlock / columns) : 1;
  for (std::int64_t i = 0; i < rows; i += together)
    for (std::int64_t first = 0; first < columns; first += kBlock) {
      const std::int64_t n = std::min<std::int64_t>(kBlock, columns - first),
                         lines = std::min(together, rows - i);
      pack_panels(run(memory, begin(piece) + i * columns_ + first, lines * n), n, lines, n, NR,
                  rows, to + first * rows + i * NR);
    }
}

void Operand::split_left(const Memory& memory, const Piece& piece, float* to) const {
  if (strided_)
    return amx_split_left(at(memory, piece), row_stride_, column_stride_, piece.rows, piece.columns,
                          to);
  float* const room = scratch_floats(usize(kAmxRows * piece.columns), 4);
  for (std::int64_t r = 0; r < piece.rows; r += kAmxRows) {
    const std::int64_t rows = std::min(kAmxRows, piece.rows - r);
    const LeftPanel panel =
        left(memory, {piece.batch, piece.row + r, rows, piece.column, piece.columns}, room).first;
    amx_split_left(panel.data, panel.row, panel.depth, rows, piece.columns,
                   to + amx_room(r, piece.columns));
  }
}

void Operand::split_right(const Memory& memory, const Piece& piece, float* to, double* sums) const {
  if (strided_)
    return amx_split_right(at(memory, piece), row_stride_, column_stride_, piece.rows,
                           piece.columns, to, sums);
  const std::int64_t width = round_up(piece.columns, kAmxColumns);
  float* const room = scratch_floats(usize(piece.rows * width), 4);
  pack(memory, piece, width, room);  // one panel
  amx_split_right(room, width, 1, piece.rows, piece.columns, to, sums);
}

}  // namespace tensorgrad::cpu
