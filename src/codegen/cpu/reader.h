// Reader: a Load compiled for the CPU. It returns the elements of a run of the iteration space,
// directly from memory where they are contiguous.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codegen/cpu/run_walk.h"
#include "ir/kernel.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

// Base address of each space.
struct Memory {
  std::array<float*, ir::kSpaces> space{};
  float* at(const ir::Place& place) const { return space[usize(place.space)] + place.offset; }
};

class Reader {
 public:
  explicit Reader(const ir::Load& load);

  // Elements begin .. begin+n-1 in row-major order of the space: a pointer into memory, or `out`
  // filled with them. i32 and bool elements are returned as their bits.
  const float* read(const Memory& memory, std::int64_t begin, int n, float* out) const;

  // Whether all elements are one scalar.
  bool splat() const { return form_ == Form::splat; }
  // The number of elements after which the whole space repeats; zero if it does not repeat.
  std::int64_t period() const;
  // Whether the load reads memory that the store writes.
  bool overlaps(const ir::Store& store) const;

  // Calls f(first address, stride, count) for each run of the innermost axis; only for strided
  // maps.
  template <class F>
  void each_run(std::int64_t begin, int n, F f) const;

 private:
  enum class Form : std::uint8_t { direct, splat, strided, general };

  Reader(const ir::Load& load, std::vector<ir::Layer> layers);

  // Elements at address, address + stride, ...
  void copy_run(const float* base, std::int64_t address, std::int64_t stride, int n,
                float* to) const;

  ir::Load load_;
  Form form_ = Form::general;
  ir::Layer coarse_;  // if the map is one layer
  RunWalk walk_;
};

template <class F>
void Reader::each_run(std::int64_t begin, int n, F f) const {
  const int rank = coarse_.shape.rank();
  const auto& coef = coarse_.address.coef;
  if (rank == 0) return f(coarse_.address.offset, std::int64_t{0}, n);
  std::int64_t position[kMaxRank];
  std::int64_t rest = begin, address = coarse_.address.offset;
  for (int d = rank - 1; d >= 0; --d) {
    position[d] = rest % coarse_.shape[d];
    rest /= coarse_.shape[d];
    address += position[d] * coef[usize(d)];
  }
  const std::int64_t inner = coarse_.shape[rank - 1];
  const std::int64_t stride = coef[usize(rank - 1)];
  while (n > 0) {
    const int run = static_cast<int>(std::min<std::int64_t>(n, inner - position[rank - 1]));
    f(address, stride, run);
    n -= run;
    if (n == 0) return;
    address -= position[rank - 1] * stride;
    position[rank - 1] = 0;
    for (int d = rank - 2; d >= 0; --d) {
      address += coef[usize(d)];
      if (++position[d] < coarse_.shape[d]) break;
      address -= coef[usize(d)] * coarse_.shape[d];
      position[d] = 0;
    }
  }
}

// A scalar as an element of that type: its bits.
float element(double value, DType dtype);

// Copies a run. Most are short, such as a row of an image: a call of memmove would cost more.
inline void copy_floats(const float* from, int n, float* to) {
  constexpr int kTogether = 4, kShort = 64;
  if (n > kShort) {
    std::copy_n(from, n, to);
    return;
  }
  int i = 0;
  for (; i + kTogether <= n; i += kTogether) std::memcpy(to + i, from + i, kTogether * sizeof *to);
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace tensorgrad::cpu
