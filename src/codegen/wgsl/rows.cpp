// Kernels of kind `rows`. Without reductions: a thread per element or quad. With reductions:
// several adjacent threads share a row, in a single pass if each has one element or quad of it. A
// few very long rows take two shaders: one reduces parts of rows, one combines them.
#include <algorithm>

#include "codegen/wgsl/emitters.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Instr;
using ir::Reg;
using ir::ScalarOp;

namespace {

using Walk = ir::RowsVariant::Walk;

class Rows {
 public:
  Rows(const Emitting& in, const ir::RowsKernel& k)
      : in_(in), loads_(in.kernel.loads), k_(k), L_(k.length) {}

  std::vector<Piece> run() {
    const Walk walk = k_.variant.walk;
    if (k_.lines == 0 || (L_ == 0 && walk == Walk::elements)) return {};
    if (walk == Walk::elements) return {flat()};
    width_ = L_ % 4 == 0 && L_ > 0 ? 4 : 1;
    if (walk == Walk::parts) return long_rows();
    return {short_rows()};
  }

 private:
  void note(Source& source) const {
    ProgramWriter::note(source, loads_, k_.program);
    note_stores(source, k_.stores, in_.guarded);
  }

  bool is_line(const ir::Store& store) const { return k_.program.line(store.value); }

  void store(Source& source, const ProgramWriter& program, const ir::Store& s,
             const std::string& at, int width) const {
    const std::string condition = store_condition(source, s, in_.guarded);
    if (!condition.empty()) source.open(fmt::format("if ({}) {{", condition));
    const std::string value = program.as(s.value, width);
    if (width == 4) {
      source.store_quad(region(s.place.space), moved(at, s.place.offset / 4), s.dtype, value);
    } else {
      source.store_element(region(s.place.space), moved(at, s.place.offset), s.dtype, value);
    }
    if (!condition.empty()) source.close();
  }

  Piece flat() {
    const std::int64_t count = k_.elements();
    const int width = count % 4 == 0 ? 4 : 1;
    const std::int64_t points = count / width,
                       threads = points > 65536 ? 256 : in_.least_invocations;
    Source source = in_.source();
    note(source);
    if (width == 4) source.use_quads();
    source.line("let x = group * {}u + thread;", threads);
    if (points % threads) source.line("if (x >= {}u) {{ return; }}", points);
    ProgramWriter program(source, loads_, k_.program);
    program.write({.linear = "x", .line = "0u", .width = width});
    for (const ir::Store& s : k_.stores) store(source, program, s, "x", width);
    return source.finish(threads, ceil_div(points, threads));
  }

  // The number of reductions before each instruction.
  std::vector<int> levels() const {
    std::vector<int> out;
    for (const Instr& in : k_.program.code) {
      int level = 0;
      for (const Reg r : {in.a, in.b, in.c})
        if (r >= 0) level = std::max(level, out[usize(r)]);
      out.push_back(level + (in.op == ScalarOp::reduce));
    }
    return out;
  }

  // The instructions that the roots depend on.
  std::vector<bool> needed(const std::vector<Reg>& roots) const {
    std::vector<bool> out(k_.program.code.size());
    for (const Reg r : roots) out[usize(r)] = true;
    for (std::size_t i = out.size(); i-- > 0;) {
      const Instr& in = k_.program.code[i];
      if (!out[i] || in.op == ScalarOp::reduce) continue;
      for (const Reg r : {in.a, in.b, in.c})
        if (r >= 0) out[usize(r)] = true;
    }
    return out;
  }

  Piece short_rows() {
    const std::int64_t points = L_ / width_;
    const std::int64_t per_row = std::min(k_.variant.threads, in_.target.invocations);
    const std::int64_t invocations = std::max(per_row, in_.least_invocations),
                       slots = invocations / per_row;
    Source source = in_.source();
    note(source);
    if (width_ == 4) source.use_quads();
    source.line("let lane = thread % {}u;", per_row);
    source.line("let place = group * {}u + thread / {}u;", slots, per_row);
    source.line("let row = min(place, {}u);", k_.lines - 1);
    const bool exact = k_.lines % slots == 0;
    ProgramWriter program(source, loads_, k_.program);
    GroupReduction group(source, invocations, per_row, "lane",
                         source.let(fmt::format("thread - lane"), "first"));
    if (L_ == 0)
      empty_rows(source, program);
    else if (points <= per_row)
      at_once(source, program, group, points, per_row, exact);
    else
      pass_by_pass(source, program, group, points, per_row, exact);
    bool read_before = false, any_lines = false;
    for (const ir::Store& s : k_.stores) {
      if (!is_line(s)) continue;
      any_lines = true;
      for (const ir::Load& load : loads_) read_before = read_before || load.place == s.place;
    }
    if (read_before && per_row > 1) source.line("workgroupBarrier();");
    const std::string live =
        exact ? "lane == 0u" : fmt::format("lane == 0u && place < {}u", k_.lines);
    if (any_lines) source.open(fmt::format("if ({}) {{", live));
    for (const ir::Store& s : k_.stores)
      if (is_line(s)) store(source, program, s, "row", 1);
    if (any_lines) source.close();
    return source.finish(invocations, ceil_div(k_.lines, slots));
  }

  void empty_rows(Source& source, ProgramWriter& program) const {
    for (std::size_t i = 0; i < k_.program.code.size(); ++i) {
      const Instr& in = k_.program.code[i];
      if (in.op == ScalarOp::reduce)
        program.set(static_cast<Reg>(i), identity_text(source, in.combine, in.dtype));
      else if (in.line || in.op == ScalarOp::constant)
        program.write({.linear = "0u", .line = "row"}, [&](std::size_t j) { return j == i; });
    }
  }

  // Single pass: each thread keeps one element or quad of its row in registers.
  void at_once(Source& source, ProgramWriter& program, GroupReduction& group, std::int64_t points,
               std::int64_t per_row, bool exact) const {
    const bool full = points == per_row;
    source.line("let x = row * {}u + {};", points,
                full ? "lane" : fmt::format("min(lane, {}u)", points - 1));
    for (std::size_t i = 0; i < k_.program.code.size(); ++i) {
      const Instr& in = k_.program.code[i];
      if (in.op != ScalarOp::reduce) {
        program.write({.linear = "x", .line = "row", .width = width_},
                      [&](std::size_t j) { return j == i; });
        continue;
      }
      std::string value = program.as(in.a, width_);
      if (width_ == 4) value = combined_quad(source, in.combine, in.dtype, source.let(value, "v"));
      if (!full)
        value = fmt::format("select({}, {}, lane < {}u)",
                            identity_text(source, in.combine, in.dtype), value, points);
      program.set(static_cast<Reg>(i), group.join(in.combine, in.dtype, value));
    }
    std::vector<std::string> live;
    if (!full) live.push_back(fmt::format("lane < {}u", points));
    if (!exact) live.push_back(fmt::format("place < {}u", k_.lines));
    if (!live.empty()) source.open(fmt::format("if ({}) {{", fmt::join(live, " && ")));
    for (const ir::Store& s : k_.stores)
      if (!is_line(s)) store(source, program, s, "x", width_);
    if (!live.empty()) source.close();
  }

  // Longer rows are read again for each reduction that depends on another, and once more for the
  // stores.
  void pass_by_pass(Source& source, ProgramWriter& program, GroupReduction& group,
                    std::int64_t points, std::int64_t per_row, bool exact) const {
    const std::vector<int> level = levels();
    const int last = *std::max_element(level.begin(), level.end());
    const auto lines_of = [&](int l) {
      program.write({.linear = "0u", .line = "row"}, [&](std::size_t i) {
        const Instr& in = k_.program.code[i];
        return level[i] == l && in.op != ScalarOp::reduce &&
               (in.line || in.op == ScalarOp::constant);
      });
    };
    lines_of(0);
    for (int l = 1; l <= last; ++l) {
      std::vector<Reg> roots;
      for (std::size_t i = 0; i < level.size(); ++i)
        if (level[i] == l && k_.program.code[i].op == ScalarOp::reduce)
          roots.push_back(static_cast<Reg>(i));
      accumulate(source, program, group, roots, fmt::format("row * {}u", points), "lane",
                 u32_text(points), per_row);
      lines_of(l);
    }
    std::vector<Reg> roots;
    for (const ir::Store& s : k_.stores)
      if (!is_line(s)) roots.push_back(s.value);
    if (roots.empty()) return;
    source.line("workgroupBarrier();");
    if (!exact) source.open(fmt::format("if (place < {}u) {{", k_.lines));
    source.open(fmt::format("for (var c = lane; c < {}u; c += {}u) {{", points, per_row));
    source.line("let x = row * {}u + c;", points);
    write_elements(program, needed(roots));
    for (const ir::Store& s : k_.stores)
      if (!is_line(s)) store(source, program, s, "x", width_);
    source.close();
    if (!exact) source.close();
    program.forget_elements();
  }

  void write_elements(ProgramWriter& program, const std::vector<bool>& wanted) const {
    program.write({.linear = "x", .line = "row", .width = width_},
                  [&](std::size_t i) { return wanted[i] && !k_.program.code[i].line; });
  }

  // The reductions `roots` over positions begin, begin + step, ... below end of the row at `base`.
  // With `stores`, also stores elements in the same loop.
  void accumulate(Source& source, ProgramWriter& program, GroupReduction& group,
                  const std::vector<Reg>& roots, const std::string& base, const std::string& begin,
                  const std::string& end, std::int64_t step, bool stores = false) const {
    std::vector<Reg> operands;
    std::vector<std::string> sums;
    for (const Reg r : roots) {
      const Instr& in = k_.program.code[usize(r)];
      operands.push_back(in.a);
      sums.push_back(source.fresh("sum"));
      const std::string identity = identity_text(source, in.combine, in.dtype);
      source.line("var {} = {};", sums.back(),
                  width_ == 4 ? fmt::format("{}({})", type_name(in.dtype, 4), identity) : identity);
    }
    if (stores)
      for (const ir::Store& s : k_.stores)
        if (!is_line(s)) operands.push_back(s.value);
    source.open(fmt::format("for (var c = {}; c < {}; c += {}u) {{", begin, end, step));
    source.line("let x = {} + c;", base);
    write_elements(program, needed(operands));
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const Instr& in = k_.program.code[usize(roots[i])];
      source.line(
          "{} = {};", sums[i],
          combined(source, in.combine, in.dtype, width_, sums[i], program.as(in.a, width_)));
    }
    if (stores)
      for (const ir::Store& s : k_.stores)
        if (!is_line(s)) store(source, program, s, "x", width_);
    source.close();
    program.forget_elements();
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const Instr& in = k_.program.code[usize(roots[i])];
      const std::string value =
          width_ == 4 ? combined_quad(source, in.combine, in.dtype, sums[i]) : sums[i];
      program.set(roots[i], group.join(in.combine, in.dtype, value));
    }
  }

  // Reduces parts of rows into scratch memory; then a workgroup per row combines them.
  std::vector<Piece> long_rows() {
    const std::int64_t points = L_ / width_, threads = 256;
    const std::int64_t per_part = k_.variant.part;
    const std::int64_t parts = ceil_div(points, per_part);
    std::vector<Reg> roots;
    for (std::size_t i = 0; i < k_.program.code.size(); ++i)
      if (k_.program.code[i].op == ScalarOp::reduce) roots.push_back(static_cast<Reg>(i));
    const std::int64_t scratch = static_cast<std::int64_t>(roots.size()) * k_.lines * parts;

    Source first = in_.source(" (parts)");
    note(first);
    first.note(Region::scratch, DType::i32, true);
    first.note(Region::scratch, DType::f32, true);
    if (width_ == 4) first.use_quads();
    first.line("let row = group / {}u;", parts);
    first.line("let part = group % {}u;", parts);
    ProgramWriter program(first, loads_, k_.program);
    program.write({.linear = "0u", .line = "row"}, [&](std::size_t i) {
      const Instr& in = k_.program.code[i];
      return in.op == ScalarOp::constant || (in.line && in.op == ScalarOp::load);
    });
    GroupReduction group(first, threads, threads, "thread", "0u");
    accumulate(first, program, group, roots, fmt::format("row * {}u", points),
               fmt::format("part * {}u + thread", per_part),
               fmt::format("min({}u, (part + 1u) * {}u)", points, per_part), threads, true);
    first.open("if (thread == 0u) {");
    for (std::size_t r = 0; r < roots.size(); ++r)
      first.store_element(
          Region::scratch,
          fmt::format("{}u + group", static_cast<std::int64_t>(r) * k_.lines * parts),
          k_.program.dtype(roots[r]), program.value(roots[r]));
    first.close();

    Source second = in_.source(" (whole)");
    ProgramWriter::note(second, loads_, k_.program);
    std::vector<ir::Store> line_stores;
    for (const ir::Store& s : k_.stores)
      if (is_line(s)) line_stores.push_back(s);
    note_stores(second, line_stores, in_.guarded);
    second.note(Region::scratch, DType::i32, false);
    second.note(Region::scratch, DType::f32, false);
    second.line("let row = group;");
    ProgramWriter lines(second, loads_, k_.program);
    GroupReduction join(second, threads, threads, "thread", "0u");
    for (std::size_t i = 0, r = 0; i < k_.program.code.size(); ++i) {
      const Instr& in = k_.program.code[i];
      if (in.op == ScalarOp::reduce) {
        const std::string sum = second.fresh("sum");
        second.line("var {} = {};", sum, identity_text(second, in.combine, in.dtype));
        second.open(fmt::format("for (var p = thread; p < {}u; p += {}u) {{", parts, threads));
        const std::string part =
            second.element(Region::scratch,
                           fmt::format("{}u + row * {}u + p",
                                       static_cast<std::int64_t>(r) * k_.lines * parts, parts),
                           in.dtype);
        second.line("{} = {};", sum, combined(second, in.combine, in.dtype, 1, sum, part));
        second.close();
        lines.set(static_cast<Reg>(i), join.join(in.combine, in.dtype, sum));
        ++r;
      } else if (in.line || in.op == ScalarOp::constant) {
        lines.write({.linear = "0u", .line = "row"}, [&](std::size_t j) { return j == i; });
      }
    }
    second.open("if (thread == 0u) {");
    for (const ir::Store& s : line_stores) store(second, lines, s, "row", 1);
    second.close();
    return {first.finish(threads, k_.lines * parts, scratch),
            second.finish(threads, k_.lines, scratch)};
  }

  const Emitting& in_;
  const std::vector<ir::Load>& loads_;
  const ir::RowsKernel& k_;
  std::int64_t L_;
  int width_ = 1;
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::RowsKernel& k) {
  return Rows(in, k).run();
}

}  // namespace tensorgrad::wgsl
