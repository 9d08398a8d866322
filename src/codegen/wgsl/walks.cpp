// Kernels that walk along rows: arg_reduce, scan.
#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/functions.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Reg;

namespace {

constexpr std::int64_t kThreads = 64;

Reg last(const ir::ScalarProgram& program) { return static_cast<Reg>(program.code.size()) - 1; }

ProgramWriter::Point point(const char* linear) { return {.linear = linear, .line = "0u"}; }

}  // namespace

// The index of the first best element of each row; NaN ranks above all. One workgroup per row.
std::vector<Piece> emit_core(const Emitting& in, const ir::ArgReduceKernel& k) {
  if (k.lines == 0) return {};
  Source source = in.source();
  ProgramWriter::note(source, in.kernel.loads, k.program);
  note_stores(source, {k.store}, in.guarded);
  const DType dtype = k.program.dtype(last(k.program));
  const bool real = dtype == DType::f32;
  const std::string type = dtype == DType::boolean ? "i32" : type_name(dtype, 1);
  const char* const than = k.combine == ir::Combine::max ? ">" : "<";
  std::string better = fmt::format(
      "fn better(a: {0}, i: i32, b: {0}, j: i32) -> bool {{\n  if (i < 0) {{ return false; }}\n  "
      "if (j < 0) {{ return true; }}\n",
      type);
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
  ProgramWriter program(source, in.kernel.loads, k.program);
  program.write(point("x"));
  const std::string value = dtype == DType::boolean
                                ? fmt::format("select(0, 1, {})", program.value(last(k.program)))
                                : program.value(last(k.program));
  source.line("let v = {};", value);
  source.line("if (better(v, i32(c), best, place)) {{ best = v; place = i32(c); }}");
  source.close();
  source.line("values[thread] = best;");
  source.line("places[thread] = place;");
  source.line("workgroupBarrier();");
  source.open("if (thread == 0u) {");
  source.open(fmt::format("for (var t = 1u; t < {}u; t++) {{", kThreads));
  source.line(
      "if (better(values[t], places[t], best, place)) {{ best = values[t]; place = places[t]; }}");
  source.close();
  store_guarded(source, k.store, in.guarded, moved("group", k.store.place.offset), "place");
  source.close();
  return {source.finish(kThreads, k.lines)};
}

// Prefix sums. Each thread sums its range of the row, then starts from the total of the threads
// before it.
std::vector<Piece> emit_core(const Emitting& in, const ir::ScanKernel& k) {
  if (k.lines == 0 || k.length == 0) return {};
  Source source = in.source();
  ProgramWriter::note(source, in.kernel.loads, k.program);
  note_stores(source, {k.store}, in.guarded);
  const ir::Store& s = k.store;
  const std::string type = type_name(s.dtype, 1);
  const std::int64_t threads = k.variant.alone ? 1 : kThreads,
                     stretch = ceil_div(k.length, threads);
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
  // The k-th element of a range, in the direction of the walk.
  const auto walk = [&](bool stores) {
    source.open("for (var i = begin; i < end; i++) {");
    source.line("let c = {};", k.reverse ? fmt::format("{}u - i", k.length - 1) : "i");
    source.line("let x = row * {}u + c;", k.length);
    ProgramWriter program(source, in.kernel.loads, k.program);
    program.write(point("x"));
    source.line("sum += {};", program.value(s.value));
    if (stores)
      store_guarded(source, s, in.guarded, address(source, k.store_map, "x", s.place.offset).text,
                    "sum");
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

}  // namespace tensorgrad::wgsl
