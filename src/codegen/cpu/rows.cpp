// Kernels of kind `rows` and `columns`.
#include <algorithm>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "schedule/fuse.h"
#include "support/fail.h"

namespace tensorgrad::cpu {

using ir::Instr;
using ir::Kernel;
using ir::Reg;
using ir::ScalarOp;

namespace {

constexpr std::int64_t kTask = 16 * kBlock;   // elements that one task takes
constexpr std::int64_t kChunk = 64 * kBlock;  // elements of one long row that one task takes
constexpr std::int64_t kChunkRows = 256;      // rows of a columns kernel that one task takes
constexpr std::int64_t kLongRow = schedule::kLongestRow;  // rows up to this fit scratch memory as a whole

std::vector<Reg> kept_of(const Kernel& kernel) {
  std::vector<Reg> kept;
  for (const ir::Store& store : kernel.stores) kept.push_back(store.value);
  for (const Instr& in : kernel.program.code)
    if (in.op == ScalarOp::reduce) kept.push_back(in.a);
  return kept;
}

void store(const Kernel& kernel, const Memory& memory, const Block& block, const float* const* values, bool lines) {
  for (const ir::Store& s : kernel.stores) {
    const bool per_line = kernel.program.line(s.value);
    if (per_line != lines) continue;
    const float* from = values[static_cast<std::size_t>(s.value)];
    std::copy_n(from, per_line ? block.lines : block.n, memory.at(s.place) + (per_line ? block.first_line : block.begin));
  }
}

// No reductions: blocks of elements, in any order.
class Flat : public Compiled {
 public:
  explicit Flat(const Kernel& kernel) : kernel_(kernel), program_(kernel.loads, kernel.program, kept_of(kernel)) {}

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t count = kernel_.elements();
    executor.run(ceil_div(count, kTask), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t end = std::min(count, (task + 1) * kTask);
      for (std::int64_t begin = task * kTask; begin < end; begin += kBlock) {
        const Block block{begin, static_cast<int>(std::min<std::int64_t>(kBlock, end - begin)), 0, 0};
        store(kernel_, memory, block, program_.run(memory, block, scratch), false);
      }
    });
  }

 private:
  Kernel kernel_;
  BlockProgram program_;
};

// Rows that fit scratch memory: as many whole ones at a time as fill a block.
class ShortRows : public Compiled {
 public:
  explicit ShortRows(const Kernel& kernel)
      : kernel_(kernel),
        per_block_(std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, kernel.length))),
        program_(kernel.loads, kernel.program, kept_of(kernel), kernel.length,
                 static_cast<int>(std::max<std::int64_t>(kBlock, per_block_ * kernel.length))) {}

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t length = kernel_.length, lines = kernel_.lines;
    const std::int64_t per_task = std::max(per_block_, kTask / std::max<std::int64_t>(1, length) / per_block_ * per_block_);
    executor.run(ceil_div(lines, per_task), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t end = std::min(lines, (task + 1) * per_task);
      for (std::int64_t row = task * per_task; row < end; row += per_block_) {
        const auto rows = static_cast<int>(std::min(per_block_, end - row));
        const Block block{row * length, static_cast<int>(rows * length), row, rows};
        const float* const* values = program_.run(memory, block, scratch);
        store(kernel_, memory, block, values, false);
        store(kernel_, memory, block, values, true);
      }
    });
  }

 private:
  Kernel kernel_;
  std::int64_t per_block_;
  BlockProgram program_;
};

// Reductions of long rows or of columns: parts of fixed size side by side, combined in order; then
// what is computed per line.
class TwoPhase : public Compiled {
 public:
  explicit TwoPhase(const Kernel& kernel)
      : kernel_(kernel), program_(kernel.loads, kernel.program, kept_of(kernel), kernel.length) {
    for (const ir::Store& s : kernel.stores)
      if (!kernel.program.line(s.value)) internal_error("a row of {} elements is stored: {}", kernel.length, kernel.name);
    for (std::size_t i = 0; i < kernel.program.code.size(); ++i)
      if (kernel.program.code[i].op == ScalarOp::reduce) reductions_.push_back(i);
  }

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t lines = kernel_.lines;
    if (lines == 0) return;
    const bool columns = kernel_.kind == Kernel::Kind::columns;
    const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(kernel_.length, columns ? kChunkRows : kChunk));
    const std::int64_t plane = chunks * lines;  // of one reduction
    std::vector<double> parts(static_cast<std::size_t>(plane) * reductions_.size());
    if (columns)
      column_parts(memory, executor, chunks, parts);
    else
      row_parts(memory, executor, chunks, parts);
    std::vector<float> totals(static_cast<std::size_t>(lines) * reductions_.size());
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const Instr& in = instr(r);
      const double* from = parts.data() + static_cast<std::size_t>(plane) * r;
      for (std::int64_t line = 0; line < lines; ++line) {
        double acc = from[line];
        for (std::int64_t c = 1; c < chunks; ++c) acc = combine_two(in.combine, in.dtype, acc, from[c * lines + line]);
        totals[static_cast<std::size_t>(lines) * r + static_cast<std::size_t>(line)] = rounded(acc, in.dtype);
      }
    }
    finish(memory, totals);
  }

 private:
  const Instr& instr(std::size_t r) const { return kernel_.program.code[reductions_[r]]; }

  void row_parts(const Memory& memory, Executor& executor, std::int64_t chunks, std::vector<double>& parts) const {
    const std::int64_t lines = kernel_.lines, length = kernel_.length;
    executor.run(lines * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t row = task / chunks, chunk = task % chunks;
      const auto part = [&](std::size_t r) -> double& {
        return parts[static_cast<std::size_t>(chunks * lines) * r + static_cast<std::size_t>(chunk * lines + row)];
      };
      for (std::size_t r = 0; r < reductions_.size(); ++r) part(r) = ir::identity(instr(r).combine, instr(r).dtype);
      const std::int64_t end = std::min(length, (chunk + 1) * kChunk);
      for (std::int64_t i = chunk * kChunk; i < end; i += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
        const Block block{row * length + i, n, 0, 0};
        const float* const* values = program_.run(memory, block, scratch, BlockProgram::Part::elements);
        for (std::size_t r = 0; r < reductions_.size(); ++r) {
          const Instr& in = instr(r);
          part(r) = combine_block(in.combine, in.dtype, part(r), values[static_cast<std::size_t>(in.a)], n);
        }
      }
    });
  }

  void column_parts(const Memory& memory, Executor& executor, std::int64_t chunks, std::vector<double>& parts) const {
    const std::int64_t lines = kernel_.lines, length = kernel_.length, blocks = ceil_div(lines, kBlock);
    executor.run(blocks * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t column = task % blocks * kBlock, chunk = task / blocks;
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, lines - column));
      const auto part = [&](std::size_t r) {
        return parts.data() + static_cast<std::size_t>(chunks * lines) * r + static_cast<std::size_t>(chunk * lines + column);
      };
      for (std::size_t r = 0; r < reductions_.size(); ++r)
        std::fill_n(part(r), n, ir::identity(instr(r).combine, instr(r).dtype));
      for (std::int64_t row = chunk * kChunkRows; row < std::min(length, (chunk + 1) * kChunkRows); ++row) {
        const Block block{row * lines + column, n, 0, 0};
        const float* const* values = program_.run(memory, block, scratch, BlockProgram::Part::elements);
        for (std::size_t r = 0; r < reductions_.size(); ++r) {
          const Instr& in = instr(r);
          combine_into(in.combine, in.dtype, part(r), values[static_cast<std::size_t>(in.a)], n);
        }
      }
    });
  }

  // Everything that is computed once per line.
  void finish(const Memory& memory, const std::vector<float>& totals) const {
    const std::int64_t lines = kernel_.lines;
    float* const scratch = scratch_floats(program_.scratch());
    std::vector<const float*> given(kernel_.program.code.size());
    for (std::int64_t line = 0; line < lines; line += kBlock) {
      const Block block{0, 0, line, static_cast<int>(std::min<std::int64_t>(kBlock, lines - line))};
      for (std::size_t r = 0; r < reductions_.size(); ++r)
        given[reductions_[r]] = totals.data() + static_cast<std::size_t>(lines) * r + static_cast<std::size_t>(line);
      const float* const* values =
          program_.run(memory, block, scratch, BlockProgram::Part::lines, {.reductions = given.data()});
      store(kernel_, memory, block, values, true);
    }
  }

  Kernel kernel_;
  BlockProgram program_;
  std::vector<std::size_t> reductions_;  // instructions
};

}  // namespace

std::unique_ptr<Compiled> compile_rows(const Kernel& kernel) {
  const auto& code = kernel.program.code;
  const bool reduces = std::any_of(code.begin(), code.end(), [](const Instr& in) { return in.line; });
  if (!reduces) return std::make_unique<Flat>(kernel);
  if (kernel.length <= kLongRow) return std::make_unique<ShortRows>(kernel);
  return std::make_unique<TwoPhase>(kernel);
}

std::unique_ptr<Compiled> compile_columns(const Kernel& kernel) { return std::make_unique<TwoPhase>(kernel); }

}  // namespace tensorgrad::cpu
