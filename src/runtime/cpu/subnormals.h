// Numbers too small for a whole mantissa.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// While one lives, what the calling thread computes is zero where it would be smaller than the smallest normal
// number, about 1e-38; zero is as good in training. A processor takes some hundred times as long for such a
// number, and moments of parameters without a gradient fade into them and stay there.
// Arm's processors take such operands for zero too; where the mode can not be set, nothing changes.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace tensorgrad::cpu
