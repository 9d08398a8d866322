// Numbers too small for a whole mantissa.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// While one lives, what the calling thread's arithmetic gives is zero where it would be smaller
// than the smallest normal number, about 1e-38; zero is as good in training. A processor takes some
// hundred times as long for such a number, and moments of parameters without a gradient fade into
// them and stay there. Operands count as they are, whatever mode the thread was in; only Arm's
// processors take them for zero too. Where the mode can not be set, nothing changes.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t before_;
  bool changed_;
};

}  // namespace tensorgrad::cpu
