// Kernels of kind `rows` and `columns`.
#include <algorithm>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

using ir::Instr;
using ir::Kernel;
using ir::LinesKernel;
using ir::Reg;
using ir::ScalarOp;

namespace {

constexpr std::int64_t kTaskWork = 1 << 17;  // elements times cost per task
constexpr std::int64_t kRowWork = 24;        // overhead of a row, in elements
constexpr std::int64_t kShortRow = 16;       // shorter rows do not get a loop of their own

std::vector<Reg> kept_of(const LinesKernel& core) {
  std::vector<Reg> kept;
  for (const ir::Store& store : core.stores) kept.push_back(store.value);
  for (const Instr& in : core.program.code)
    if (in.op == ScalarOp::reduce) kept.push_back(in.a);
  return kept;
}

// The row length to use for a kernel without reductions: the length of a row that some load repeats
// over the whole space, so that a bias is not copied for every row. 1 if no load repeats a row, or
// if several lengths occur.
std::int64_t repeated_row(const Kernel& kernel) {
  std::int64_t length = 1;
  for (const ir::Load& load : kernel.loads) {
    const std::int64_t period = Reader(load).period();
    if (period < kShortRow || period > kBlock || period == length) continue;
    if (length > 1) return 1;
    length = period;
  }
  return length;
}

// Rows that fit in scratch memory: a block takes as many whole rows as fit. Without reductions,
// rows may have any suitable length.
class ShortRows : public Compiled {
 public:
  ShortRows(const Kernel& kernel, const LinesKernel& core, std::int64_t lines, std::int64_t length)
      : lines_(lines),
        length_(length),
        per_block_(std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, length))),
        program_(kernel.loads, core.program, kept_of(core), length,
                 static_cast<int>(std::max<std::int64_t>(kBlock, per_block_ * length))) {
    std::vector<ir::Store> per_element;
    for (const ir::Store& s : core.stores)
      (core.program.line(s.value) ? line_stores_ : per_element).push_back(s);
    const std::vector<bool> stored = program_.store_at(per_element);
    for (std::size_t i = 0; i < stored.size(); ++i)
      if (!stored[i]) copied_.push_back(per_element[i]);
    const std::int64_t row = (length + (length > 1 ? kRowWork : 0)) * program_.cost();
    per_task_ = ceil_div(std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(1, row)),
                         per_block_) *
                per_block_;
  }

  void run(const Memory& memory, Executor& executor) const override {
    executor.run(ceil_div(lines_, per_task_), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      program_.prepare(memory, scratch);
      const std::int64_t end = std::min(lines_, (task + 1) * per_task_);
      for (std::int64_t row = task * per_task_; row < end; row += per_block_) {
        const auto rows = static_cast<int>(std::min(per_block_, end - row));
        const Block block{row * length_, static_cast<int>(rows * length_), row, rows};
        const float* const* values = program_.run(memory, block, scratch);
        for (const ir::Store& s : copied_)
          std::copy_n(values[s.value], block.n, memory.at(s.place) + block.begin);
        for (const ir::Store& s : line_stores_)
          std::copy_n(values[s.value], rows, memory.at(s.place) + row);
      }
    });
  }

 private:
  std::int64_t lines_, length_, per_block_, per_task_;
  BlockProgram program_;
  std::vector<ir::Store> copied_, line_stores_;
};

// Reductions of long rows or of columns: parts of fixed size run in parallel and are combined in
// order. Then the per-line instructions run.
class TwoPhase : public Compiled {
 public:
  enum class Along : std::uint8_t { rows, columns };
  // `part`: elements of a row, or rows of a column, per task.
  TwoPhase(const Kernel& kernel, const LinesKernel& core, Along along, std::int64_t part)
      : core_(core),
        along_(along),
        part_(part),
        program_(kernel.loads, core.program, kept_of(core)) {
    for (const ir::Store& s : core.stores)
      if (!core.program.line(s.value))
        internal_error("a row of {} elements is stored: {}", core.length, kernel.name);
    for (std::size_t i = 0; i < core.program.code.size(); ++i)
      if (core.program.code[i].op == ScalarOp::reduce) {
        const Instr& in = core.program.code[i];
        reductions_.push_back(i);
        folds_.push_back(find_fold(in.combine, in.dtype));
        column_folds_.push_back(find_column_fold(in.combine, in.dtype));
      }
  }

  void run(const Memory& memory, Executor& executor) const override {
    const std::int64_t lines = core_.lines;
    if (lines == 0) return;
    const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(core_.length, part_));
    const std::int64_t plane = chunks * lines;  // size of one reduction
    std::vector<double> parts(usize(plane) * reductions_.size());
    if (along_ == Along::columns)
      column_parts(memory, executor, chunks, parts);
    else
      row_parts(memory, executor, chunks, parts);
    std::vector<float> totals(usize(lines) * reductions_.size());
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const Instr& in = instr(r);
      const double* from = parts.data() + usize(plane) * r;
      for (std::int64_t line = 0; line < lines; ++line) {
        double acc = from[line];
        for (std::int64_t c = 1; c < chunks; ++c)
          acc = combine_two(in.combine, in.dtype, acc, from[c * lines + line]);
        totals[usize(lines) * r + usize(line)] = element(acc, in.dtype);
      }
    }
    finish(memory, totals);
  }

 private:
  const Instr& instr(std::size_t r) const { return core_.program.code[reductions_[r]]; }

  void row_parts(const Memory& memory, Executor& executor, std::int64_t chunks,
                 std::vector<double>& parts) const {
    const std::int64_t lines = core_.lines, length = core_.length;
    executor.run(lines * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t row = task / chunks, chunk = task % chunks;
      const auto part = [&](std::size_t r) -> double& {
        return parts[usize(chunks * lines) * r + usize(chunk * lines + row)];
      };
      for (std::size_t r = 0; r < reductions_.size(); ++r)
        part(r) = ir::identity(instr(r).combine, instr(r).dtype);
      const std::int64_t end = std::min(length, (chunk + 1) * part_);
      for (std::int64_t i = chunk * part_; i < end; i += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
        const Block block{row * length + i, n, 0, 0};
        const float* const* values =
            program_.run(memory, block, scratch, BlockProgram::Part::elements);
        for (std::size_t r = 0; r < reductions_.size(); ++r) {
          const Instr& in = instr(r);
          double folded = 0;
          folds_[r](values[in.a], 1, n, &folded);
          part(r) = combine_two(in.combine, in.dtype, part(r), folded);
        }
      }
    });
  }

  void column_parts(const Memory& memory, Executor& executor, std::int64_t chunks,
                    std::vector<double>& parts) const {
    const std::int64_t lines = core_.lines, length = core_.length, blocks = ceil_div(lines, kBlock);
    const std::int64_t together = std::max<std::int64_t>(1, kBlock / lines);  // rows per block
    executor.run(blocks * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t column = task % blocks * kBlock, chunk = task / blocks;
      const std::int64_t width = std::min<std::int64_t>(kBlock, lines - column);
      const auto part = [&](std::size_t r) {
        return parts.data() + usize(chunks * lines) * r + usize(chunk * lines + column);
      };
      for (std::size_t r = 0; r < reductions_.size(); ++r)
        std::fill_n(part(r), width, ir::identity(instr(r).combine, instr(r).dtype));
      const std::int64_t end = std::min(length, (chunk + 1) * part_);
      for (std::int64_t row = chunk * part_; row < end; row += together) {
        const std::int64_t rows = std::min(together, end - row);
        const Block block{row * lines + column, static_cast<int>(rows * width), 0, 0};
        const float* const* values =
            program_.run(memory, block, scratch, BlockProgram::Part::elements);
        for (std::size_t r = 0; r < reductions_.size(); ++r)
          column_folds_[r](values[instr(r).a], rows, width, part(r));
      }
    });
  }

  // Computes all per-line instructions.
  void finish(const Memory& memory, const std::vector<float>& totals) const {
    const std::int64_t lines = core_.lines;
    float* const scratch = scratch_floats(program_.scratch());
    std::vector<const float*> given(core_.program.code.size());
    for (std::int64_t line = 0; line < lines; line += kBlock) {
      const Block block{0, 0, line, static_cast<int>(std::min<std::int64_t>(kBlock, lines - line))};
      for (std::size_t r = 0; r < reductions_.size(); ++r)
        given[reductions_[r]] = totals.data() + usize(lines) * r + usize(line);
      const float* const* values = program_.run(memory, block, scratch, BlockProgram::Part::lines,
                                                {.reductions = given.data()});
      for (const ir::Store& s : core_.stores)
        std::copy_n(values[s.value], block.lines, memory.at(s.place) + line);
    }
  }

  LinesKernel core_;
  Along along_;
  std::int64_t part_;
  BlockProgram program_;
  std::vector<std::size_t> reductions_;  // indices of instructions
  std::vector<FoldLines> folds_;         // of each reduction, along a row
  std::vector<FoldRows> column_folds_;   // of each reduction, down columns
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const Kernel& kernel, const ir::RowsKernel& core) {
  switch (core.variant.walk) {
    case ir::RowsVariant::Walk::elements: {
      const std::int64_t length = repeated_row(kernel);
      return std::make_unique<ShortRows>(kernel, core, core.elements() / length, length);
    }
    case ir::RowsVariant::Walk::rows:
      return std::make_unique<ShortRows>(kernel, core, core.lines, core.length);
    case ir::RowsVariant::Walk::parts:
      return std::make_unique<TwoPhase>(kernel, core, TwoPhase::Along::rows, core.variant.part);
  }
  return nullptr;
}

std::unique_ptr<Compiled> compile_core(const Kernel& kernel, const ir::ColumnsKernel& core) {
  return std::make_unique<TwoPhase>(kernel, core, TwoPhase::Along::columns, core.variant.turns);
}

}  // namespace tensorgrad::cpu
