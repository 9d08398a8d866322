// Kernels of kind `columns`: reductions down columns. Threads side by side take neighbouring columns, threads
// above each other take turns along a column; many rows are cut into parts that a second shader joins.
#include <algorithm>

#include "codegen/wgsl/emitters.h"

namespace tensorgrad::wgsl {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

constexpr std::int64_t kThreads = 256;
constexpr std::int64_t kFewRows = 16;     // a thread walks them alone
constexpr std::int64_t kManyRows = 2048;  // more are cut into parts

class Columns {
 public:
  explicit Columns(const Emitting& in) : in_(in), k_(in.kernel) {}

  std::vector<Shader> run() {
    if (k_.lines == 0) return {};
    for (std::size_t i = 0; i < k_.program.code.size(); ++i)
      if (k_.program.code[i].op == ScalarOp::reduce) roots_.push_back(static_cast<Reg>(i));
    const bool alone = k_.length <= kFewRows || k_.lines >= 65536;
    if (alone) return {walk(1, kThreads / 4, 1)};
    std::int64_t beside = 32;  // columns of a workgroup
    while (beside > 8 && ceil_div(k_.lines, beside) < 32) beside /= 2;
    if (k_.length <= kManyRows) return {walk(kThreads / beside, beside, 1)};
    const std::int64_t blocks = ceil_div(k_.lines, beside);
    std::int64_t parts = std::min(ceil_div(k_.length, 256), std::max<std::int64_t>(2, 1024 / blocks));
    return {walk(kThreads / beside, beside, parts), join(parts)};
  }

 private:
  bool stores_lines() const { return !k_.stores.empty(); }

  Shader walk(std::int64_t down, std::int64_t beside, std::int64_t parts) {
    const bool whole = parts == 1;
    Source source(in_.title(whole ? "" : " (parts)"), in_.target);
    ProgramWriter::note(source, k_.loads, k_.program, true);
    if (whole) note_stores(source, k_.stores, in_.guarded);
    else source.note(Region::scratch, DType::i32, true), source.note(Region::scratch, DType::f32, true);
    const std::int64_t threads = down * beside, blocks = ceil_div(k_.lines, beside), rows = ceil_div(k_.length, parts);
    source.line("let lane = thread / {}u;", beside);
    source.line("let part = group / {}u;", blocks);
    source.line("let place = (group % {}u) * {}u + thread % {}u;", blocks, beside, beside);
    source.line("let column = min(place, {}u);", k_.lines - 1);
    ProgramWriter program(source, k_.loads, k_.program);
    std::vector<std::string> sums;
    for (const Reg r : roots_) {
      const Instr& in = k_.program.code[static_cast<std::size_t>(r)];
      sums.push_back(source.fresh("sum"));
      source.line("var {} = {};", sums.back(), identity_text(source, in.combine, in.dtype));
    }
    if (k_.length > 0) {
      source.open(fmt::format("for (var row = part * {}u + lane; row < min({}u, (part + 1u) * {}u); row += {}u) {{", rows,
                              k_.length, rows, down));
      source.line("let x = row * {}u + column;", k_.lines);
      program.write({.linear = "x", .line = "column"}, [&](std::size_t i) {
        const Instr& in = k_.program.code[i];
        return !in.line && in.op != ScalarOp::reduce;
      });
      for (std::size_t i = 0; i < roots_.size(); ++i) {
        const Instr& in = k_.program.code[static_cast<std::size_t>(roots_[i])];
        source.line("{} = {};", sums[i], combined(source, in.combine, in.dtype, 1, sums[i], program.as(in.a, 1)));
      }
      source.close();
      program.forget_elements();
    }
    for (std::size_t i = 0; i < roots_.size() && down > 1; ++i) {
      const Instr& in = k_.program.code[static_cast<std::size_t>(roots_[i])];
      const std::string shared = fmt::format("shared{}", i);
      source.declare(fmt::format("var<workgroup> {}: array<{}, {}>;", shared, type_name(in.dtype, 1), threads));
      source.line("{}[thread] = {};", shared, sums[i]);
    }
    if (down > 1) source.line("workgroupBarrier();");
    std::string live = fmt::format("place < {}u", k_.lines);
    if (down > 1) live += " && lane == 0u";
    source.open(fmt::format("if ({}) {{", live));
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const Instr& in = k_.program.code[static_cast<std::size_t>(roots_[i])];
      if (down > 1) {
        source.open(fmt::format("for (var j = {}u; j < {}u; j += {}u) {{", beside, threads, beside));
        source.line("{} = {};", sums[i], combined(source, in.combine, in.dtype, 1, sums[i], fmt::format("shared{}[thread + j]", i)));
        source.close();
      }
      if (!whole)
        source.store_element(Region::scratch, fmt::format("({}u + part) * {}u + column", static_cast<std::int64_t>(i) * parts, k_.lines),
                             in.dtype, sums[i]);
      program.set(roots_[i], sums[i]);
    }
    if (whole) finish_lines(source, program);
    source.close();
    return source.finish(threads, blocks * parts, whole ? 0 : scratch(parts));
  }

  std::int64_t scratch(std::int64_t parts) const { return static_cast<std::int64_t>(roots_.size()) * parts * k_.lines; }

  // What becomes of the reductions, and where it goes.
  void finish_lines(Source& source, ProgramWriter& program) const {
    program.write({.linear = "0u", .line = "column"}, [&](std::size_t i) {
      const Instr& in = k_.program.code[i];
      return in.op != ScalarOp::reduce && (in.line || in.op == ScalarOp::constant);
    });
    for (const ir::Store& s : k_.stores) {
      const std::string condition = store_condition(s, in_.guarded);
      if (!condition.empty()) source.open(fmt::format("if ({}) {{", condition));
      source.store_element(region(s.place.space), fmt::format("column + {}u", s.place.offset), s.dtype, program.as(s.value, 1));
      if (!condition.empty()) source.close();
    }
  }

  Shader join(std::int64_t parts) {
    Source source(in_.title(" (whole)"), in_.target);
    ProgramWriter::note(source, k_.loads, k_.program, true);
    note_stores(source, k_.stores, in_.guarded);
    source.note(Region::scratch, DType::i32, false);
    source.note(Region::scratch, DType::f32, false);
    source.line("let column = group * 64u + thread;");
    source.line("if (column >= {}u) {{ return; }}", k_.lines);
    ProgramWriter program(source, k_.loads, k_.program);
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const Instr& in = k_.program.code[static_cast<std::size_t>(roots_[i])];
      const std::string sum = source.fresh("sum");
      source.line("var {} = {};", sum, identity_text(source, in.combine, in.dtype));
      source.open(fmt::format("for (var part = 0u; part < {}u; part++) {{", parts));
      const std::string value = source.element(
          Region::scratch, fmt::format("({}u + part) * {}u + column", static_cast<std::int64_t>(i) * parts, k_.lines), in.dtype);
      source.line("{} = {};", sum, combined(source, in.combine, in.dtype, 1, sum, value));
      source.close();
      program.set(roots_[i], sum);
    }
    finish_lines(source, program);
    return source.finish(64, ceil_div(k_.lines, 64), scratch(parts));
  }

  const Emitting& in_;
  const ir::Kernel& k_;
  std::vector<Reg> roots_;
};

}  // namespace

std::vector<Shader> emit_columns(const Emitting& in) { return Columns(in).run(); }

}  // namespace tensorgrad::wgsl
