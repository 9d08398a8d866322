#include "codegen/wgsl/scan_writer.h"

#include <algorithm>
#include <array>

#include "support/integers.h"

namespace tensorgrad::wgsl {

namespace {

constexpr std::int64_t kFewThreads = 64, kManyThreads = 128;
constexpr std::int64_t kFewChannels =
    8;  // per workgroup: if there would be fewer, it gets more threads
constexpr std::int64_t kStaged =
    256;  // states per channel; with more, B and C would not fit in workgroup memory

std::int64_t offset(const ir::Load& load) {
  return load.source == ir::Load::Source::memory ? load.place.offset : 0;
}

std::string element(Source& source, const ir::Load& load, const std::string& linear) {
  return read(source, load, address(source, load.map, linear, offset(load)));
}

// max(x, 0) + log(1 + z) for z = exp(-|x|), by the atanh series.
constexpr const char* kSoftplus = R"(fn softplus(x: f32) -> f32 {
  let z = exp(-abs(x));
  let s = z / (2.0f + z);
  let t = s * s;
  return max(x, 0.0f) + 2.0f * s * (1.0f + t * (0.333333333f + t * (0.2f + t * (0.142857143f + t * (0.111111111f +
         t * (0.0909090909f + t * 0.0769230769f))))));
})";

// -exp(A_log), clamped to at most -1e-30, so that dividing by A gives the limit for A = 0.
constexpr const char* kDecay = R"(fn decay(A_log: vec4<f32>) -> vec4<f32> {
  let A = -exp(A_log);
  return select(A, vec4<f32>(-1e-30f), A > vec4<f32>(-1e-30f));
})";

// exp(x) - 1 for x <= 0.
constexpr const char* kLessThan1 = R"(fn less_than_1(x: vec4<f32>) -> vec4<f32> {
  let near = x * (1.0f + x * (0.5f + x * (0.166666667f + x * (0.0416666667f + x * (0.00833333333f +
             x * (0.00138888889f + x * 0.000198412698f))))));
  return select(exp(x) - 1.0f, near, x > vec4<f32>(-0.5f));
})";

}  // namespace

ScanWriter::ScanWriter(const Emitting& in, const ir::SelectiveScanCore& core, bool gradient)
    : in_(in), loads_(in.kernel.loads), k_(core), s_(core.shape), gradient_(gradient) {
  const std::int64_t quads = std::max<std::int64_t>(1, ceil_div(s_.N, 4)),
                     E = std::max<std::int64_t>(1, s_.E);
  const bool few = kFewThreads / quads >= std::min(kFewChannels, E);
  const std::int64_t most = std::min(in.target.invocations, few ? kFewThreads : kManyThreads);
  Q_ = std::min(quads, most);
  W_ = ceil_div(quads, Q_);
  CH_ = std::min(E, most / Q_);
  blocks_ = ceil_div(s_.E, CH_);
  staged_ = s_.N <= kStaged;
  ragged_ = 4 * Q_ * W_ != s_.N;
}

void ScanWriter::note(Source& source, const ir::Load& load) const {
  if (load.source == ir::Load::Source::memory)
    source.note(region(load.place.space), load.dtype, false);
}

void ScanWriter::begin(Source& source) const {
  for (const ir::Load& load : loads_) note(source, load);
  note_stores(source, {k_.store}, in_.guarded);
  for (std::size_t i = 0; i < loads_.size(); ++i) declare_reader(source, i);
  source.declare(kSoftplus);
  source.declare(kDecay);
  if (s_.zoh || gradient_) source.declare(kLessThan1);
  for (const char* name : {"tile_u", "tile_dl"}) source.workgroup(name, "f32", T_ * CH_);
  if (gradient_) source.workgroup("tile_g", "f32", T_ * CH_);
  if (!staged_) return;
  for (const char* name : {"tile_B", "tile_C"}) source.workgroup(name, "vec4<f32>", T_ * quads());
}

// Declares fn read_u(b, t, c) and the like; read_B_4 reads four consecutive elements, zero outside.
void ScanWriter::declare_reader(Source& source, std::size_t operand) const {
  const char* const name = std::array{"u", "delta", "A_log", "B", "C", "D", "state", "g"}[operand];
  const ir::Load& load = loads_[operand];
  if (load.map.shape().count() == 0) return;  // no states were kept
  source.function(fmt::format("fn read_{}(b: u32, t: u32, c: u32) -> f32", name), [&] {
    if (operand == kD)
      source.line("return {};", element(source, load, "c"));
    else
      source.line("return {};",
                  read(source, load, address(source, load.map, "b", "t", "c", offset(load))));
  });
  if (operand != kALog && operand != kB && operand != kC && operand != kStates) return;
  std::vector<std::string> parts;
  for (int j = 0; j < 4; ++j) {
    const std::string n = moved("c", j);
    if (ragged_)
      parts.push_back(fmt::format("select(0.0f, read_{}(b, t, min({}, {}u)), {} < {}u)", name, n,
                                  s_.N - 1, n, s_.N));
    else
      parts.push_back(fmt::format("read_{}(b, t, {})", name, n));
  }
  source.function(fmt::format("fn read_{}_4(b: u32, t: u32, c: u32) -> vec4<f32>", name),
                  [&] { source.line("return vec4<f32>({});", fmt::join(parts, ",\n    ")); });
}

void ScanWriter::place_thread(Source& source) const {
  source.line("let channel = thread / {}u;", Q_);
  source.line("let quad = thread % {}u;", Q_);
  source.line("let e = min(first + channel, {}u);", s_.E - 1);
  each_quad([&](std::int64_t w) {
    source.line("let n_{} = 4u * (quad + {}u);", w, w * Q_);
    source.line("let A_{0} = decay(read_A_log_4(0u, e, n_{0}));", w);
    if (s_.zoh) source.line("let inverse_{0} = 1.0f / A_{0};", w);
  });
}

// ---- tiles

void ScanWriter::declare_tile(Source& source) const {
  if (!fetches()) return;
  for (const char* name : {"u", "delta", "g"})
    if (gradient_ || *name != 'g') source.line("var next_{}: array<f32, {}>;", name, wide_turns());
  for (const char* name : {"B", "C"})
    if (staged_) source.line("var next_{}: array<vec4<f32>, {}>;", name, narrow_turns());
}

namespace {

// Values of element j of a tile, at step t and channel (or quad) c; zero outside.
struct Reads {
  const ir::SelectiveScanShape& s;
  std::string end;

  std::string wide(const char* name, const char* none = "0.0f") const {
    return fmt::format("select({}, read_{}(b, min(t, {}u), min(c, {}u)), t < {} && c < {}u)", none,
                       name, s.L - 1, s.E - 1, end, s.E);
  }
  // Padding becomes a step of size 0.
  std::string delta() const { return wide("delta", "-1e30f"); }
  std::string narrow(const char* name) const {
    return fmt::format("select(vec4<f32>(), read_{}_4(b, min(t, {}u), 4u * c), t < {})", name,
                       s.L - 1, end);
  }
};

}  // namespace

void ScanWriter::fetch_tile(Source& source, const std::string& begin,
                            const std::string& end) const {
  if (!fetches()) return;
  const Reads reads{s_, end};
  const auto turns = [&](std::int64_t count, std::int64_t row, const std::string& first,
                         const auto& write) {
    source.open(fmt::format("for (var k = 0u; k < {}u; k++) {{", count));
    source.line("let j = thread + k * {}u;", threads());
    source.line("let t = {} + j / {}u;", begin, row);
    source.line("let c = {}j % {}u;", first, row);
    write();
    source.close();
  };
  turns(wide_turns(), CH_, "first + ", [&] {
    source.line("next_u[k] = {};", reads.wide("u"));
    source.line("next_delta[k] = {};", reads.delta());
    if (gradient_) source.line("next_g[k] = {};", reads.wide("g"));
  });
  if (!staged_) return;
  turns(narrow_turns(), quads(), "", [&] {
    for (const char* name : {"B", "C"}) source.line("next_{}[k] = {};", name, reads.narrow(name));
  });
}

void ScanWriter::load_tile(Source& source) const {
  const bool fetched = fetches();
  const Reads reads{s_, "end"};
  const auto turns = [&](std::int64_t count, std::int64_t row, const std::string& first,
                         const auto& write) {
    if (fetched) {
      source.open(fmt::format("for (var k = 0u; k < {}u; k++) {{", ceil_div(T_ * row, threads())));
      source.line("let j = thread + k * {}u;", threads());
      if (count % threads() != 0) source.line("if (j >= {}u) {{ break; }}", count);
    } else {
      source.open(fmt::format("for (var j = thread; j < {}u; j += {}u) {{", count, threads()));
      source.line("let t = begin + j / {}u;", row);
      source.line("let c = {}j % {}u;", first, row);
    }
    write();
    source.close();
  };
  turns(T_ * CH_, CH_, "first + ", [&] {
    source.line("tile_u[j] = {};", fetched ? "next_u[k]" : reads.wide("u"));
    source.line("tile_dl[j] = softplus({});", fetched ? "next_delta[k]" : reads.delta());
    if (gradient_) source.line("tile_g[j] = {};", fetched ? "next_g[k]" : reads.wide("g"));
  });
  if (staged_)
    turns(T_ * quads(), quads(), "", [&] {
      for (const char* name : {"B", "C"})
        source.line("tile_{}[j] = {};", name,
                    fetched ? fmt::format("next_{}[k]", name) : reads.narrow(name));
    });
  source.line("workgroupBarrier();");
}

// ---- steps

void ScanWriter::read_step(Source& source, bool forward_only) const {
  source.line("let u = tile_u[i * {}u + channel];", CH_);
  source.line("let dl = tile_dl[i * {}u + channel];", CH_);
  if (gradient_ && !forward_only) source.line("let g = tile_g[i * {}u + channel];", CH_);
  for (const char* name : {"B", "C"}) {
    if (*name == 'C' && forward_only) continue;
    each_quad([&](std::int64_t w) {
      if (staged_) {
        source.line("let {0}_{1} = tile_{0}[i * {2}u + quad + {3}u];", name, w, quads(), w * Q_);
      } else {
        const std::string t = source.let("begin + i", "t");
        source.line(
            "let {0}_{1} = select(vec4<f32>(), read_{0}_4(b, min({2}, {3}u), n_{1}), {2} < end);",
            name, w, t, s_.L - 1);
      }
    });
  }
}

// a is the factor of the state in this step (zoh: less = a - 1), input is the term added to it.
void ScanWriter::discretise(Source& source, std::int64_t w) const {
  if (s_.zoh) {
    source.line("let less_{0} = less_than_1(dl * A_{0});", w);
    source.line("let weight_{0} = less_{0} * inverse_{0};", w);
    source.line("let input_{0} = weight_{0} * (u * B_{0});", w);
  } else {
    source.line("let a_{0} = exp(dl * A_{0});", w);
    source.line("let input_{0} = (dl * u) * B_{0};", w);
  }
}

std::string ScanWriter::advanced(std::int64_t w) const {
  return fmt::format(
      fmt::runtime(s_.zoh ? "h_{0} + (less_{0} * h_{0} + input_{0})" : "a_{0} * h_{0} + input_{0}"),
      w);
}

// ---- results

void ScanWriter::sum_states(Source& source, const char* name, const char* array,
                            const char* j) const {
  source.line("var {} = 0.0f;", name);
  source.open(fmt::format("for (var q = 0u; q < {}u; q++) {{", Q_));
  source.line("{0} += {1}[({2} / {3}u * {4}u + q) * {3}u + {2} % {3}u];", name, array, j, CH_, Q_);
  source.close();
}

void ScanWriter::store(Source& source, const std::string& address, std::int64_t part,
                       const std::string& value) const {
  store_guarded(source, k_.store, in_.guarded, moved(address, k_.store.place.offset + part), value);
}

void ScanWriter::store_quad(Source& source, const std::string& address, std::int64_t w,
                            std::int64_t part, const std::string& value) const {
  const std::string n = fmt::format("n_{}", w);
  for (int j = 0; j < 4; ++j) {
    if (ragged_) source.open(fmt::format("if ({} < {}u) {{", moved(n, j), s_.N));
    store(source, fmt::format("{} + {}", address, moved(n, j)), part,
          fmt::format("{}.{}", value, "xyzw"[j]));
    if (ragged_) source.close();
  }
}

Piece ScanWriter::fill(std::int64_t part, std::int64_t count, const ir::Load* operand) const {
  Source source = in_.source(" (nothing to scan)");
  if (operand) note(source, *operand), note(source, loads_[kD]);
  note_stores(source, {k_.store}, in_.guarded);
  const std::int64_t invocations = in_.least_invocations;
  source.line("let x = group * {}u + thread;", invocations);
  source.line("if (x >= {}u) {{ return; }}", count);
  std::string value = "0.0f";
  if (operand) {
    const std::string c = source.let(fmt::format("x % {}u", s_.E), "c");
    value = fmt::format("{} * {}", element(source, *operand, "x"), element(source, loads_[kD], c));
  }
  store(source, "x", part, value);
  return source.finish(invocations, ceil_div(count, invocations));
}

}  // namespace tensorgrad::wgsl
