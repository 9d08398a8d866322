// Attention over short sequences with small heads. A thread owns one row, and reads the rows of the
// other side four at a time directly from memory: adjacent threads read the same rows. It needs no
// workgroup memory and no barriers.
#include <algorithm>

#include "codegen/wgsl/attention_operand.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::AttentionShape;

namespace {

constexpr int kTogether = 4;  // rows of the other side at a time

class ShortAttention {
 public:
  ShortAttention(const Emitting& in, const AttentionInput& input)
      : in_(input),
        s_(input.core.shape),
        x_(input),
        threads_(in.least_invocations),
        source_(in.source()) {
    note_stores(source_, {input.core.store}, in.guarded);
    source_.use_quads();
    source_.declare("fn sum_of(x: vec4<f32>) -> f32 { return (x.x + x.y) + (x.z + x.w); }");
  }

  std::vector<Piece> forward() {
    const std::int64_t rows = s_.B * s_.H * s_.T;
    if (rows == 0) return {};
    declare({&x_.q, &x_.k, &x_.v});
    begin(rows);
    attend();
    return {source_.finish(threads_, ceil_div(rows, threads_))};
  }

  std::vector<Piece> gradient() {
    const std::int64_t queries = s_.B * s_.H * s_.T, keys = s_.B * s_.G * s_.S;
    if (queries + keys == 0 || s_.gradient_elements() == 0) return {};
    declare({&x_.q, &x_.k, &x_.v, &x_.out, &x_.g});
    source_.note(region(in_.loads[4].place.space), DType::f32, false);
    begin(queries + keys);
    if (queries > 0) {
      source_.function("fn of_query(x: u32, start: i32)", [&] { of_query(); });
      source_.line("if (x < {}u) {{ of_query(x, start); }}", queries);
    }
    source_.function("fn of_key(x: u32, start: i32)", [&] { of_key(); });
    source_.line("if (x >= {0}u) {{ of_key(x - {0}u, start); }}", queries);
    return {source_.finish(threads_, ceil_div(queries + keys, threads_))};
  }

 private:
  using Operand = AttentionOperand;

  void declare(std::initializer_list<const Operand*> operands) {
    for (const Operand* x : operands) ProgramWriter::note(source_, in_.loads, x->program);
    if (s_.cached) source_.note(region(in_.loads.back().place.space), DType::i32, false);
    for (const Operand* x : operands) x->declare(source_, in_);
  }

  void begin(std::int64_t rows) {
    source_.line("let x = group * {}u + thread;", threads_);
    source_.line("if (x >= {}u) {{ return; }}", rows);
    find_start(source_, in_, false);
  }

  static std::int64_t quads(const Operand& x) { return ceil_div(x.size, 4); }
  std::string scale() const { return number(s_.scale, DType::f32); }

  // let NAME0, NAME1, ...: the quads of a row.
  void read_row(const std::string& name, const Operand& x, const std::string& head,
                const std::string& t) {
    for (std::int64_t i = 0; i < quads(x); ++i)
      source_.line("let {}{} = {}_quad({}, {}, {}u);", name, i, x.name, head, t, 4 * i);
  }
  // Reads four rows from `first` on; rows past the end repeat the last one.
  void read_rows(const std::string& name, const Operand& x, const std::string& head,
                 const char* first) {
    for (int j = 0; j < kTogether; ++j) {
      const std::string t =
          source_.let(fmt::format("min({} + {}u, {}u)", first, j, x.positions - 1), "t");
      read_row(fmt::format("{}{}_", name, j), x, head, t);
    }
  }
  // Dot products of one row with four rows, or of four rows with four.
  std::string products(const std::string& a, bool same, const std::string& b, std::int64_t count) {
    std::string out;
    for (int j = 0; j < kTogether; ++j) {
      std::string sum;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::string left = same ? fmt::format("{}{}", a, i) : fmt::format("{}{}_{}", a, j, i);
        const std::string right = fmt::format("{}{}_{}", b, j, i);
        sum = i == 0 ? fmt::format("{} * {}", left, right)
                     : fmt::format("fma({}, {}, {})", left, right, sum);
      }
      out += fmt::format("{}sum_of({})", j ? ", " : "", sum);
    }
    return fmt::format("vec4<f32>({})", out);
  }
  // sums_i += weights_j row_j_i
  void add_rows(const char* sums, const char* weights, const char* rows, std::int64_t count) {
    for (int j = 0; j < kTogether; ++j)
      for (std::int64_t i = 0; i < count; ++i)
        source_.line("{0}{1} = fma(vec4<f32>({2}.{3}), {4}{5}_{1}, {0}{1});", sums, i, weights,
                     "xyzw"[j], rows, j);
  }
  void declare_sums(const char* name, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) source_.line("var {}{} = vec4<f32>();", name, i);
  }
  void store_row(const char* name, const Operand& x, const ir::PackedPart& part, std::int64_t heads,
                 const std::string& scale) {
    const ir::Store& store = in_.core.store;
    const std::string at =
        source_.let(packed_row(store, part, heads, x.positions, x.size, "head", "row"), "at");
    for (std::int64_t i = 0; i < quads(x); ++i)
      store_columns(
          source_, store, x.size, at, u32_text(4 * i),
          scale.empty() ? fmt::format("{}{}", name, i) : fmt::format("{}{} * {}", name, i, scale));
  }

  // The condition that the four keys from `key` on exist and the query at `row` sees them.
  std::string seen_keys() const {
    const std::string keys = "(vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u))";
    std::string out = fmt::format("{} < vec4<u32>({}u)", keys, s_.S);
    if (s_.causal)
      out = fmt::format("({}) & (vec4<i32>{} <= vec4<i32>(start + i32(row)))", out, keys);
    return out;
  }

  // Emits the code for four rows of the other side. It is unrolled where there are few rows, so
  // that the next loads do not wait; otherwise it is a loop.
  template <class F>
  void each_group(const char* name, std::int64_t rows, F write) {
    if (rows > 2 * kTogether) {
      source_.open(
          fmt::format("for (var {0} = 0u; {0} < {1}u; {0} += {2}u) {{", name, rows, kTogether));
      write();
      source_.close();
      return;
    }
    for (std::int64_t first = 0; first < rows; first += kTogether) {
      source_.open("{");
      source_.line("let {} = {}u;", name, first);
      write();
      source_.close();
    }
  }

  void find_row(std::int64_t positions) {
    source_.line("let head = x / {}u;", positions);
    source_.line("let row = x % {}u;", positions);
  }

  void attend() {
    find_row(s_.T);
    source_.line("let head_k = {};", key_head(s_, "head"));
    read_row("own", x_.q, "head", "row");
    declare_sums("sum", quads(x_.v));
    source_.line("var top = -3.0e38f;");
    source_.line("var total = 0.0f;");
    each_group("key", s_.S, [&] {
      read_rows("k", x_.k, "head_k", "key");
      read_rows("v", x_.v, "head_k", "key");
      source_.line("let seen = {};", seen_keys());
      source_.line("let s = select(vec4<f32>(-3.0e38f), {} * {}, seen);",
                   products("own", true, "k", quads(x_.q)), scale());
      source_.line("let best = max(top, max(max(s.x, s.y), max(s.z, s.w)));");
      source_.line("let factor = exp(top - best);");
      source_.line("let w = select(vec4<f32>(), exp(s - vec4<f32>(best)), seen);");
      source_.line("top = best;");
      source_.line("total = total * factor + sum_of(w);");
      for (std::int64_t i = 0; i < quads(x_.v); ++i) source_.line("sum{} *= factor;", i);
      add_rows("sum", "w", "v", quads(x_.v));
    });
    // A query before the first key sees nothing. If it sees keys and all weights are zero, the
    // result is NaN.
    source_.line("let none = start + i32(row) < {};", s_.cached ? "0" : "-2147483647");
    source_.line("let by = select(1.0f / total, 0.0f, none);");
    Operand rows = x_.q;
    rows.size = s_.V;
    store_row("sum", rows, s_.out(), s_.H, "by");
    const ir::Store& store = in_.core.store;
    source_.store_element(region(store.place.space),
                          fmt::format("x + {}u", store.place.offset + s_.lse()), DType::f32,
                          "select(top + log(total), 0.0f, none)");
  }

  // dq = scale ds k, ds = w (g v^T - mean)
  void of_query() {
    find_row(s_.T);
    source_.line("let head_k = {};", key_head(s_, "head"));
    read_row("own", x_.q, "head", "row");
    read_row("g", x_.g, "head", "row");
    read_row("o", x_.out, "head", "row");
    source_.line("let logs = {};", log_sum(source_, in_, "head", "row"));
    std::string mean;
    for (std::int64_t i = 0; i < quads(x_.g); ++i)
      mean = i == 0 ? "g0 * o0" : fmt::format("fma(g{0}, o{0}, {1})", i, mean);
    source_.line("let mean = sum_of({});", mean);
    declare_sums("sum", quads(x_.q));
    each_group("key", s_.S, [&] {
      read_rows("k", x_.k, "head_k", "key");
      read_rows("v", x_.v, "head_k", "key");
      source_.line("let s = {} * {};", products("own", true, "k", quads(x_.q)), scale());
      source_.line("let w = select(vec4<f32>(), exp(s - vec4<f32>(logs)), {});", seen_keys());
      source_.line("let ds = w * ({} - vec4<f32>(mean)) * {};",
                   products("g", true, "v", quads(x_.v)), scale());
      add_rows("sum", "ds", "k", quads(x_.k));
    });
    store_row("sum", x_.q, s_.dq(), s_.H, "");
  }

  // dv = w^T g, dk = scale ds^T q, over all queries of all heads that read this key
  void of_key() {
    find_row(s_.S);
    read_row("own", x_.k, "head", "row");
    read_row("v", x_.v, "head", "row");
    declare_sums("dk", quads(x_.k));
    declare_sums("dv", quads(x_.v));
    if (s_.T > 0) {
      const std::int64_t shared = s_.H / s_.G;
      source_.open(fmt::format("for (var j = 0u; j < {}u; j++) {{", shared));
      source_.line("let head_q = head * {}u + j;", shared);
      each_group("query", s_.T, [&] {
        read_rows("q", x_.q, "head_q", "query");
        read_rows("g", x_.g, "head_q", "query");
        read_rows("o", x_.out, "head_q", "query");
        std::string logs;
        for (int j = 0; j < kTogether; ++j) {
          const std::string t = source_.let(fmt::format("min(query + {}u, {}u)", j, s_.T - 1), "t");
          logs += (j ? ", " : "") + source_.let(log_sum(source_, in_, "head_q", t), "log_sum");
        }
        const std::string queries = "(vec4<u32>(query) + vec4<u32>(0u, 1u, 2u, 3u))";
        std::string seen = fmt::format("{} < vec4<u32>({}u)", queries, s_.T);
        if (s_.causal)
          seen = fmt::format("({}) & (vec4<i32>(i32(row)) <= vec4<i32>(start) + vec4<i32>{})", seen,
                             queries);
        source_.line("let s = {} * {};", products("own", true, "q", quads(x_.q)), scale());
        source_.line("let w = select(vec4<f32>(), exp(s - vec4<f32>({})), {});", logs, seen);
        source_.line("let means = {};", products("g", false, "o", quads(x_.v)));
        source_.line("let ds = w * ({} - means) * {};", products("v", true, "g", quads(x_.v)),
                     scale());
        add_rows("dv", "w", "g", quads(x_.v));
        add_rows("dk", "ds", "q", quads(x_.k));
      });
      source_.close();
    }
    store_row("dk", x_.k, s_.dk(), s_.G, "");
    store_row("dv", x_.v, s_.dv(), s_.G, "");
  }

  const AttentionInput in_;
  const AttentionShape& s_;
  const AttentionOperands x_;
  const std::int64_t threads_;
  Source source_;
};

}  // namespace

std::vector<Piece> emit_short_attention(const Emitting& in, const AttentionInput& input) {
  ShortAttention attention(in, input);
  return input.gradient ? attention.gradient() : attention.forward();
}

}  // namespace tensorgrad::wgsl
