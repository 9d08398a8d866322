// OperandRows: rows of an operand along its last axis. Contiguous rows are read in place, without
// the divisions that a Reader needs to compute addresses.
#pragma once

#include <algorithm>

#include "codegen/cpu/reader.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

class OperandRows {
 public:
  explicit OperandRows(const ir::Load& load)
      : reader_(load), place_(load.place), shape_(load.map.shape()) {
    const int last = shape_.rank() - 1;
    in_place_ = load.source == ir::Load::Source::memory && load.map.is_strided() && last >= 0 &&
                (shape_[last] == 1 || load.map.stride(last) == 1);
    if (!in_place_) return;
    offset_ = load.map.layers()[0].address.offset;
    for (int d = 0; d < last; ++d) stride_[usize(d)] = load.map.stride(d);
  }

  // Stride of the second-to-last axis; only meaningful if all rows are in place.
  bool in_place() const { return in_place_; }
  std::int64_t stride() const { return stride_[usize(shape_.rank() - 2)]; }

  // Elements first .. first + n - 1 of the row at these positions: in place, or copied to `out`.
  template <class... Position>
  const float* read(const Memory& memory, std::int64_t first, std::int64_t n, float* out,
                    Position... position) const {
    const std::int64_t at[] = {position...};
    if (in_place_) {
      std::int64_t address = offset_ + first;
      for (std::size_t d = 0; d < sizeof...(position); ++d) address += at[d] * stride_[d];
      return memory.at(place_) + address;
    }
    std::int64_t begin = 0;
    for (std::size_t d = 0; d < sizeof...(position); ++d)
      begin = begin * shape_[static_cast<int>(d)] + at[d];
    return reader_.read(memory, begin * shape_[shape_.rank() - 1] + first, static_cast<int>(n),
                        out);
  }

 private:
  Reader reader_;
  ir::Place place_;
  Shape shape_;
  bool in_place_ = false;
  std::int64_t offset_ = 0;
  std::array<std::int64_t, kMaxRank> stride_{};
};

}  // namespace tensorgrad::cpu
