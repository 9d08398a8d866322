// BlockProgram: a scalar program run over blocks of elements that stay in the first-level cache,
// one pre-compiled loop per instruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/cpu/reader.h"
#include "ir/kernel.h"

namespace tensorgrad::cpu {

inline constexpr int kBlock = 256;

// An id was outside its table. The runtime turns it into a message with the user's line.
struct IndexError {
  std::int64_t value = 0, extent = 0;
  ir::NodeId node = -1;
};

// A stretch of the space: whole lines, or, in programs without lines, any run of elements.
struct Block {
  std::int64_t begin = 0;  // first element
  int n = 0;
  std::int64_t first_line = 0;
  int lines = 0;
};

// Values that a program does not compute itself.
struct Given {
  const float* accumulator = nullptr;        // matmul
  const float* const* reductions = nullptr;  // by register, when only lines are computed
};

class BlockProgram {
 public:
  // `kept` are the registers whose values are wanted after a run; `length` is that of a line, and
  // `capacity` the most elements of a block.
  BlockProgram(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program, std::span<const ir::Reg> kept,
               std::int64_t length = 1, int capacity = kBlock);

  // Floats of scratch memory that a run needs.
  std::size_t scratch() const { return static_cast<std::size_t>(slots_) * static_cast<std::size_t>(capacity_); }
  int capacity() const { return capacity_; }

  // Runs all instructions, only those per element, or only those per line (with the reductions
  // given). Returns the value of each register. May throw IndexError.
  enum class Part : std::uint8_t { all, elements, lines };
  const float* const* run(const Memory& memory, const Block& block, float* scratch, Part part = Part::all,
                          const Given& given = {}) const;

  // The only load of a program that does nothing else, or null.
  const ir::Load* plain_load() const { return code_.size() == 1 && code_[0].op == ir::ScalarOp::load ? &loads_[0] : nullptr; }

 private:
  void evaluate(const Memory& memory, const ir::Instr& in, std::int64_t begin, int n, const float* a, const float* b,
                const float* c, float* out) const;
  void reduce(const ir::Instr& in, const float* a, int lines, float* out) const;

  std::vector<ir::Instr> code_;
  std::vector<Reader> readers_;
  std::vector<ir::Load> loads_;    // those that the program uses
  std::vector<int> slot_;          // of each register: a piece of scratch memory, or -1
  std::vector<std::vector<float>> constants_;  // by register
  std::int64_t length_;
  int capacity_, slots_ = 0;
};

// Combines values in a fixed order; sums in double, rounded once.
double combine_block(ir::Combine combine, DType dtype, double start, const float* values, int n);
double combine_two(ir::Combine combine, DType dtype, double a, double b);
// Element by element: acc[i] with values[i].
void combine_into(ir::Combine combine, DType dtype, double* acc, const float* values, int n);
float rounded(double value, DType dtype);

}  // namespace tensorgrad::cpu
