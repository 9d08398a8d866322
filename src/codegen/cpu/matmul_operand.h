// Operand: one side of a matmul in the layout of the micro-kernel. It is read in place if its
// strides allow that; otherwise it is copied (or computed, if it is a program) into panels.
#pragma once

#include <optional>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/micro_kernel.h"
#include "codegen/cpu/window_matrix.h"

namespace tensorgrad::cpu {

// Panels of kPanelRows rows, `next` floats apart.
struct LeftRows {
  LeftPanel first;
  std::int64_t next;
  LeftPanel panel(std::int64_t p) const { return {first.data + p * next, first.row, first.depth}; }
};

// [batch..., rows, columns]: memory read through views, or a program over it.
class Operand {
 public:
  Operand(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program, std::int64_t rows,
          std::int64_t columns);

  bool is_strided() const { return strided_; }
  // Transposes the operand. Only for strided operands, and for programs with one row or one column.
  Operand transposed() const;

  // A rectangular part of one matrix.
  struct Piece {
    std::int64_t batch, row, rows, column, columns;
  };

  // Rows for the left side: in place, or packed into `to`, which has room for whole panels.
  LeftRows left(const Memory& memory, const Piece& piece, float* to) const;

  // Whether the right side can be read in place, in whole vectors.
  bool is_right() const { return strided_ && column_stride_ == 1; }
  RightPanel right(const Memory& memory, const Piece& piece) const {
    return {at(memory, piece), row_stride_};
  }
  // Whether each column is contiguous; columns are `column()` apart.
  bool is_turned_right() const { return strided_ && row_stride_ == 1; }
  std::int64_t column() const { return column_stride_; }
  // Whether the right side consists of windows whose lines can be read as they are.
  bool has_lines() const { return windows_ && !turned_; }
  // Reads these lines into `to`, and past their ends whatever is there. Lines are not a power of
  // two apart, so that those of a panel do not share a few cache sets.
  RightPanel lines(const Memory& memory, const Piece& piece, float* to) const;
  static std::int64_t lines_room(std::int64_t rows, std::int64_t columns) {
    return rows * line_step(columns);
  }
  // Packs panels of NR columns, one after the other; columns past the edge are zero.
  void pack(const Memory& memory, const Piece& piece, std::int64_t NR, float* to) const;

  // Splits rows or columns into pieces for the tile unit, with column sums unless null (amx.h).
  void split_left(const Memory& memory, const Piece& piece, float* to) const;
  void split_right(const Memory& memory, const Piece& piece, float* to, double* sums) const;

 private:
  const float* at(const Memory& memory, const Piece& piece) const;
  static std::int64_t line_step(std::int64_t columns);
  // Reads lines of a window matrix, `step` floats apart: some rows, or some columns if it is
  // turned.
  void read_windows(const Memory& memory, const Piece& piece, std::int64_t step, float* to) const;
  // A contiguous run of elements, at most kBlock of them.
  const float* run(const Memory& memory, std::int64_t begin, std::int64_t n) const;
  std::int64_t begin(const Piece& piece) const {
    return (piece.batch * rows_ + piece.row) * columns_ + piece.column;
  }

  ir::Reg value_;
  BlockProgram program_;
  std::int64_t rows_ = 0, columns_ = 0, row_stride_ = 0, column_stride_ = 0;
  bool strided_ = false;
  std::optional<WindowMatrix> windows_;
  bool turned_ = false;  // windows_ is the transposed matrix
};

}  // namespace tensorgrad::cpu
