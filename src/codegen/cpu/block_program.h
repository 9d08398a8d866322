// BlockProgram: a scalar program run over blocks of elements that stay in the first-level cache,
// one pre-compiled loop per instruction.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/cpu/reader.h"
#include "ir/kernel.h"

namespace tensorgrad::cpu {

inline constexpr int kBlock = 256;

// An id was outside its table. The runtime turns it into a message with the user's line.
struct IndexError {
  std::int64_t value = 0, extent = 0;
};

class BlockProgram {
 public:
  explicit BlockProgram(const ir::Kernel& kernel);

  // Floats of scratch memory that run() needs.
  std::size_t scratch() const { return static_cast<std::size_t>(slots_) * kBlock; }

  // The value of elements begin .. begin+n-1 of the space, n <= kBlock. May throw IndexError.
  const float* run(const Memory& memory, std::int64_t begin, int n, float* scratch) const;

 private:
  std::vector<ir::Instr> code_;
  std::vector<Reader> readers_;
  std::vector<ir::Place> places_;  // of the loads
  std::vector<int> slot_;          // of each register: a block of scratch memory, or -1
  std::vector<std::vector<float>> constants_;  // by register
  int slots_ = 0;
};

}  // namespace tensorgrad::cpu
