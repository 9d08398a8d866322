// Kernels that add values by id: segment_sum, scatter_add. A few threads own each result and search
// for its ids: no atomics, and a fixed order.
#include <algorithm>

#include "codegen/wgsl/emitters.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

namespace {

constexpr std::int64_t kThreads = 64;
constexpr int kAhead = 8;  // values read before the first is added

std::string load_text(Source& source, const ir::Load& load, const std::string& linear) {
  return read(source, load,
              address(source, load.map, linear,
                      load.source == ir::Load::Source::memory ? load.place.offset : 0));
}

void note_load(Source& source, const ir::Load& load) {
  if (load.source == ir::Load::Source::memory)
    source.note(region(load.place.space), load.dtype, false);
}

// Records a bad id. Only the owners of the first id or range do so (`condition`): they visit all
// ids.
template <class Core>
void note_bad(Source& source, const Core& k, const std::string& id, const std::string& condition) {
  source.declare_fault_note();
  source.line("if ({0}({1} < 0 || {1} >= {2})) {{ note_fault({3}, {1}); }}", condition, id,
              k.extent, source.fault_code(k.store.node));
}

// With a large vocabulary, positions are sorted by id first: searching all ids for each v would
// take V * P steps. A workgroup owns a range of kRange ids. Its threads share the positions and
// walk over them twice: once to count, and once to write the positions with ids in the range, after
// the positions of all smaller ids. Then one thread per id extracts its own positions from the
// range. Scratch holds the start of each v and the end of the last one, the positions sorted by
// range, and the positions sorted by id. This takes V / kRange * P steps, and within an id
// positions keep their order.
constexpr std::int64_t kRange = 64, kSorters = 256;
constexpr std::int64_t kMostPositions =
    (std::int64_t{1} << 32) / kRange;  // a word holds a position and an offset in the range

struct Sorted {
  std::int64_t by_range, by_id, elements;  // of scratch
  Sorted(std::int64_t V, std::int64_t P)
      : by_range(V + 1), by_id(V + 1 + P), elements(V + 1 + 2 * P) {}
};

Piece sort_positions(const Emitting& in, const ir::SegmentSumKernel& k, const Sorted& sorted) {
  const std::int64_t P = k.length, V = k.extent, ranges = ceil_div(V, kRange),
                     share = ceil_div(P, kSorters);
  Source source = in.source(" (sort)");
  note_load(source, in.kernel.loads[0]);
  source.note(Region::faults, DType::i32, true);
  source.note(Region::scratch, DType::i32, true);
  for (const char* name : {"smaller", "own"}) source.workgroup(name, "u32", kSorters);
  source.line("let first = i32(group * {}u);", kRange);
  source.line("let last = min(first + {}, {});", kRange, V);
  source.line("let begin = min({}u, thread * {}u);", P, share);
  source.line("let end = min({}u, begin + {}u);", P, share);
  const auto each_position = [&](const auto& write) {
    source.open("for (var p = begin; p < end; p++) {");
    source.line("let id = {};", load_text(source, in.kernel.loads[0], "p"));
    write();
    source.close();
  };
  source.line("var below = 0u;");
  source.line("var inside = 0u;");
  each_position([&] {
    note_bad(source, k, "id", "group == 0u && ");
    source.line("below += u32(id < first);");
    source.line("inside += u32(id >= first && id < last);");
  });
  source.line("smaller[thread] = below;");
  source.line("own[thread] = inside;");
  source.line("workgroupBarrier();");
  source.line("var start = 0u;");  // start of the range
  source.line("var at = 0u;");     // start of this thread's share of it
  source.line("var count = 0u;");
  source.open(fmt::format("for (var t = 0u; t < {}u; t++) {{", kSorters));
  source.line("start += smaller[t];");
  source.line("at += select(0u, own[t], t < thread);");
  source.line("count += own[t];");
  source.close();
  source.line("at += start;");
  const auto scratch = [&](const std::string& at, std::int64_t offset) {
    return fmt::format("u32({})", source.element(Region::scratch, moved(at, offset), DType::i32));
  };
  each_position([&] {
    source.open("if (id >= first && id < last) {");
    source.store_element(Region::scratch, moved("at", sorted.by_range), DType::i32,
                         fmt::format("i32(p * {}u + u32(id - first))", kRange));
    source.line("at++;");
    source.close();
  });
  source.line("storageBarrier();");
  source.line("workgroupBarrier();");
  const auto each_own = [&](const auto& write) {
    source.open(
        "for (var i = start; i < select(start, start + count, first + i32(thread) < last); i++) {");
    source.line("let entry = {};", scratch("i", sorted.by_range));
    source.open(fmt::format("if (entry % {}u == thread) {{", kRange));
    write();
    source.close();
    source.close();
  };
  source.line("var mine = 0u;");
  each_own([&] { source.line("mine++;"); });
  source.line("own[thread] = mine;");
  source.line("workgroupBarrier();");
  source.line("var to = start;");
  source.line("for (var t = 0u; t < min(thread, {}u); t++) {{ to += own[t]; }}", kRange);
  source.open("if (first + i32(thread) < last) {");
  source.store_element(Region::scratch, "u32(first) + thread", DType::i32, "i32(to)");
  source.close();
  source.open(fmt::format("if (thread == 0u && last == {}) {{", V));
  source.store_element(Region::scratch, u32_text(V), DType::i32, "i32(start + count)");
  source.close();
  each_own([&] {
    const std::string position = fmt::format("i32(entry / {}u)", kRange);
    source.store_element(Region::scratch, moved("to", sorted.by_id), DType::i32, position);
    source.line("to++;");
  });
  return source.finish(kSorters, ranges, sorted.elements);
}

// One thread per result; reads eight values before the first is added.
Piece sum_sorted(const Emitting& in, const ir::SegmentSumKernel& k, const Sorted& sorted) {
  const std::int64_t D = k.lines, V = k.extent, threads = 256;
  const ir::Store& s = k.store;
  Source source = in.source(" (sum)");
  note_load(source, in.kernel.loads[1]);
  source.note(Region::scratch, DType::i32, false);
  note_stores(source, {k.store}, in.guarded);
  source.line("let x = group * {}u + thread;", threads);
  source.line("if (x >= {}u) {{ return; }}", V * D);
  source.line("let v = x / {}u;", D);
  source.line("let d = x % {}u;", D);
  const auto scratch = [&](const std::string& at) {
    return source.element(Region::scratch, at, DType::i32);
  };
  source.line("let end = u32({});", scratch("v + 1u"));
  source.line("var i = u32({});", scratch("v"));
  source.line("var sum = 0.0f;");
  const auto value = [&](std::int64_t ahead) {
    const std::string p =
        source.let(fmt::format("u32({})", scratch(moved("i", sorted.by_id + ahead))), "p");
    const std::string at = source.let(fmt::format("{} * {}u + d", p, D), "x");
    return source.let(load_text(source, in.kernel.loads[1], at), "value");
  };
  source.open(fmt::format("for (; i + {}u < end; i += {}u) {{", kAhead - 1, kAhead));
  std::vector<std::string> values;
  for (int j = 0; j < kAhead; ++j) values.push_back(value(j));
  for (const std::string& text : values) source.line("sum += {};", text);
  source.close();
  source.open("for (; i < end; i++) {");
  source.line("sum += {};", value(0));
  source.close();
  store_guarded(source, s, in.guarded, moved("x", s.place.offset), "sum");
  return source.finish(threads, ceil_div(V * D, threads), sorted.elements);
}

}  // namespace

// out[v, d] = the sum of values[p, d] over the p with ids[p] = v. Without sorting, a workgroup
// searches for one v in a part of the ids: threads along x are adjacent d, threads along y have
// ranges of the ids. They record where v occurs and then read those values, several at a time.
// Their sums, and then the parts, are combined in order.
std::vector<Piece> emit_core(const Emitting& in, const ir::SegmentSumKernel& k) {
  const std::int64_t P = k.length, D = k.lines, V = k.extent;
  if (D == 0 || V == 0) return {};
  if (k.variant.sorts && P < kMostPositions && in.target.invocations >= kSorters) {
    const Sorted sorted(V, P);
    return {sort_positions(in, k, sorted), sum_sorted(in, k, sorted)};
  }
  const ir::Store& s = k.store;
  constexpr std::int64_t kBeside = ir::SegmentSumVariant::kColumns, kAbove = 8,
                         kThreadsOfIds = kBeside * kAbove, kMostIds = 1024;
  const std::int64_t blocks = ceil_div(D, kBeside);
  const std::int64_t parts = k.variant.parts;
  const std::int64_t per_part = ceil_div(std::max<std::int64_t>(P, 1), parts);
  const bool whole = parts == 1;
  Source first = in.source(whole ? "" : " (parts)");
  for (const ir::Load& load : in.kernel.loads) note_load(first, load);
  first.note(Region::faults, DType::i32, true);
  if (whole)
    note_stores(first, {k.store}, in.guarded);
  else
    first.note(Region::scratch, DType::f32, true);
  const std::int64_t chunk = std::min(kMostIds, ceil_div(per_part, kThreadsOfIds) * kThreadsOfIds),
                     share = chunk / kAbove;
  first.workgroup("sums", "f32", kBeside * kAbove);
  first.workgroup("ids", "i32", chunk);
  first.workgroup("found", "u32", chunk);
  first.line("let d = (group % {}u) * {}u + thread % {}u;", blocks, kBeside, kBeside);
  first.line("let lane = thread / {}u;", kBeside);
  first.line("let v = i32((group / {}u) % {}u);", blocks, V);
  first.line("let part = group / {}u;", blocks * V);
  first.line("let column = min(d, {}u);", D - 1);
  first.line("let own = lane * {}u;", share);
  first.line("var sum = 0.0f;");
  first.line("let end = min({}u, (part + 1u) * {}u);", P, per_part);
  first.open(
      fmt::format("for (var begin = part * {}u; begin < end; begin += {}u) {{", per_part, chunk));
  first.line("workgroupBarrier();");
  // Loads are outside of branches: a load that depends on another one waits for memory twice.
  for (std::int64_t i = 0; i < chunk; i += kThreadsOfIds) {
    const std::string p = first.let(fmt::format("begin + thread + {}u", i), "p");
    const std::string at =
        first.let(fmt::format("min({}, {}u)", p, std::max<std::int64_t>(P - 1, 0)), "at");
    const std::string id = first.let(load_text(first, in.kernel.loads[0], at), "id");
    note_bad(first, k, id, "v == 0 && ");
    first.line("ids[thread + {}u] = select(-1, {}, {} < end);", i, id, p);
  }
  first.line("workgroupBarrier();");
  first.line("var count = 0u;");
  first.open(fmt::format("for (var i = own; i < own + {}u; i += 4u) {{", share));
  for (int j = 0; j < 4; ++j) first.line("let id_{0} = ids[i + {0}u];", j);
  for (int j = 0; j < 4; ++j) {
    first.open(fmt::format("if (id_{} == v) {{", j));
    first.line("if (thread % {}u == 0u) {{ found[own + count] = begin + i + {}u; }}", kBeside, j);
    first.line("count++;");
    first.close();
  }
  first.close();
  first.line("workgroupBarrier();");
  first.open(fmt::format("for (var i = 0u; i < count; i += {}u) {{", kAhead));
  std::vector<std::string> values;
  for (int j = 0; j < kAhead; ++j) {
    const std::string p = first.let(fmt::format("found[own + min(i + {}u, count - 1u)]", j), "p");
    const std::string at = first.let(fmt::format("{} * {}u + column", p, D), "x");
    values.push_back(first.let(load_text(first, in.kernel.loads[1], at), "value"));
  }
  for (int j = 0; j < kAhead; ++j)
    first.line("sum += select(0.0f, {}, i + {}u < count);", values[usize(j)], j);
  first.close();
  first.close();
  first.line("sums[thread] = sum;");
  first.line("workgroupBarrier();");
  first.open(fmt::format("if (lane == 0u && d < {}u) {{", D));
  first.line("for (var j = {0}u; j < {1}u; j += {0}u) {{ sum += sums[thread + j]; }}", kBeside,
             kBeside * kAbove);
  if (whole)
    store_guarded(first, s, in.guarded, fmt::format("u32(v) * {}u + d + {}u", D, s.place.offset),
                  "sum");
  else
    first.store_element(Region::scratch, fmt::format("(part * {}u + u32(v)) * {}u + d", V, D),
                        DType::f32, "sum");
  first.close();
  if (whole) return {first.finish(kBeside * kAbove, blocks * V)};
  Source second = in.source(" (whole)");
  note_stores(second, {k.store}, in.guarded);
  second.note(Region::scratch, DType::f32, false);
  second.line("let x = group * {}u + thread;", kThreads);
  second.line("if (x >= {}u) {{ return; }}", V * D);
  second.line("var sum = 0.0f;");
  second.line("for (var part = 0u; part < {}u; part++) {{ sum += {}; }}", parts,
              second.element(Region::scratch, fmt::format("part * {}u + x", V * D), DType::f32));
  store_guarded(second, s, in.guarded, moved("x", s.place.offset), "sum");
  return {first.finish(kBeside * kAbove, blocks * V * parts, parts * V * D),
          second.finish(kThreads, ceil_div(V * D, kThreads), parts * V * D)};
}

// out[row, e] = the sum of values[row, j] over the j with ids[row, j] = e, in order. One thread per
// result.
std::vector<Piece> emit_core(const Emitting& in, const ir::ScatterAddKernel& k) {
  const std::int64_t rows = k.store_map.shape().count() / std::max<std::int64_t>(1, k.extent),
                     count = rows * k.extent;
  if (count == 0) return {};
  const ir::Store& s = k.store;
  Source source = in.source();
  for (const ir::Load& load : in.kernel.loads) note_load(source, load);
  source.note(Region::faults, DType::i32, true);
  note_stores(source, {k.store}, in.guarded);
  source.line("let x = group * {}u + thread;", kThreads);
  source.line("if (x >= {}u) {{ return; }}", count);
  source.line("let row = x / {}u;", k.extent);
  source.line("let e = i32(x % {}u);", k.extent);
  source.line("var sum = 0.0f;");
  source.open(fmt::format("for (var j = 0u; j < {}u; j++) {{", k.length));
  source.line("let y = row * {}u + j;", k.length);
  source.line("let id = {};", load_text(source, in.kernel.loads[0], "y"));
  note_bad(source, k, "id", "e == 0 && ");
  source.line("if (id == e) {{ sum += {}; }}", load_text(source, in.kernel.loads[1], "y"));
  source.close();
  store_guarded(source, s, in.guarded, address(source, k.store_map, "x", s.place.offset).text,
                "sum");
  return {source.finish(kThreads, ceil_div(count, kThreads))};
}

}  // namespace tensorgrad::wgsl
