// Kernels of kind `columns`: reductions down columns. Threads along x take adjacent columns (or
// quads of them); threads along y take interleaved rows of a column. Many rows are split into
// parts, which a second shader combines.
#include <algorithm>

#include "codegen/wgsl/emitters.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

constexpr std::int64_t kThreads = 256;

class Columns {
 public:
  Columns(const Emitting& in, const ir::ColumnsKernel& k)
      : in_(in), loads_(in.kernel.loads), k_(k) {}

  std::vector<Piece> run() {
    if (k_.lines == 0) return {};
    for (std::size_t i = 0; i < k_.program.code.size(); ++i)
      if (k_.program.code[i].op == ScalarOp::reduce) roots_.push_back(static_cast<Reg>(i));
    if (k_.variant.alone) {
      beside_ = in_.least_invocations, down_ = 1;
      return {walk(1)};
    }
    // Workgroup memory holds a value per thread and reduction.
    width_ = k_.lines % 4 == 0 && static_cast<std::int64_t>(roots_.size()) * kThreads * 16 <=
                                      in_.target.workgroup_bytes
                 ? 4
                 : 1;
    beside_ = width_ == 4 ? 2 : 8;
    while (beside_ < 32 && ceil_div(k_.lines / width_, beside_) > 256) beside_ *= 2;
    down_ = kThreads / beside_;
    while (down_ > 16 && static_cast<std::int64_t>(roots_.size()) * down_ * beside_ * 4 * width_ >
                             in_.target.workgroup_bytes)
      down_ /= 2;
    const std::int64_t parts = k_.length <= k_.variant.turns * down_
                                   ? 1
                                   : ceil_div(k_.length, k_.variant.turns / 2 * down_);
    if (parts == 1) return {walk(1)};
    return {walk(parts), join(parts)};
  }

 private:
  const Instr& instr(Reg r) const { return k_.program.code[usize(r)]; }
  std::int64_t scratch(std::int64_t parts) const {
    return static_cast<std::int64_t>(roots_.size()) * parts * k_.lines;
  }
  std::string scratch_at(std::size_t root, std::int64_t parts) const {
    return fmt::format("({}u + part) * {}u + column", static_cast<std::int64_t>(root) * parts,
                       k_.lines);
  }

  Piece walk(std::int64_t parts) {
    const bool whole = parts == 1;
    Source source = in_.source(whole ? "" : " (parts)");
    ProgramWriter::note(source, loads_, k_.program);
    if (whole)
      note_stores(source, k_.stores, in_.guarded);
    else
      source.note(Region::scratch, DType::i32, true),
          source.note(Region::scratch, DType::f32, true);
    if (width_ == 4) source.use_quads();
    const std::int64_t points = k_.lines / width_, threads = down_ * beside_,
                       blocks = ceil_div(points, beside_);
    const std::int64_t rows = ceil_div(k_.length, parts);
    source.line("let lane = thread / {}u;", beside_);
    source.line("let part = group / {}u;", blocks);
    source.line("let place = (group % {}u) * {}u + thread % {}u;", blocks, beside_, beside_);
    source.line("let at = min(place, {}u);", points - 1);
    ProgramWriter program(source, loads_, k_.program);
    std::vector<std::string> sums;
    for (const Reg r : roots_) {
      sums.push_back(source.fresh("sum"));
      const std::string identity = identity_text(source, instr(r).combine, instr(r).dtype);
      source.line("var {} = {}({});", sums.back(), type_name(instr(r).dtype, width_), identity);
    }
    if (k_.length > 0) {
      // Reads four rows before adding the first; then the remaining rows one by one.
      const std::string first = fmt::format("part * {}u + lane", rows);
      source.line("let end = min({}u, (part + 1u) * {}u);", k_.length, rows);
      source.line("var row = {};", first);
      const std::int64_t together = 4;
      source.open(fmt::format("for (; row + {}u < end; row += {}u) {{", (together - 1) * down_,
                              together * down_));
      std::vector<std::vector<std::string>> values(roots_.size());
      for (std::int64_t j = 0; j < together; ++j) {
        for (std::size_t i = 0; i < roots_.size(); ++i) values[i].resize(usize(together));
        const std::string x =
            source.let(fmt::format("(row + {}u) * {}u + at", j * down_, points), "x");
        elements(program, x);
        for (std::size_t i = 0; i < roots_.size(); ++i)
          values[i][usize(j)] = source.let(program.as(instr(roots_[i]).a, width_), "v");
        program.forget_elements();
      }
      for (std::size_t i = 0; i < roots_.size(); ++i)
        for (const std::string& value : values[i]) add_to(source, i, sums[i], value);
      source.close();
      source.open(fmt::format("for (; row < end; row += {}u) {{", down_));
      elements(program, source.let(fmt::format("row * {}u + at", points), "x"));
      for (std::size_t i = 0; i < roots_.size(); ++i)
        add_to(source, i, sums[i], program.as(instr(roots_[i]).a, width_));
      source.close();
      program.forget_elements();
    }
    for (std::size_t i = 0; i < roots_.size() && down_ > 1; ++i) {
      source.workgroup(fmt::format("shared{}", i), type_name(instr(roots_[i]).dtype, width_),
                       threads);
      source.line("shared{}[thread] = {};", i, sums[i]);
    }
    if (down_ > 16) {  // sixteen threads of a column combine their shares first
      source.line("workgroupBarrier();");
      source.open("if (lane < 16u) {");
      for (std::size_t i = 0; i < roots_.size(); ++i)
        join_shared(source, i, sums[i], 16 * beside_, threads);
      for (std::size_t i = 0; i < roots_.size(); ++i)
        source.line("shared{}[thread] = {};", i, sums[i]);
      source.close();
    }
    if (down_ > 1) source.line("workgroupBarrier();");
    source.open(fmt::format("if ({}place < {}u) {{", down_ > 1 ? "lane == 0u && " : "", points));
    for (std::size_t i = 0; i < roots_.size() && down_ > 1; ++i)
      join_shared(source, i, sums[i], beside_, std::min<std::int64_t>(16, down_) * beside_);
    if (width_ == 4) source.open("for (var q = 0u; q < 4u; q++) {");
    source.line("let column = {};", width_ == 4 ? "4u * at + q" : "at");
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const std::string value = width_ == 4 ? sums[i] + "[q]" : sums[i];
      if (!whole)
        source.store_element(Region::scratch, scratch_at(i, parts), instr(roots_[i]).dtype, value);
      program.set(roots_[i], value);
    }
    if (whole) finish_lines(source, program);
    if (width_ == 4) source.close();
    source.close();
    return source.finish(threads, blocks * parts, whole ? 0 : scratch(parts));
  }

  void elements(ProgramWriter& program, const std::string& x) const {
    program.write({.linear = x, .line = "0u", .width = width_}, [&](std::size_t i) {
      const Instr& in = k_.program.code[i];
      return !in.line && in.op != ScalarOp::reduce;
    });
  }

  void add_to(Source& source, std::size_t i, const std::string& sum,
              const std::string& value) const {
    source.line(
        "{} = {};", sum,
        combined(source, instr(roots_[i]).combine, instr(roots_[i]).dtype, width_, sum, value));
  }

  // sum = sum combined with the shared values every `step` threads, up to `end`.
  void join_shared(Source& source, std::size_t i, const std::string& sum, std::int64_t step,
                   std::int64_t end) const {
    source.open(fmt::format("for (var j = {0}u; thread + j < {1}u; j += {0}u) {{", step, end));
    source.line("{} = {};", sum,
                combined(source, instr(roots_[i]).combine, instr(roots_[i]).dtype, width_, sum,
                         fmt::format("shared{}[thread + j]", i)));
    source.close();
  }

  // Emits the per-line instructions after the reductions, and the stores.
  void finish_lines(Source& source, ProgramWriter& program) const {
    program.write({.linear = "0u", .line = "column"}, [&](std::size_t i) {
      const Instr& in = k_.program.code[i];
      return in.op != ScalarOp::reduce && (in.line || in.op == ScalarOp::constant);
    });
    for (const ir::Store& s : k_.stores)
      store_guarded(source, s, in_.guarded, moved("column", s.place.offset),
                    program.as(s.value, 1));
  }

  Piece join(std::int64_t parts) {
    Source source = in_.source(" (whole)");
    ir::ScalarProgram behind;  // instructions after the sums
    const auto& code = k_.program.code;
    std::copy_if(code.begin(), code.end(), std::back_inserter(behind.code),
                 [](const Instr& in) { return in.line; });
    ProgramWriter::note(source, loads_, behind);
    note_stores(source, k_.stores, in_.guarded);
    source.note(Region::scratch, DType::i32, false);
    source.note(Region::scratch, DType::f32, false);
    const std::int64_t threads = in_.least_invocations;
    source.line("let column = group * {}u + thread;", threads);
    source.line("if (column >= {}u) {{ return; }}", k_.lines);
    ProgramWriter program(source, loads_, k_.program);
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const Instr& in = instr(roots_[i]);
      const std::string sum = source.fresh("sum");
      source.line("var {} = {};", sum, identity_text(source, in.combine, in.dtype));
      source.open(fmt::format("for (var part = 0u; part < {}u; part++) {{", parts));
      source.line("{} = {};", sum,
                  combined(source, in.combine, in.dtype, 1, sum,
                           source.element(Region::scratch, scratch_at(i, parts), in.dtype)));
      source.close();
      program.set(roots_[i], sum);
    }
    finish_lines(source, program);
    return source.finish(threads, ceil_div(k_.lines, threads), scratch(parts));
  }

  const Emitting& in_;
  const std::vector<ir::Load>& loads_;
  const ir::ColumnsKernel& k_;
  std::vector<Reg> roots_;
  int width_ = 1;
  std::int64_t beside_ = 64, down_ = 1;
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::ColumnsKernel& k) {
  return Columns(in, k).run();
}

}  // namespace tensorgrad::wgsl
