// Operand: one side of a matrix product as the micro-kernel takes it: where it lies if its strides
// allow that, else copied (or computed, if it is a program) into panels.
#pragma once

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/micro_kernel.h"

namespace tensorgrad::cpu {

// Panels of kPanelRows rows, `next` apart.
struct LeftRows {
  LeftPanel first;
  std::int64_t next;
  LeftPanel panel(std::int64_t p) const { return {first.data + p * next, first.row, first.depth}; }
};

// [batch..., rows, columns]: memory seen through views, or a program over it.
class Operand {
 public:
  Operand(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program, std::int64_t rows,
          std::int64_t columns);

  bool is_strided() const { return strided_; }
  // Rows become columns. Only for strided operands, and for programs with one row or one column.
  Operand turned() const;

  // A piece of a matrix.
  struct Piece {
    std::int64_t batch, row, rows, column, columns;
  };

  // Rows for the left side: where they lie, or packed into `to`, which has room for them in whole
  // panels.
  LeftRows left(const Memory& memory, const Piece& piece, float* to) const;

  // Columns for the right side can be read where they lie, in whole vectors.
  bool is_right() const { return strided_ && column_stride_ == 1; }
  RightPanel right(const Memory& memory, const Piece& piece) const {
    return {at(memory, piece), row_stride_};
  }
  // Columns whose values lie side by side, `column()` apart.
  bool is_turned_right() const { return strided_ && row_stride_ == 1; }
  std::int64_t column() const { return column_stride_; }
  // Panels of NR columns, one after the other; past the edge they are zero.
  void pack(const Memory& memory, const Piece& piece, std::int64_t NR, float* to) const;

  // Rows or columns in pieces for the tile unit, and sums of columns, unless null (amx.h).
  void split_left(const Memory& memory, const Piece& piece, float* to) const;
  void split_right(const Memory& memory, const Piece& piece, float* to, double* sums) const;

 private:
  const float* at(const Memory& memory, const Piece& piece) const;
  // Elements that follow each other, at most kBlock of them.
  const float* run(const Memory& memory, std::int64_t begin, std::int64_t n) const;
  std::int64_t begin(const Piece& piece) const {
    return (piece.batch * rows_ + piece.row) * columns_ + piece.column;
  }

  ir::Reg value_;
  BlockProgram program_;
  std::int64_t rows_ = 0, columns_ = 0, row_stride_ = 0, column_stride_ = 0;
  bool strided_ = false;
};

}  // namespace tensorgrad::cpu
