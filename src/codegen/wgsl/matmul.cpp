// Kernels of kind `matmul`. Small ones use a thread per element or quad of the result. Others use a
// workgroup per tile of the result: operands pass through workgroup memory, one block of k at a
// time, and each thread keeps a small tile in registers. Where tiles are few and k is long, k is
// split into parts, which a second shader adds in order.
#include <algorithm>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/operand.h"
#include "kernels/tiles.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::MatmulPart;
using ir::MatmulTiles;
using ir::Reg;

namespace {

class Matmul {
 public:
  Matmul(const Emitting& in, const ir::MatmulKernel& k)
      : in_(in), loads_(in.kernel.loads), k_(k), tiles_(tiles_of(in)) {}

  std::vector<Piece> run() {
    std::int64_t results = 0;
    for (const MatmulPart& part : k_.parts) results += k_.batches * k_.M * part.N;
    if (results == 0) return {};
    if (tiles_.direct || k_.K == 0) return {direct()};
    if (tiles_.splits == 1) return {tiled()};
    return {tiled(), joined()};
  }

 private:
  const MatmulTiles& tiles_of(const Emitting& in) const {
    const auto* const tiles = std::get_if<MatmulTiles>(&k_.variant);
    if (!tiles) internal_error("no tiles were chosen: {}", in.title());
    return *tiles;
  }

  void note(Source& source, bool operands, bool results) const {
    if (operands) {
      ProgramWriter::note(source, loads_, k_.a);
      for (const MatmulPart& part : k_.parts) ProgramWriter::note(source, loads_, part.b);
    }
    for (const MatmulPart& part : k_.parts) {
      if (!results) continue;
      ProgramWriter::note(source, loads_, part.epilogue);
      note_stores(source, part.stores, in_.guarded);
      if (part.column_sums) note_stores(source, {*part.column_sums}, in_.guarded);
    }
  }

  Side left() const { return {loads_, k_.a, "left", k_.M, k_.K}; }
  Side right(std::size_t p) const {
    return {loads_, k_.parts[p].b, names_[p].c_str(), k_.K, k_.parts[p].N};
  }
  int width(const MatmulPart& part) const { return part.N % 4 == 0 ? 4 : 1; }
  bool any_quads() const {
    bool out = left().quad_axis() >= 0;
    for (std::size_t p = 0; p < k_.parts.size(); ++p)
      out = out || width(k_.parts[p]) == 4 || right(p).quad_axis() >= 0;
    return out;
  }

  // Declares fn finish_P(x, value): the epilogue of element (or quad) x of the accumulator, and its
  // stores.
  void declare_finish(Source& source, std::size_t p) const {
    const MatmulPart& part = k_.parts[p];
    const int w = width(part);
    source.function(fmt::format("fn finish_{}(x: u32, product: {})", p, type_name(DType::f32, w)),
                    [&] {
                      ProgramWriter program(source, loads_, part.epilogue);
                      for (std::size_t i = 0; i < part.epilogue.code.size(); ++i)
                        if (part.epilogue.code[i].op == ir::ScalarOp::accumulator)
                          program.set(static_cast<Reg>(i), "product");
                      program.write({.linear = "x", .line = "0u", .width = w});
                      for (const ir::Store& s : part.stores) {
                        const std::string condition = store_condition(source, s, in_.guarded);
                        if (!condition.empty()) source.open(fmt::format("if ({}) {{", condition));
                        if (w == 4)
                          source.store_quad(region(s.place.space), moved("x", s.place.offset / 4),
                                            s.dtype, program.as(s.value, 4));
                        else
                          source.store_element(region(s.place.space), moved("x", s.place.offset),
                                               s.dtype, program.as(s.value, 1));
                        if (!condition.empty()) source.close();
                      }
                    });
  }

  void store_sums(Source& source, const MatmulPart& part, const std::string& at,
                  const std::string& value) const {
    const ir::Store& sums = *part.column_sums;
    store_guarded(source, sums, in_.guarded, moved(at, sums.place.offset), value);
  }

  Piece direct() {
    Source source = in_.source(" (direct)");
    note(source, true, true);
    if (any_quads()) source.use_quads();
    left().declare(source);
    std::int64_t begin = 0;
    const std::int64_t threads = in_.least_invocations;
    source.line("let thread_x = group * {}u + thread;", threads);
    for (std::size_t p = 0; p < k_.parts.size(); ++p) {
      const MatmulPart& part = k_.parts[p];
      right(p).declare(source);
      declare_finish(source, p);
      const int w = width(part);
      const std::int64_t across = part.N / w, count = k_.batches * k_.M * across;
      source.open(fmt::format("if (thread_x >= {}u && thread_x < {}u) {{", begin, begin + count));
      source.line("let x = thread_x - {}u;", begin);
      source.line("let column = {}u * (x % {}u);", w, across);
      source.line("let row = (x / {}u) % {}u;", across, k_.M);
      source.line("let batch = x / {}u;", across * k_.M);
      source.line("var sum = {};", number(0, DType::f32, w));
      const bool quads = w == 4 && right(p).quad_axis() == 1;
      const auto step = [&](const std::string& k) {
        const std::string b =
            quads    ? fmt::format("{}_4(batch, {}, column)", names_[p], k)
            : w == 1 ? fmt::format("{}(batch, {}, column)", names_[p], k)
                     : fmt::format(
                           "vec4<f32>({0}(batch, {1}, column), {0}(batch, {1}, column + 1u), "
                           "{0}(batch, {1}, column + 2u), {0}(batch, {1}, column + 3u))",
                           names_[p], k);
        return std::pair(fmt::format(fmt::runtime(w == 4 ? "vec4<f32>(left(batch, row, {}))"
                                                         : "left(batch, row, {})"),
                                     k),
                         b);
      };
      // Reads eight values before the first is used.
      const std::int64_t together = 8, whole = k_.K / together * together;
      if (whole > 0) {
        source.open(fmt::format("for (var k = 0u; k < {}u; k += {}u) {{", whole, together));
        for (std::int64_t j = 0; j < together; ++j) {
          const auto [a, b] = step(fmt::format("k + {}u", j));
          source.line("let a{} = {};", j, a);
          source.line("let b{} = {};", j, b);
        }
        for (std::int64_t j = 0; j < together; ++j) source.line("sum = fma(a{0}, b{0}, sum);", j);
        source.close();
      }
      for (std::int64_t k = whole; k < k_.K; ++k) {
        const auto [a, b] = step(u32_text(k));
        source.line("sum = fma({}, {}, sum);", a, b);
      }
      source.line("finish_{}(x, sum);", p);
      source.close();
      begin += count;
      if (part.column_sums) {  // K is 0
        source.open(fmt::format("if (thread_x < {}u) {{", part.N * k_.batches));
        store_sums(source, part, "thread_x", "0.0f");
        source.close();
        begin = std::max(begin, part.N * k_.batches);
      }
    }
    return source.finish(threads, ceil_div(begin, threads));
  }

  // ---- tiles

  Piece tiled() {
    const MatmulTiles& t = tiles_;
    const bool whole = t.splits == 1;
    Source source = in_.source(whole ? "" : " (parts)");
    note(source, true, whole);
    if (!whole) source.note(Region::scratch, DType::f32, true);
    source.use_quads();
    source.workgroup("tile_a", "vec4<f32>", t.TK * t.TM / 4);  // [k, row / 4]
    source.workgroup("tile_b", "vec4<f32>", t.TK * t.TN / 4);  // [k, column / 4]
    left().declare(source);
    const std::int64_t down = ceil_div(k_.M, t.TM);
    std::int64_t across = 0;
    for (const MatmulPart& part : k_.parts) across += ceil_div(part.N, t.TN);
    source.line("let tile = group % {}u;", across);
    source.line("let m0 = (group / {}u) % {}u * {}u;", across, down, t.TM);
    source.line("let batch = (group / {}u) % {}u;", across * down, k_.batches);
    source.line("let split = group / {}u;", across * down * k_.batches);
    std::int64_t first = 0;
    for (std::size_t p = 0; p < k_.parts.size(); ++p) {
      right(p).declare(source);
      if (whole) declare_finish(source, p);
      source.function(
          fmt::format("fn part_{}(batch: u32, m0: u32, n0: u32, split: u32, thread: u32)", p),
          [&] { tile(source, p); });
      const std::int64_t count = ceil_div(k_.parts[p].N, t.TN);
      const std::string call =
          fmt::format("part_{}(batch, m0, (tile - {}u) * {}u, split, thread);", p, first, t.TN);
      if (k_.parts.size() == 1)
        source.line("{}", call);
      else
        source.line("if (tile >= {}u && tile < {}u) {{ {} }}", first, first + count, call);
      first += count;
    }
    return source.finish(t.threads(), across * down * k_.batches * t.splits, whole ? 0 : scratch());
  }

  // One tile of part p: the loop over k, then the epilogue.
  void tile(Source& source, std::size_t p) const {
    const MatmulTiles& t = tiles_;
    const MatmulPart& part = k_.parts[p];
    const int TX = t.TN / t.RN, quads_m = t.RM / 4, quads_n = t.RN / 4;
    if (t.slices > 1) {
      // Threads of other slices compute the same tile from other values of k.
      const std::int64_t own = t.threads() / t.slices;
      source.line("let slice = thread / {}u;", own);
      source.line("let tx = thread % {}u;", TX);
      source.line("let ty = (thread % {}u) / {}u;", own, TX);
    } else if (TX == 16 && t.threads() == 256) {
      // Thirty-two adjacent threads cover eight columns by four rows, so that they read few
      // distinct values.
      source.line("let tx = (thread & 7u) | ((thread >> 2u) & 8u);");
      source.line("let ty = ((thread >> 3u) & 3u) | ((thread >> 6u) << 2u);");
    } else {
      source.line("let tx = thread % {}u;", TX);
      source.line("let ty = thread / {}u;", TX);
    }
    for (int i = 0; i < t.RM; ++i)
      for (int j = 0; j < quads_n; ++j) source.line("var c{}_{} = vec4<f32>();", i, j);
    const std::int64_t quads = t.TN / 4,
                       lanes = t.slices > 1 ? t.threads() / quads : kernels::kSumLanes;
    if (part.column_sums) source.line("var sums = vec4<f32>();");
    const std::int64_t per_split =
        ceil_div(ceil_div(k_.K, t.splits), kernels::kSplitUnit) * kernels::kSplitUnit;
    const std::string end = t.splits == 1
                                ? u32_text(k_.K)
                                : fmt::format("min({}u, (split + 1u) * {}u)", k_.K, per_split);
    // Prefetches the next tile while this one is used.
    const TileLoad a(t, left(), "tile_a", t.TM, true, "m0", k_.M),
        b(t, right(p), "tile_b", t.TN, false, "n0", part.N);
    a.declare(source);
    b.declare(source);
    source.line("let begin = split * {}u;", per_split);
    source.line("let end = {};", end);
    const auto fetch = [&](const char* from) {
      a.fetch(source, from);
      b.fetch(source, from);
    };
    if (t.splits > 1) source.open("if (begin < end) {");
    fetch("begin");
    if (t.splits > 1) source.close();
    source.open(fmt::format("for (var k0 = begin; k0 < end; k0 += {}u) {{", t.TK));
    a.stash(source);
    b.stash(source);
    source.line("workgroupBarrier();");
    source.line("let next = k0 + {}u;", t.TK);
    source.open("if (next < end) {");
    fetch("next");
    source.close();
    if (part.column_sums) {
      source.open(quads * lanes == t.threads()
                      ? "if (m0 == 0u) {"
                      : fmt::format("if (m0 == 0u && thread < {}u) {{", quads * lanes));
      source.open(
          fmt::format("for (var k = thread / {0}u; k < {1}u; k += {2}u) {{", quads, t.TK, lanes));
      source.line("sums += tile_b[k * {0}u + thread % {0}u];", quads);
      source.close();
      source.close();
    }
    // Small tiles are bound by workgroup memory latency: they read four values of k at a time.
    const int together = t.RM * t.RN <= 16 ? 4 : 1;
    if (t.slices > 1)
      source.open(fmt::format("for (var k = slice * {0}u; k < (slice + 1u) * {0}u; k += {1}u) {{",
                              t.TK / t.slices, together));
    else
      source.open(fmt::format("for (var k = 0u; k < {}u; k += {}u) {{", t.TK, together));
    for (int u = 0; u < together; ++u) {
      for (int i = 0; i < quads_m; ++i)
        source.line("let a{}_{} = tile_a[(k + {}u) * {}u + {}u + ty];", i, u, u, t.TM / 4,
                    i * t.TM / t.RM);
      for (int j = 0; j < quads_n; ++j)
        source.line("let b{}_{} = tile_b[(k + {}u) * {}u + {}u + tx];", j, u, u, t.TN / 4, j * TX);
    }
    for (int u = 0; u < together; ++u)
      for (int i = 0; i < t.RM; ++i)
        for (int j = 0; j < quads_n; ++j) {
          source.line("c{0}_{1} = fma(vec4<f32>(a{2}_{4}.{3}), b{1}_{4}, c{0}_{1});", i, j, i / 4,
                      "xyzw"[i % 4], u);
        }
    source.close();
    source.line("workgroupBarrier();");
    source.close();
    for (int s = 1; s < t.slices; ++s) {  // in order
      const std::int64_t own = t.threads() / t.slices;
      const auto each = [&](const char* format) {
        for (int i = 0; i < t.RM; ++i)
          for (int j = 0; j < quads_n; ++j)
            source.line("{}", fmt::format(fmt::runtime(format), i, j, i * quads_n + j, own));
      };
      source.open(fmt::format("if (slice == {}u) {{", s));
      each("tile_a[{2}u * {3}u + thread % {3}u] = c{0}_{1};");
      source.close();
      source.line("workgroupBarrier();");
      source.open("if (slice == 0u) {");
      each("c{0}_{1} += tile_a[{2}u * {3}u + thread];");
      source.close();
      source.line("workgroupBarrier();");
    }
    if (t.slices > 1) source.open("if (slice == 0u) {");
    if (t.splits == 1 && is_long(part.epilogue))
      finish_in_turn(source, p);
    else
      for (int i = 0; i < t.RM; ++i)
        for (int j = 0; j < quads_n; ++j) finish(source, p, i, j);
    if (t.slices > 1) source.close();
    if (part.column_sums) {
      source.line("tile_a[thread] = sums;");
      source.line("workgroupBarrier();");
      source.open(fmt::format("if (m0 == 0u && thread < {}u) {{", quads));
      source.line("for (var j = {0}u; j < {1}u; j += {0}u) {{ sums += tile_a[thread + j]; }}",
                  quads, quads * lanes);
      for (int q = 0; q < 4; ++q) {
        source.open(fmt::format("if (n0 + 4u * thread + {}u < {}u) {{", q, part.N));
        const std::string at = fmt::format("batch * {}u + n0 + 4u * thread + {}u", part.N, q);
        const std::string value = fmt::format("sums.{}", "xyzw"[q]);
        if (t.splits == 1)
          store_sums(source, part, at, value);
        else
          source.store_element(
              Region::scratch,
              fmt::format("{}u + split * {}u + {}", sums_scratch(p), k_.batches * part.N, at),
              DType::f32, value);
        source.close();
      }
      source.close();
    }
  }

  // Whether the epilogue is so long that unrolling it for each element would overflow the
  // instruction cache.
  static bool is_long(const ir::ScalarProgram& program) {
    return std::any_of(program.code.begin(), program.code.end(),
                       [](const ir::Instr& in) { return ir::is_costly(in.op); });
  }

  // The epilogue of all rows of a thread as a loop.
  void finish_in_turn(Source& source, std::size_t p) const {
    const MatmulTiles& t = tiles_;
    const MatmulPart& part = k_.parts[p];
    const int w = width(part), TX = t.TN / t.RN;
    // The row count is not a constant, so that the driver does not unroll the loop.
    source.line("let rows = select({}u, 0u, m0 >= {}u);", t.RM, k_.M);
    source.open("for (var i = 0u; i < rows; i++) {");
    source.line("let m = m0 + (i / 4u) * {}u + i % 4u + 4u * ty;", t.TM / (t.RM / 4));
    if (k_.M % t.TM != 0) source.open(fmt::format("if (m < {}u) {{", k_.M));
    for (int j = 0; j < t.RN / 4; ++j) {
      source.line("var c{0} = c0_{0};", j);
      for (int i = 1; i < t.RM; ++i) source.line("c{0} = select(c{0}, c{1}_{0}, i == {1}u);", j, i);
      source.line("let column{} = n0 + {}u + 4u * tx;", j, j * 4 * TX);
      for (int q = 0; q < (w == 4 ? 1 : 4); ++q) {
        if (part.N % t.TN != 0)
          source.open(fmt::format("if (column{} + {}u < {}u) {{", j, q, part.N));
        if (w == 4)
          source.line("finish_{0}((batch * {1}u + m) * {2}u + column{3} / 4u, c{3});", p, k_.M,
                      part.N / 4, j);
        else
          source.line("finish_{0}((batch * {1}u + m) * {2}u + column{3} + {4}u, c{3}.{5});", p,
                      k_.M, part.N, j, q, "xyzw"[q]);
        if (part.N % t.TN != 0) source.close();
      }
    }
    if (k_.M % t.TM != 0) source.close();
    source.close();
  }

  void finish(Source& source, std::size_t p, int i, int j) const {
    const MatmulTiles& t = tiles_;
    const MatmulPart& part = k_.parts[p];
    const int w = width(part), TX = t.TN / t.RN;
    const bool rows_inside = k_.M % t.TM == 0, columns_inside = part.N % t.TN == 0;
    // A thread owns four adjacent rows of the tile, or four in each half.
    const std::string m =
        source.let(fmt::format("m0 + {}u + 4u * ty", (i / 4) * (t.TM / (t.RM / 4)) + i % 4), "m");
    const std::string n = source.let(fmt::format("n0 + {}u + 4u * tx", j * 4 * TX), "n");
    for (int q = 0; q < (w == 4 ? 1 : 4); ++q) {
      std::vector<std::string> holds;
      if (!rows_inside) holds.push_back(fmt::format("{} < {}u", m, k_.M));
      if (!columns_inside) holds.push_back(fmt::format("{} + {}u < {}u", n, q, part.N));
      const std::string x =
          w == 4 ? fmt::format("(batch * {}u + {}) * {}u + {} / 4u", k_.M, m, part.N / 4, n)
                 : fmt::format("(batch * {}u + {}) * {}u + {} + {}u", k_.M, m, part.N, n, q);
      const std::string value =
          w == 4 ? fmt::format("c{}_{}", i, j) : fmt::format("c{}_{}.{}", i, j, "xyzw"[q]);
      if (!holds.empty()) source.open(fmt::format("if ({}) {{", fmt::join(holds, " && ")));
      if (t.splits == 1) {
        source.line("finish_{}({}, {});", p, x, value);
      } else if (w == 4) {
        source.store_quad(Region::scratch,
                          fmt::format("{}u + split * {}u + {}", product_scratch(p) / 4,
                                      k_.batches * k_.M * part.N / 4, x),
                          DType::f32, value);
      } else {
        source.store_element(Region::scratch,
                             fmt::format("{}u + split * {}u + {}", product_scratch(p),
                                         k_.batches * k_.M * part.N, x),
                             DType::f32, value);
      }
      if (!holds.empty()) source.close();
    }
  }

  // ---- parts of k. Scratch holds, for each part of the kernel, the sums of all splits, then all
  // column sums.

  static std::int64_t rounded(std::int64_t n) { return ceil_div(n, 64) * 64; }
  std::int64_t product_scratch(std::size_t p) const {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < p; ++i)
      at += rounded(tiles_.splits * k_.batches * k_.M * k_.parts[i].N);
    return at;
  }
  std::int64_t sums_scratch(std::size_t p) const {
    std::int64_t at = product_scratch(k_.parts.size());
    for (std::size_t i = 0; i < p; ++i)
      at += k_.parts[i].column_sums ? rounded(tiles_.splits * k_.batches * k_.parts[i].N) : 0;
    return at;
  }
  std::int64_t scratch() const { return sums_scratch(k_.parts.size()); }

  Piece joined() {
    Source source = in_.source(" (whole)");
    note(source, false, true);
    source.note(Region::scratch, DType::f32, false);
    if (any_quads()) source.use_quads();
    const std::int64_t threads = in_.least_invocations;
    source.line("let thread_x = group * {}u + thread;", threads);
    std::int64_t begin = 0;
    for (std::size_t p = 0; p < k_.parts.size(); ++p) {
      const MatmulPart& part = k_.parts[p];
      declare_finish(source, p);
      const int w = width(part);
      const std::int64_t count = k_.batches * k_.M * part.N / w;
      source.open(fmt::format("if (thread_x >= {}u && thread_x < {}u) {{", begin, begin + count));
      source.line("let x = thread_x - {}u;", begin);
      source.line("var sum = {};", number(0, DType::f32, w));
      const std::string at = fmt::format("{}u + split * {}u + x", product_scratch(p) / w, count);
      source.line("for (var split = 0u; split < {}u; split++) {{ sum += {}; }}", tiles_.splits,
                  w == 4 ? source.quad(Region::scratch, at, DType::f32)
                         : source.element(Region::scratch, at, DType::f32));
      source.line("finish_{}(x, sum);", p);
      source.close();
      begin += count;
      if (!part.column_sums) continue;
      const std::int64_t columns = k_.batches * part.N;
      source.open(fmt::format("if (thread_x >= {}u && thread_x < {}u) {{", begin, begin + columns));
      source.line("let x = thread_x - {}u;", begin);
      source.line("var sum = 0.0f;");
      source.line("for (var split = 0u; split < {}u; split++) {{ sum += {}; }}", tiles_.splits,
                  source.element(Region::scratch,
                                 fmt::format("{}u + split * {}u + x", sums_scratch(p), columns),
                                 DType::f32));
      store_sums(source, part, "x", "sum");
      source.close();
      begin += columns;
    }
    return source.finish(threads, ceil_div(begin, threads), scratch());
  }

  const Emitting& in_;
  const std::vector<ir::Load>& loads_;
  const ir::MatmulKernel& k_;
  const MatmulTiles& tiles_;
  std::vector<std::string> names_ = [this] {
    std::vector<std::string> out;
    for (std::size_t p = 0; p < k_.parts.size(); ++p) out.push_back(fmt::format("right_{}", p));
    return out;
  }();
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::MatmulKernel& k) {
  return Matmul(in, k).run();
}

}  // namespace tensorgrad::wgsl
