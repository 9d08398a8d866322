// Reader: a Load made ready for the CPU. It hands out the elements of a run of the iteration
// space, straight from memory where they lie side by side.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/cpu/run_walk.h"
#include "ir/kernel.h"

namespace tensorgrad::cpu {

// Start of each space.
struct Memory {
  std::array<float*, ir::kSpaces> space{};
  float* at(const ir::Place& place) const {
    return space[static_cast<std::size_t>(place.space)] + place.offset;
  }
};

class Reader {
 public:
  explicit Reader(const ir::Load& load);

  // Elements begin .. begin+n-1 in row-major order of the space: a pointer into memory, or `out`
  // filled with them. i32 and bool elements are their bits.
  const float* read(const Memory& memory, std::int64_t begin, int n, float* out) const;

  // Address of each element (in elements from the load's place); only for strided maps.
  void addresses(std::int64_t begin, int n, std::int64_t* out) const;

 private:
  enum class Form : std::uint8_t { direct, splat, strided, general };

  // Calls f(first address, stride, count) for each run of the innermost axis of a strided map.
  template <class F>
  void each_run(std::int64_t begin, int n, F f) const;

  // Elements at address, address + stride, ...
  void copy_run(const float* base, std::int64_t address, std::int64_t stride, int n, float* to) const;

  ir::Load load_;
  Form form_ = Form::general;
  ir::Layer coarse_;  // strided
  RunWalk walk_;      // general
};

// The bits of a number as an element of that type.
float element(double value, DType dtype);

}  // namespace tensorgrad::cpu
