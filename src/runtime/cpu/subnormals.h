// Flushing subnormal floats to zero.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Whether the mode can be set on this machine: not in WebAssembly.
bool flushes_subnormals();

// While one exists, arithmetic of the calling thread flushes subnormal results, below about 1e-38,
// to zero, which does not hurt training. A processor takes some hundred times as long for a
// subnormal number, and the moments of parameters without a gradient decay into that range and stay
// there. Subnormal operands keep their values, whatever mode the thread was in; only Arm processors
// treat them as zero too. Does nothing where the mode cannot be set.
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
