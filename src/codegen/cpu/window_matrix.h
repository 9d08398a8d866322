// WindowMatrix: an operand of a matmul whose elements are scattered over memory, with some of them
// outside of it: the windows of a convolution. The address of an element is a sum of a part for its
// row and a part for its column, and so are the values that decide whether it exists. The parts of
// the columns are computed once for all rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/cpu/reader.h"
#include "ir/kernel.h"

namespace tensorgrad::cpu {

class WindowMatrix {
 public:
  // Nothing if the load, of shape [batch..., rows, columns], is not such a matrix. `turned`: of the
  // transposed matrix.
  static std::optional<WindowMatrix> make(const ir::Load& load, bool turned);

  // Elements that are read at a time: small runs of columns are slow.
  std::int64_t run_length() const { return width_; }

  static constexpr std::size_t kMostForms = 6;
  using Values = std::array<std::int64_t, kMostForms>;
  // A range of columns of one batch: rectangles of the image that the windows slide over.
  struct Columns {
    struct Part {
      int at, width, height;
      Values values;  // of the first column, without the row's part
    };
    std::vector<Part> parts;
  };
  void columns(std::int64_t batch, std::int64_t first, std::int64_t n, Columns& out) const;
  // These elements of a row, to `to`.
  void read(const Memory& memory, const Columns& columns, std::int64_t row, float* to) const;

 private:
  // A part of the batch, the row or the column, and what each value grows by along it.
  struct Digit {
    std::int64_t size;
    Values step;
  };
  void add(const std::vector<Digit>& digits, std::int64_t index, Values& values) const;
  void read(const float* base, const Values& values, int width, int height, float* to) const;

  ir::Place place_;
  std::size_t forms_ = 1;                    // the address and the guards
  std::vector<Digit> batch_, row_, column_;  // the innermost first
  Values offset_{}, extent_{};
  Values across_{}, down_{};  // steps to the next column, and to the next row of a rectangle
  float fill_ = 0;
  std::int64_t width_ = 1, height_ = 1;  // of whole rectangles
};

}  // namespace tensorgrad::cpu
