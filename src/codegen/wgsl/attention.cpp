// Kernels of kind `attention` and `attention_gradient`. A workgroup owns a block of rows (queries,
// or keys for the gradients of keys and values) and walks over blocks of the other side. The scores
// of two blocks are computed from tiles in workgroup memory, four by four per thread. They return
// there as weights, and the weighted sums accumulate in registers.
#include <algorithm>

#include "codegen/wgsl/attention_operand.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::AttentionShape;

namespace {

constexpr std::int64_t kThreads = 64;
constexpr std::int64_t kRows =
    32;  // per block. Row r is component r / 8 of quad r % 8: neighbours hit different banks
constexpr std::int64_t kChunk = 32;     // head columns loaded at a time for the scores
constexpr std::int64_t kColumns = 128;  // head columns that a workgroup accumulates
constexpr std::int64_t kPitch = 9;      // quads from one column of weights to the next
constexpr const char* kHidden = "-3.0e38f";

std::int64_t round_up(std::int64_t n, std::int64_t to) { return ceil_div(n, to) * to; }

class Attention {
 public:
  Attention(const Emitting& in, const AttentionInput& input)
      : in_(in), k_(input), s_(input.core.shape), x_(input) {}

  std::vector<Piece> forward() {
    if (s_.B * s_.H * s_.T == 0) return {};
    Source source = begin({&x_.q, &x_.k, &x_.v});
    source.workgroup("stats", "vec4<f32>", 8 * kPitch);
    const Cut cut(*this, s_.H, s_.T, s_.V);
    source.function("fn attend(group: u32, thread: u32)", [&] { attend(source, cut); });
    source.line("attend(group, thread);");
    return {source.finish(kThreads, cut.groups())};
  }

  // The gradient of queries, and the gradients of keys and values: two kinds of workgroups that do
  // not depend on each other.
  std::vector<Piece> gradient() {
    if (s_.gradient_elements() == 0) return {};
    Source source = begin({&x_.q, &x_.k, &x_.v, &x_.out, &x_.g});
    source.note(region(k_.loads[4].place.space), DType::f32, false);
    source.workgroup("log_sums", "f32", kRows);
    source.workgroup("means", "f32", kThreads);
    declare_statistics(source);
    const Cut queries(*this, s_.H, s_.T, s_.D), keys(*this, s_.G, s_.S, std::max(s_.D, s_.V));
    if (queries.groups() > 0) {
      source.function("fn of_queries(group: u32, thread: u32)",
                      [&] { of_queries(source, queries); });
      source.line("if (group < {}u) {{ of_queries(group, thread); }}", queries.groups());
    }
    if (keys.groups() > 0) {
      source.function("fn of_keys(group: u32, thread: u32)", [&] { of_keys(source, keys); });
      source.line("if (group >= {0}u) {{ of_keys(group - {0}u, thread); }}", queries.groups());
    }
    return {source.finish(kThreads, queries.groups() + keys.groups())};
  }

 private:
  using Operand = AttentionOperand;

  // How the rows of one side are split: heads, blocks of rows, ranges of columns.
  struct Cut {
    std::int64_t heads, blocks, columns;
    Cut(const Attention& a, std::int64_t per_sequence, std::int64_t positions, std::int64_t size)
        : heads(a.s_.B * per_sequence),
          blocks(ceil_div(positions, kRows)),
          columns(ceil_div(size, kColumns)) {}
    std::int64_t groups() const { return heads * blocks * columns; }
  };

  Source begin(std::initializer_list<const Operand*> operands) {
    Source source = in_.source();
    note_stores(source, {k_.core.store}, in_.guarded);
    for (const Operand* x : operands) ProgramWriter::note(source, k_.loads, x->program);
    if (s_.cached) source.note(region(k_.loads.back().place.space), DType::i32, false);
    source.use_quads();
    source.workgroup("tiles", "vec4<f32>", 2 * kChunk * kRows / 4);
    source.workgroup("weights", "vec4<f32>", kRows * kPitch);
    for (const Operand* x : operands) x->declare(source, k_);
    declare_sees(source);
    declare_stash(source);
    return source;
  }

  // ---- functions of a shader

  // Emits the causal mask: `sees_keys` tests four keys against one query, `seen_by` four queries
  // against one key.
  void declare_sees(Source& source) const {
    const auto declare = [&](const char* name, const char* q, const char* k) {
      source.function(
          fmt::format("fn {}(q: {}, k: {}, start: i32) -> vec4<bool>", name, q, k), [&] {
            source.line("let query = vec4<u32>(q);");
            source.line("let key = vec4<u32>(k);");
            source.line(
                "return (query < vec4<u32>({}u)) & (key < vec4<u32>({}u)){};", s_.T, s_.S,
                s_.causal ? " & (vec4<i32>(key) <= vec4<i32>(start) + vec4<i32>(query))" : "");
          });
    };
    declare("sees_keys", "u32", "vec4<u32>");
    if (k_.gradient) declare("seen_by", "vec4<u32>", "u32");
  }

  // Row `r` of a block: its position (clamped to an existing row), and the condition that it
  // exists; empty means always.
  struct Row {
    std::string t, exists;
  };
  static Row row(Source& source, const Operand& x, const std::string& first, const std::string& r) {
    const std::string t = source.let(fmt::format("{} + {}", first, r), "t");
    if (x.positions % kRows == 0) return {t, ""};
    return {source.let(fmt::format("min({}, {}u)", t, x.positions - 1), "t"),
            fmt::format("{} < {}u", t, x.positions)};
  }
  // Four consecutive elements of the row; zero if it does not exist.
  static std::string quad_of(const Operand& x, const std::string& head, const Row& r,
                             const std::string& d) {
    const std::string value = fmt::format("{}_quad({}, {}, {})", x.name, head, r.t, d);
    return r.exists.empty() ? value : fmt::format("select(vec4<f32>(), {}, {})", value, r.exists);
  }
  static std::string if_exists(const Row& r) {
    return r.exists.empty() ? "{" : fmt::format("if ({}) {{", r.exists);
  }

  // fetch_NAME: the thread's share of a chunk of a block: four consecutive elements from each of
  // four rows.
  std::string use_fetch(Source& source, const Operand& x) {
    const std::string name = fmt::format("fetch_{}", x.name);
    if (!declared_.insert(name).second) return name;
    source.function(
        fmt::format("fn {}(head: u32, first: u32, d0: u32, thread: u32) -> mat4x4<f32>", name),
        [&] {
          source.line("let place = thread % 8u;");
          source.line("let d = d0 + 4u * (thread / 8u);");
          for (int i = 0; i < 4; ++i) {
            source.line("let x{} = {};", i,
                        quad_of(x, "head",
                                row(source, x, "first", fmt::format("place + {}u", 8 * i)), "d"));
          }
          source.line("return mat4x4<f32>(x0, x1, x2, x3);");
        });
    return name;
  }

  // stash: writes the fetched values transposed: tiles[at + d * 8 + r % 8][r / 8].
  void declare_stash(Source& source) const {
    source.function("fn stash(at: u32, x: mat4x4<f32>, thread: u32)", [&] {
      source.line("let turned = transpose(x);");
      source.line("let to = at + thread / 8u * 32u + thread % 8u;");
      for (int j = 0; j < 4; ++j) source.line("tiles[to + {}u] = turned[{}];", 8 * j, j);
    });
  }

  // scores_AB(heads and first rows of both): row i of the result holds rows ty + 8 i of a against
  // tx + 8 j of b.
  std::string use_scores(Source& source, const Operand& a, const Operand& b) {
    const std::string name = fmt::format("scores_{}{}", a.name, b.name);
    if (!declared_.insert(name).second) return name;
    const std::string fetch_a = use_fetch(source, a), fetch_b = use_fetch(source, b);
    const std::int64_t chunk = std::min(kChunk, round_up(a.size, 4));
    source.function(
        fmt::format("fn {}(head_a: u32, a0: u32, head_b: u32, b0: u32, thread: u32) -> mat4x4<f32>",
                    name),
        [&] {
          source.line("let tx = thread % 8u;");
          source.line("let ty = thread / 8u;");
          for (int i = 0; i < 4; ++i) source.line("var s{} = vec4<f32>();", i);
          // Prefetches the next chunk while this one is used.
          source.line("var next_a = {}(head_a, a0, 0u, thread);", fetch_a);
          source.line("var next_b = {}(head_b, b0, 0u, thread);", fetch_b);
          source.open(fmt::format("for (var d0 = 0u; d0 < {}u; d0 += {}u) {{", a.size, chunk));
          source.line("workgroupBarrier();");
          source.line("stash(0u, next_a, thread);");
          source.line("stash({}u, next_b, thread);", kChunk * kRows / 4);
          source.line("workgroupBarrier();");
          if (a.size > chunk) {
            source.open(fmt::format("if (d0 + {}u < {}u) {{", chunk, a.size));
            source.line("next_a = {}(head_a, a0, d0 + {}u, thread);", fetch_a, chunk);
            source.line("next_b = {}(head_b, b0, d0 + {}u, thread);", fetch_b, chunk);
            source.close();
          }
          source.open(fmt::format("for (var d = 0u; d < {}u; d += {}u) {{", chunk, unroll_));
          for (int u = 0; u < unroll_; ++u) {
            source.line("let a{0} = tiles[(d + {0}u) * 8u + ty];", u);
            source.line("let b{0} = tiles[{1}u + (d + {0}u) * 8u + tx];", u, kChunk * kRows / 4);
          }
          for (int u = 0; u < unroll_; ++u)
            for (int i = 0; i < 4; ++i)
              source.line("s{0} = fma(vec4<f32>(a{1}.{2}), b{1}, s{0});", i, u, "xyzw"[i]);
          source.close();
          source.close();
          source.line("return mat4x4<f32>(s0, s1, s2, s3);");
        });
    return name;
  }

  // statistics(head, first): for a block of queries, the log-sum-exp and (in two halves) the
  // weighted mean of g v^T, which equals the dot product of the result and its gradient.
  void declare_statistics(Source& source) const {
    source.function("fn statistics(head: u32, first: u32, thread: u32)", [&] {
      source.line("let half = thread / {}u;", kRows);
      const Row r = row(source, x_.q, "first", fmt::format("thread % {}u", kRows));
      source.line("var sum = vec4<f32>();");
      source.open(fmt::format("for (var d = 4u * half; d < {}u; d += {}u) {{", s_.V, 8 * unroll_));
      for (int i = 0; i < unroll_; ++i)
        for (const char* x : {"o", "g"})
          source.line("let {0}{1} = {0}_quad(head, {2}, d + {3}u);", x, i, r.t, 8 * i);
      for (int i = 0; i < unroll_; ++i) source.line("sum = fma(o{0}, g{0}, sum);", i);
      source.close();
      source.line("let logs = {};", log_sum(source, k_, "head", r.t));
      source.line("means[thread] = (sum.x + sum.y) + (sum.z + sum.w);");
      source.line("if (half == 0u) {{ log_sums[thread] = logs; }}");
    });
  }

  // ---- parts of a body

  // Computes the workgroup's head, first row and first column. Where later rows need more work,
  // they are scheduled first.
  void find_place(Source& source, const Cut& cut, bool last_first) const {
    source.line("let tx = thread % 8u;");
    source.line("let ty = thread / 8u;");
    source.line("let column = (group % {}u) * {}u;", cut.columns, kColumns);
    source.line("let head = (group / {}u) % {}u;", cut.columns, cut.heads);
    const std::string block = fmt::format("group / {}u", cut.columns * cut.heads);
    source.line(
        "let first = {}u * {};", kRows,
        last_first ? fmt::format("({}u - {})", cut.blocks - 1, block) : fmt::format("({})", block));
  }

  // The four rows of a quad.
  static std::string quad_at(const char* first, const char* quad) {
    return fmt::format("vec4<u32>({0} + {1}) + vec4<u32>(0u, 8u, 16u, 24u)", first, quad);
  }

  // The end of the keys that a block of queries sees.
  std::string end_of_keys() const {
    return s_.causal ? fmt::format("u32(clamp(start + i32(first) + {}, 0, {}))", kRows, s_.S)
                     : u32_text(s_.S);
  }

  std::int64_t columns_of(std::int64_t size) const {
    return ceil_div(std::min(size, kColumns), 32);
  }  // quads per thread
  std::int64_t quads_of(std::int64_t size) const { return columns_of(size) == 1 ? 8 : 16; }

  void declare_sums(Source& source, const char* name, std::int64_t size) const {
    for (int i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < columns_of(size); ++j)
        source.line("var {}{}_{} = vec4<f32>();", name, i, j);
  }

  // weights[c][r] = component i of quad c of a matrix whose row i is `rows`[i].
  void store_weights(Source& source, const char* rows) const {
    for (int c = 0; c < 4; ++c)
      source.line(
          "weights[(tx + {0}u) * {1}u + ty] = vec4<f32>({2}0.{3}, {2}1.{3}, {2}2.{3}, {2}3.{3});",
          8 * c, kPitch, rows, "xyzw"[c]);
  }

  // Prefetches rows of a block without transposing them, up to 64 columns: one quad into each
  // variable of `to`.
  void fetch_values(Source& source, const char* to, const Operand& x, const std::string& head,
                    const std::string& first, std::int64_t stretch) const {
    const std::int64_t quads = quads_of(x.size);
    for (std::int64_t i = 0; i < kRows * quads / kThreads; ++i) {
      const std::string at = source.let(fmt::format("thread + {}u", kThreads * i), "i");
      const Row r = row(source, x, first, fmt::format("{} / {}u", at, quads));
      const std::string value = quad_of(
          x, head, r, fmt::format("column + {}u + 4u * ({} % {}u)", 64 * stretch, at, quads));
      source.line("{}{}{} = {};", stretch == 0 ? "var " : "", to, i, value);
    }
  }

  // sums += weights x. Requires that all threads are done with the tiles, and that the first range
  // of columns was fetched.
  void add_weighted(Source& source, const char* sums, const Operand& x, const char* fetched,
                    const std::string& head, const std::string& first) {
    const std::int64_t count = columns_of(x.size), quads = quads_of(x.size),
                       tiles_columns = quads / 8;
    for (std::int64_t j = 0; j < count; j += tiles_columns) {
      if (j > 0) {
        fetch_values(source, fetched, x, head, first, j / tiles_columns);
        source.line("workgroupBarrier();");
      }
      for (std::int64_t i = 0; i < kRows * quads / kThreads; ++i)
        source.line("tiles[thread + {}u] = {}{};", kThreads * i, fetched, i);
      source.line("workgroupBarrier();");
      const int unroll = std::min(2, unroll_);
      source.open(fmt::format("for (var c = 0u; c < {}u; c += {}u) {{", kRows, unroll));
      const std::int64_t own = std::min(tiles_columns, count - j);
      for (int u = 0; u < unroll; ++u) {
        source.line("let w{0} = weights[(c + {0}u) * {1}u + ty];", u, kPitch);
        for (std::int64_t n = 0; n < own; ++n)
          source.line("let z{0}_{1} = tiles[(c + {0}u) * {2}u + {3}u + tx];", u, n, quads, 8 * n);
      }
      for (int u = 0; u < unroll; ++u)
        for (std::int64_t n = 0; n < own; ++n)
          for (int i = 0; i < 4; ++i)
            source.line("{0}{1}_{2} = fma(vec4<f32>(w{3}.{4}), z{3}_{5}, {0}{1}_{2});", sums, i,
                        j + n, u, "xyzw"[i], n);
      source.close();
    }
  }

  // Stores the rows of a block in a part of the result.
  void store_sums(Source& source, const char* sums, const Operand& x, const ir::PackedPart& part,
                  std::int64_t heads, const std::string& scale) const {
    for (int i = 0; i < 4; ++i) {
      source.open("{");
      const Row r = row(source, x, "first", fmt::format("ty + {}u", 8 * i));
      source.open(if_exists(r));
      source.line("let at = {};",
                  packed_row(k_.core.store, part, heads, x.positions, x.size, "head", r.t));
      for (std::int64_t j = 0; j < columns_of(x.size); ++j) {
        const std::string value =
            scale.empty() ? fmt::format("{}{}_{}", sums, i, j)
                          : fmt::format("{}{}_{} * {}.{}", sums, i, j, scale, "xyzw"[i]);
        source.line("let c{} = column + 4u * (tx + {}u);", j, 8 * j);
        source.open(fmt::format("if (c{} < {}u) {{", j, x.size));
        store_columns(source, k_.core.store, x.size, "at", fmt::format("c{}", j), value);
        source.close();
      }
      source.close();
      source.close();
    }
  }

  // ---- bodies

  void attend(Source& source, const Cut& cut) {
    find_place(source, cut, s_.causal);
    find_start(source, k_, true);
    declare_sums(source, "sum", s_.V);
    source.line("var top = vec4<f32>({});", kHidden);
    source.line("var total = vec4<f32>();");
    source.line("let end = {};", end_of_keys());
    source.line("let head_k = {};", key_head(s_, "head"));
    source.open(fmt::format("for (var key = 0u; key < end; key += {}u) {{", kRows));
    fetch_values(source, "value", x_.v, "head_k", "key", 0);
    source.line("let s = {}(head, first, head_k, key, thread);", use_scores(source, x_.q, x_.k));
    source.line("var best = top;");
    for (int i = 0; i < 4; ++i) {
      source.line("var p{} = vec4<f32>({});", i, kHidden);
      source.line("let ok{0} = sees_keys(first + ty + {1}u, {2}, start);", i, 8 * i,
                  quad_at("key", "tx"));
      source.line("p{0} = select(p{0}, s[{0}] * {1}, ok{0});", i, number(s_.scale, DType::f32));
      source.line("best.{0} = max(best.{0}, max(max(p{1}.x, p{1}.y), max(p{1}.z, p{1}.w)));",
                  "xyzw"[i], i);
    }
    source.line("stats[tx * {}u + ty] = best;", kPitch);
    source.line("workgroupBarrier();");
    source.line("for (var j = 0u; j < 8u; j++) {{ best = max(best, stats[j * {}u + ty]); }}",
                kPitch);
    source.line("let factor = exp(top - best);");
    source.line("top = best;");
    for (int i = 0; i < 4; ++i)
      source.line("p{0} = select(vec4<f32>(), exp(p{0} - vec4<f32>(top.{1})), ok{0});", i,
                  "xyzw"[i]);
    source.line(
        "total = total * factor + vec4<f32>(sum_of(p0), sum_of(p1), sum_of(p2), sum_of(p3));");
    source.declare("fn sum_of(x: vec4<f32>) -> f32 { return (x.x + x.y) + (x.z + x.w); }");
    for (int i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < columns_of(s_.V); ++j)
        source.line("sum{0}_{1} *= factor.{2};", i, j, "xyzw"[i]);
    store_weights(source, "p");
    add_weighted(source, "sum", x_.v, "value", "head_k", "key");
    source.close();
    source.line("workgroupBarrier();");
    source.line("stats[tx * {}u + ty] = total;", kPitch);
    source.line("workgroupBarrier();");
    source.line("total = stats[ty];");
    source.line("for (var j = 1u; j < 8u; j++) {{ total += stats[j * {}u + ty]; }}", kPitch);
    // A query before the first key sees nothing. If it sees keys and all weights are zero, the
    // result is NaN.
    source.line(
        "let none = vec4<i32>(start + i32(first + ty)) + vec4<i32>(0, 8, 16, 24) < vec4<i32>({});",
        s_.cached ? "0" : "-2147483647");
    source.line("let by = select(1.0f / total, vec4<f32>(), none);");
    Operand rows = x_.q;
    rows.size = s_.V;
    store_sums(source, "sum", rows, s_.out(), s_.H, "by");
    source.line("let log_sum = select(top + log(total), vec4<f32>(), none);");
    const ir::Store& store = k_.core.store;
    source.open("if (tx == 0u && column == 0u) {");
    for (int i = 0; i < 4; ++i) {
      source.open("{");
      const Row r = row(source, x_.q, "first", fmt::format("ty + {}u", 8 * i));
      source.open(if_exists(r));
      source.store_element(
          region(store.place.space),
          fmt::format("{}u + {} * {}u + {}", store.place.offset + s_.lse(), "head", s_.T, r.t),
          DType::f32, fmt::format("log_sum.{}", "xyzw"[i]));
      source.close();
      source.close();
    }
    source.close();
  }

  // dq = scale ds k, ds = w (g v^T - mean)
  void of_queries(Source& source, const Cut& cut) {
    find_place(source, cut, s_.causal);
    find_start(source, k_, true);
    declare_sums(source, "sum", s_.D);
    source.line("statistics(head, first, thread);");
    source.line("let end = {};", end_of_keys());
    source.line("let head_k = {};", key_head(s_, "head"));
    source.open(fmt::format("for (var key = 0u; key < end; key += {}u) {{", kRows));
    source.line("let s = {}(head, first, head_k, key, thread);", use_scores(source, x_.q, x_.k));
    fetch_values(source, "value", x_.k, "head_k", "key", 0);
    source.line("let dw = {}(head, first, head_k, key, thread);", use_scores(source, x_.g, x_.v));
    for (int i = 0; i < 4; ++i) {
      const std::string r = source.let(fmt::format("ty + {}u", 8 * i), "r");
      source.line("let log_sum{} = log_sums[{}];", i, r);
      source.line("let mean{0} = means[{1}] + means[{1} + {2}u];", i, r, kRows);
      source.line(
          "let w{0} = select(vec4<f32>(), exp(s[{0}] * {1} - vec4<f32>(log_sum{0})), "
          "sees_keys(first + {2}, {3}, start));",
          i, number(s_.scale, DType::f32), r, quad_at("key", "tx"));
      source.line("let ds{0} = w{0} * (dw[{0}] - vec4<f32>(mean{0})) * {1};", i,
                  number(s_.scale, DType::f32));
    }
    store_weights(source, "ds");
    source.line("workgroupBarrier();");
    add_weighted(source, "sum", x_.k, "value", "head_k", "key");
    source.close();
    store_sums(source, "sum", x_.q, s_.dq(), s_.H, "");
  }

  // dv = w^T g, dk = scale ds^T q, over all queries of all heads that read these keys
  void of_keys(Source& source, const Cut& cut) {
    find_place(source, cut, false);
    find_start(source, k_, true);
    declare_sums(source, "dv", s_.V);
    declare_sums(source, "dk", s_.D);
    const std::int64_t shared = s_.H / s_.G;
    std::string queries = "head";
    if (shared > 1) {
      source.open(fmt::format("for (var j = 0u; j < {}u; j++) {{", shared));
      source.line("let head_q = (head / {0}u * {0}u + head % {0}u) * {1}u + j;", s_.G, shared);
      queries = "head_q";
    }
    const std::string begin =
        !s_.causal ? "0u" : fmt::format("u32(max(0, i32(first) - start)) / {0}u * {0}u", kRows);
    source.open(
        fmt::format("for (var query = {}; query < {}u; query += {}u) {{", begin, s_.T, kRows));
    source.line("statistics({}, query, thread);", queries);
    source.line("let s = {}(head, first, {}, query, thread);", use_scores(source, x_.k, x_.q),
                queries);
    fetch_values(source, "value", x_.g, queries, "query", 0);
    source.line("let dw = {}(head, first, {}, query, thread);", use_scores(source, x_.v, x_.g),
                queries);
    source.line(
        "let log_sum = vec4<f32>(log_sums[tx], log_sums[tx + 8u], log_sums[tx + 16u], log_sums[tx "
        "+ 24u]);");
    source.line(
        "let mean = vec4<f32>(means[tx] + means[tx + {0}u], means[tx + 8u] + means[tx + {0}u + "
        "8u], means[tx + 16u] + means[tx + {0}u + 16u], means[tx + 24u] + means[tx + {0}u + 24u]);",
        kRows);
    for (int i = 0; i < 4; ++i) {
      source.line(
          "let w{0} = select(vec4<f32>(), exp(s[{0}] * {1} - log_sum), seen_by({2}, first + ty + "
          "{3}u, start));",
          i, number(s_.scale, DType::f32), quad_at("query", "tx"), 8 * i);
    }
    store_weights(source, "w");
    source.line("workgroupBarrier();");
    fetch_values(source, "more", x_.q, queries, "query", 0);
    add_weighted(source, "dv", x_.g, "value", queries, "query");
    for (int i = 0; i < 4; ++i)
      source.line("let ds{0} = w{0} * (dw[{0}] - mean) * {1};", i, number(s_.scale, DType::f32));
    source.line("workgroupBarrier();");
    store_weights(source, "ds");
    add_weighted(source, "dk", x_.q, "more", queries, "query");
    source.close();
    if (shared > 1) source.close();
    store_sums(source, "dv", x_.v, s_.dv(), s_.G, "");
    store_sums(source, "dk", x_.k, s_.dk(), s_.G, "");
  }

  const Emitting& in_;
  const AttentionInput k_;
  const AttentionShape& s_;
  static constexpr int unroll_ = 4;  // values read from workgroup memory before the first is used
  const AttentionOperands x_;
  std::set<std::string> declared_;
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::AttentionKernel& k) {
  const AttentionInput input{in.kernel.loads, k, false};
  return k.variant.row_per_thread ? emit_short_attention(in, input)
                                  : Attention(in, input).forward();
}
std::vector<Piece> emit_core(const Emitting& in, const ir::AttentionGradientKernel& k) {
  const AttentionInput input{in.kernel.loads, k, true};
  return k.variant.row_per_thread ? emit_short_attention(in, input)
                                  : Attention(in, input).gradient();
}

}  // namespace tensorgrad::wgsl
