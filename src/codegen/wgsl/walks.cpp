// Kernels that walk in order: arg_reduce, scan, segment_sum, scatter_add.
#include <algorithm>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/functions.h"

namespace tensorgrad::wgsl {

using ir::Kernel;
using ir::Reg;

namespace {

constexpr std::int64_t kThreads = 64;

Reg last(const ir::ScalarProgram& program) { return static_cast<Reg>(program.code.size()) - 1; }

ProgramWriter::Point point(const char* linear) { return {.linear = linear, .line = "0u"}; }

}  // namespace

// The first best element of each row; NaN is best of all. A workgroup per row.
std::vector<Piece> emit_arg_reduce(const Emitting& in) {
  const Kernel& k = in.kernel;
  if (k.lines == 0) return {};
  Source source = in.source();
  ProgramWriter::note(source, k.loads, k.program);
  note_stores(source, k.stores, in.guarded);
  const DType dtype = k.program.dtype(last(k.program));
  const bool real = dtype == DType::f32;
  const std::string type = dtype == DType::boolean ? "i32" : type_name(dtype, 1);
  const char* const than = k.combine == ir::Combine::max ? ">" : "<";
  std::string better = fmt::format("fn better(a: {0}, i: i32, b: {0}, j: i32) -> bool {{\n  if (i < 0) {{ return false; }}\n  if (j < 0) {{ return true; }}\n", type);
  if (real) {
    use_function(source, "is_nan", 1);
    better += "  if (is_nan(a) || is_nan(b)) { return is_nan(a) && (!is_nan(b) || i < j); }\n";
  }
  source.declare(better + fmt::format("  return a {} b || (a == b && i < j);\n}}", than));
  source.workgroup("values", type, kThreads);
  source.workgroup("places", "i32", kThreads);
  source.line("var best = {}(0);", type);
  source.line("var place = -1;");
  source.open(fmt::format("for (var c = thread; c < {}u; c += {}u) {{", k.length, kThreads));
  source.line("let x = group * {}u + c;", k.length);
  ProgramWriter program(source, k.loads, k.program);
  program.write(point("x"));
  const std::string value = dtype == DType::boolean ? fmt::format("select(0, 1, {})", program.value(last(k.program)))
                                                    : program.value(last(k.program));
  source.line("let v = {};", value);
  source.line("if (better(v, i32(c), best, place)) {{ best = v; place = i32(c); }}");
  source.close();
  source.line("values[thread] = best;");
  source.line("places[thread] = place;");
  source.line("workgroupBarrier();");
  source.open("if (thread == 0u) {");
  source.open(fmt::format("for (var t = 1u; t < {}u; t++) {{", kThreads));
  source.line("if (better(values[t], places[t], best, place)) {{ best = values[t]; place = places[t]; }}");
  source.close();
  for (const ir::Store& s : k.stores)
    source.store_element(region(s.place.space), moved("group", s.place.offset), DType::i32, "place");
  source.close();
  return {source.finish(kThreads, k.lines)};
}

// Running sums. Each thread adds up its stretch of the row, then starts from what those before it have.
std::vector<Piece> emit_scan(const Emitting& in) {
  const Kernel& k = in.kernel;
  if (k.lines == 0 || k.length == 0) return {};
  Source source = in.source();
  ProgramWriter::note(source, k.loads, k.program);
  note_stores(source, k.stores, in.guarded);
  const ir::Store& s = k.stores[0];
  const std::string type = type_name(s.dtype, 1);
  const std::int64_t threads = k.length <= 32 ? 1 : kThreads, stretch = ceil_div(k.length, threads);
  source.workgroup("sums", type, kThreads);
  if (threads == 1) {
    source.line("let row = group * {}u + thread;", kThreads);
    source.line("if (row >= {}u) {{ return; }}", k.lines);
    source.line("let begin = 0u;");
  } else {
    source.line("let row = group;");
    source.line("let begin = thread * {}u;", stretch);
  }
  source.line("let end = min({}u, begin + {}u);", k.length, stretch);
  // The k-th element of a stretch, in the direction of the walk.
  const auto walk = [&](bool stores) {
    source.open("for (var i = begin; i < end; i++) {");
    source.line("let c = {};", k.reverse ? fmt::format("{}u - i", k.length - 1) : "i");
    source.line("let x = row * {}u + c;", k.length);
    ProgramWriter program(source, k.loads, k.program);
    program.write(point("x"));
    source.line("sum += {};", program.value(s.value));
    if (stores) source.store_element(region(s.place.space), address(source, k.store_map, "x", s.place.offset).text, s.dtype, "sum");
    source.close();
  };
  source.line("var sum = {}(0);", type);
  if (threads > 1) {
    walk(false);
    source.line("sums[thread] = sum;");
    source.line("workgroupBarrier();");
    source.line("sum = {}(0);", type);
    source.line("for (var t = 0u; t < thread; t++) {{ sum += sums[t]; }}");
  }
  walk(true);
  return {source.finish(kThreads, threads == 1 ? ceil_div(k.lines, kThreads) : k.lines)};
}

namespace {

std::string load_text(Source& source, const ir::Load& load, const std::string& linear) {
  return read(source, load, address(source, load.map, linear, load.source == ir::Load::Source::memory ? load.place.offset : 0));
}

void note_loads(Source& source, const Kernel& k) {
  for (const ir::Load& load : k.loads)
    if (load.source == ir::Load::Source::memory) source.note(region(load.place.space), load.dtype, false);
}

// Bad ids are noted by the threads that look at all of them first.
void note_bad(Source& source, const Kernel& k, const std::string& id, const std::string& condition) {
  source.declare_fault_note();
  source.line("if ({0}({1} < 0 || {1} >= {2})) {{ note_fault({3}, {1}); }}", condition, id, k.extent, source.fault_code(k.stores[0].node));
}

}  // namespace

// out[v, d] = the sum of values[p, d] over the p with ids[p] = v. A workgroup looks for one v among a part of the
// ids: neighbouring threads are neighbouring d, and those above each other take turns with the ids. What they
// have, and then the parts, are joined in order.
std::vector<Piece> emit_segment_sum(const Emitting& in) {
  const Kernel& k = in.kernel;
  const std::int64_t P = k.length, D = k.lines, V = k.extent;
  if (D == 0 || V == 0) return {};
  const ir::Store& s = k.stores[0];
  constexpr std::int64_t kBeside = 32, kAbove = 8;
  const std::int64_t blocks = ceil_div(D, kBeside);
  std::int64_t parts = std::max<std::int64_t>(1, ceil_div(P, 2048));
  if (V * blocks >= 4096 || V * D * parts > (std::int64_t{1} << 26)) parts = 1;
  const std::int64_t per_part = ceil_div(std::max<std::int64_t>(P, 1), parts);
  const bool whole = parts == 1;
  Source first = in.source(whole ? "" : " (parts)");
  note_loads(first, k);
  first.note(Region::faults, DType::i32, true);
  if (whole) note_stores(first, k.stores, false);
  else first.note(Region::scratch, DType::f32, true);
  first.workgroup("sums", "f32", kBeside * kAbove);
  first.line("let d = (group % {}u) * {}u + thread % {}u;", blocks, kBeside, kBeside);
  first.line("let lane = thread / {}u;", kBeside);
  first.line("let v = i32((group / {}u) % {}u);", blocks, V);
  first.line("let part = group / {}u;", blocks * V);
  first.line("let column = min(d, {}u);", D - 1);
  first.line("var sum = 0.0f;");
  first.line("let end = min({}u, (part + 1u) * {}u);", P, per_part);
  first.line("var p = part * {}u + lane;", per_part);
  // Eight ids at a time are read before the first is looked at.
  first.open(fmt::format("for (; p + {}u < end; p += {}u) {{", 7 * kAbove, 8 * kAbove));
  std::vector<std::string> ids;
  for (int j = 0; j < 8; ++j) {
    const std::string at = first.let(fmt::format("p + {}u", j * kAbove), "p");
    ids.push_back(first.let(load_text(first, k.loads[0], at), "id"));
  }
  const auto add = [&](const std::string& id, const std::string& at) {
    note_bad(first, k, id, "v == 0 && d == 0u && ");
    first.open(fmt::format("if ({} == v) {{", id));
    first.line("let x = ({}) * {}u + column;", at, D);
    first.line("sum += {};", load_text(first, k.loads[1], "x"));
    first.close();
  };
  for (int j = 0; j < 8; ++j) add(ids[static_cast<std::size_t>(j)], fmt::format("p + {}u", j * kAbove));
  first.close();
  first.open(fmt::format("for (; p < end; p += {}u) {{", kAbove));
  add(first.let(load_text(first, k.loads[0], "p"), "id"), "p");
  first.close();
  first.line("sums[thread] = sum;");
  first.line("workgroupBarrier();");
  first.open(fmt::format("if (lane == 0u && d < {}u) {{", D));
  first.line("for (var j = {0}u; j < {1}u; j += {0}u) {{ sum += sums[thread + j]; }}", kBeside, kBeside * kAbove);
  if (whole) first.store_element(region(s.place.space), fmt::format("u32(v) * {}u + d + {}u", D, s.place.offset), s.dtype, "sum");
  else first.store_element(Region::scratch, fmt::format("(part * {}u + u32(v)) * {}u + d", V, D), DType::f32, "sum");
  first.close();
  if (whole) return {first.finish(kBeside * kAbove, blocks * V)};
  Source second = in.source(" (whole)");
  note_stores(second, k.stores, false);
  second.note(Region::scratch, DType::f32, false);
  second.line("let x = group * {}u + thread;", kThreads);
  second.line("if (x >= {}u) {{ return; }}", V * D);
  second.line("var sum = 0.0f;");
  second.line("for (var part = 0u; part < {}u; part++) {{ sum += {}; }}", parts,
              second.element(Region::scratch, fmt::format("part * {}u + x", V * D), DType::f32));
  second.store_element(region(s.place.space), moved("x", s.place.offset), s.dtype, "sum");
  return {first.finish(kBeside * kAbove, blocks * V * parts, parts * V * D), second.finish(kThreads, ceil_div(V * D, kThreads), parts * V * D)};
}

// out[row, e] = the sum of values[row, j] over the j with ids[row, j] = e, in order. A thread per result.
std::vector<Piece> emit_scatter_add(const Emitting& in) {
  const Kernel& k = in.kernel;
  const std::int64_t rows = k.store_map.shape().count() / std::max<std::int64_t>(1, k.extent), count = rows * k.extent;
  if (count == 0) return {};
  const ir::Store& s = k.stores[0];
  Source source = in.source();
  note_loads(source, k);
  source.note(Region::faults, DType::i32, true);
  note_stores(source, k.stores, false);
  source.line("let x = group * {}u + thread;", kThreads);
  source.line("if (x >= {}u) {{ return; }}", count);
  source.line("let row = x / {}u;", k.extent);
  source.line("let e = i32(x % {}u);", k.extent);
  source.line("var sum = 0.0f;");
  source.open(fmt::format("for (var j = 0u; j < {}u; j++) {{", k.length));
  source.line("let y = row * {}u + j;", k.length);
  source.line("let id = {};", load_text(source, k.loads[0], "y"));
  note_bad(source, k, "id", "e == 0 && ");
  source.line("if (id == e) {{ sum += {}; }}", load_text(source, k.loads[1], "y"));
  source.close();
  source.store_element(region(s.place.space), address(source, k.store_map, "x", s.place.offset).text, s.dtype, "sum");
  return {source.finish(kThreads, ceil_div(count, kThreads))};
}

}  // namespace tensorgrad::wgsl
