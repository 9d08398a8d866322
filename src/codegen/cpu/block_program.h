// BlockProgram: runs a scalar program over blocks of elements that stay in the L1 cache, with one
// loop of vector_loops.h per instruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/cpu/reader.h"
#include "codegen/cpu/vector_loops.h"
#include "ir/kernel.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

inline constexpr int kBlock = 1024;

// An id was out of range. The runtime converts it to a message with the user's line.
struct IndexError {
  std::int64_t value = 0, extent = 0;
  ir::NodeId node = -1;
};

// A range of the iteration space: whole lines or, in programs with lines of length 1, any run of
// elements.
struct Block {
  std::int64_t begin = 0;  // first element
  int n = 0;
  std::int64_t first_line = 0;
  int lines = 0;
};

// Values that the program receives from outside.
struct Given {
  const float* accumulator = nullptr;        // of a matmul
  const float* const* reductions = nullptr;  // by register, when only per-line values are computed
};

class BlockProgram {
 public:
  // `kept` lists the registers whose values are needed after a run. `length` is the length of a
  // line, `capacity` the maximum number of elements in a block.
  BlockProgram(const std::vector<ir::Load>& loads, const ir::ScalarProgram& program,
               std::span<const ir::Reg> kept, std::int64_t length = 1, int capacity = kBlock);

  // Floats of scratch memory that a run needs.
  std::size_t scratch() const { return usize(slots_) * usize(capacity_); }
  int capacity() const { return capacity_; }
  // Cost per element, in simple instructions.
  int cost() const { return cost_; }

  // Computes the values of `stores`, one per element, directly in their destination, unless a later
  // load reads that memory. Returns for each store whether run() does so; the caller copies the
  // others.
  std::vector<bool> store_at(std::span<const ir::Store> stores);

  // Reads the rows that all lines share into scratch memory. Call it once per task, before run(),
  // if length > 1.
  void prepare(const Memory& memory, float* scratch) const;

  // Runs all instructions, only the per-element ones, or only the per-line ones (which take the
  // reductions from Given). Returns the value of each kept register. May throw IndexError.
  enum class Part : std::uint8_t { all, elements, lines };
  const float* const* run(const Memory& memory, const Block& block, float* scratch,
                          Part part = Part::all, const Given& given = {}) const;

  // The load, if the program consists of a single load; otherwise null.
  const ir::Load* plain_load() const {
    return code_.size() == 1 && code_[0].op == ir::ScalarOp::load ? &loads_[0] : nullptr;
  }

 private:
  // How a step reads an operand: one value per element, one scalar for all, one per line, or one
  // row shared by all lines.
  enum class Mode : std::uint8_t { each, one, line, row };
  struct Operand {
    ir::Reg reg = -1;
    Mode mode = Mode::each;
  };
  // A compiled instruction.
  struct Step {
    ir::ScalarOp op;
    ir::Reg reg;
    bool line = false;    // one value per line
    bool one = false;     // one scalar for all
    bool filled = false;  // `one`, and also needed as an array
    bool nested = false;  // operands have different strides from line to line
    Operand a, b, c;
    Loop loop = nullptr;
    FoldLines fold = nullptr;
    int store = -1;  // index of the store that receives the result
  };

  void number_values();
  void choose_modes(std::span<const ir::Reg> kept);
  void make_steps();
  void join_products(std::span<const ir::Reg> kept);
  void allocate_registers(std::span<const ir::Reg> kept);
  bool computes(const Step& step) const;

  void gather(const Memory& memory, const ir::Instr& in, std::int64_t begin, int n,
              const float* ids, float* out) const;
  void reduce(const Step& step, const float* a, int lines, float* out) const;
  void stretch(const Step& step, const float* const* values, const Block& block, int n,
               float* out) const;
  const ir::Instr& instr(ir::Reg r) const { return code_[usize(r)]; }
  const Reader& reader(ir::Reg r) const { return readers_[usize(instr(r).slot)]; }

  std::vector<ir::Instr> code_;
  std::vector<Reader> readers_;
  std::vector<ir::Load> loads_;   // loads that the program uses
  std::vector<ir::Reg> same_;     // per register: the first register with the same value
  std::vector<bool> one_, full_;  // per register: one scalar for all; needed as an array
  std::vector<ir::Reg> rows_;     // loads of one row shared by all lines
  std::vector<Step> steps_;
  std::vector<ir::Reg> twins_;                 // kept registers that duplicate another
  std::vector<ir::Place> places_;              // destinations of steps that store
  std::vector<int> slot_;                      // per register: its slot in scratch memory, or -1
  std::vector<ir::Reg> fixed_;                 // constants
  std::vector<std::vector<float>> constants_;  // by register
  std::int64_t length_;
  int capacity_, slots_ = 0, cost_ = 1;
};

}  // namespace tensorgrad::cpu
