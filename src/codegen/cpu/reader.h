// Reader: a Load compiled for the CPU. It returns the elements of a run of the iteration space,
// directly from memory where they are contiguous.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
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
  // Runs of one stride and length, `down` apart.
  struct Rectangle {
    std::int64_t address, stride, down;
    int width, height;
  };
  // The same runs, those of the two innermost axes together.
  template <class F>
  void each_rectangle(std::int64_t begin, int n, F f) const;
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
void Reader::each_rectangle(std::int64_t begin, int n, F f) const {
  const int rank = coarse_.shape.rank(), last = rank - 1;
  const auto& coef = coarse_.address.coef;
  if (rank == 0) return f(Rectangle{coarse_.address.offset, 0, 0, n, 1});
  std::int64_t position[kMaxRank];
  std::int64_t rest = begin, address = coarse_.address.offset;
  for (int d = last; d >= 0; --d) {
    position[d] = rest % coarse_.shape[d];
    rest /= coarse_.shape[d];
    address += position[d] * coef[usize(d)];
  }
  const std::int64_t inner = coarse_.shape[last];
  const std::int64_t stride = coef[usize(last)], down = rank > 1 ? coef[usize(last - 1)] : 0;
  for (;;) {
    const int width = static_cast<int>(std::min<std::int64_t>(n, inner - position[last]));
    int height = 1;
    if (rank > 1 && width == inner)
      height = static_cast<int>(
          std::min<std::int64_t>(n / inner, coarse_.shape[last - 1] - position[last - 1]));
    f(Rectangle{address, stride, down, width, height});
    n -= width * height;
    if (n == 0) return;
    address += height * down - position[last] * stride;
    position[last] = 0;
    position[last - 1] += height;
    for (int d = last - 1; d > 0 && position[d] == coarse_.shape[d]; --d) {
      address += coef[usize(d - 1)] - coef[usize(d)] * coarse_.shape[d];
      position[d] = 0;
      ++position[d - 1];
    }
  }
}

template <class F>
void Reader::each_run(std::int64_t begin, int n, F f) const {
  each_rectangle(begin, n, [&](const Rectangle& r) {
    for (int i = 0; i < r.height; ++i) f(r.address + i * r.down, r.stride, r.width);
  });
}

// A scalar as an element of that type: its bits.
float element(double value, DType dtype);

// Copies a run. Most are short, such as a row of an image: a call of memmove would cost more. The
// last piece may overlap the one before it.
inline void copy_floats(const float* from, int n, float* to) {
  using Four [[gnu::vector_size(16), gnu::aligned(4)]] = float;  // one instruction everywhere
  constexpr int kTogether = 4, kShort = 64;
  const auto copy = [&](int i) {
    *reinterpret_cast<Four*>(to + i) = *reinterpret_cast<const Four*>(from + i);
  };
  if (n > kShort) {
    std::copy_n(from, n, to);
  } else if (n >= kTogether) {
    for (int i = 0; i < n - kTogether; i += kTogether) copy(i);
    copy(n - kTogether);
  } else {
    for (int i = 0; i < n; ++i) to[i] = from[i];
  }
}

}  // namespace tensorgrad::cpu
