// Kernels of kind `selective_scan_gradient`. G_t = C_t g_t + a_(t+1) G_(t+1) is the gradient of
// h_t. Chunks run from the last to the first: each runs forward from the state stored before the
// chunk, then backward. dB and dC are sums over all channels: each workgroup computes a part, and a
// second shader adds the parts in order.
#include <algorithm>

#include "codegen/wgsl/scan_writer.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

namespace {

constexpr std::int64_t kSteps = 16;  // per tile, at most
constexpr std::int64_t kGroups =
    512;  // workgroups, at most: more would only add parts of dB and dC
constexpr std::int64_t kMostScratch = 1 << 24;  // elements; limits the number of parts

class Gradient : public ScanWriter {
 public:
  Gradient(const Emitting& in, const ir::SelectiveScanGradientKernel& k) : ScanWriter(in, k, true) {
    if (is_degenerate()) return;
    choose_parts();
    choose_steps();
  }

  std::vector<Piece> run() const {
    if (is_degenerate()) return degenerate();
    if (P_ == 1) return {walk_back()};
    return {walk_back(), join()};
  }

 private:
  bool is_degenerate() const { return s_.B * s_.L * s_.E * s_.N == 0; }

  // The remaining results: du = D g, and zeros.
  std::vector<Piece> degenerate() const {
    std::vector<Piece> out;
    const std::int64_t wide = s_.B * s_.L * s_.E, narrow = s_.B * s_.L * s_.N;
    if (wide > 0) out.push_back(fill(0, wide, &loads_[kG]));
    if (wide > 0) out.push_back(fill(s_.ddelta(), wide, nullptr));
    if (narrow > 0) out.push_back(fill(s_.dB(), s_.dA() - s_.dB(), nullptr));
    if (s_.B * s_.E * s_.N > 0) out.push_back(fill(s_.dA(), s_.B * s_.E * s_.N, nullptr));
    return out;
  }

  // Floats of workgroup memory for the terms of R steps. If a workgroup has one channel, there are
  // no sums over channels.
  std::int64_t sum_floats() const { return R_ * threads() * (2 + (CH_ > 1 ? 8 * W_ : 0)); }
  std::int64_t part_elements() const { return s_.L * s_.N; }
  std::int64_t scratch_elements() const { return P_ == 1 ? 0 : s_.B * P_ * 2 * part_elements(); }

  // A workgroup takes several blocks of channels if there would be too many parts.
  void choose_parts() {
    P_ = std::clamp<std::int64_t>(ceil_div(kGroups, s_.B), 1, blocks_);
    while (P_ > 1 && s_.B * P_ * 2 * part_elements() > kMostScratch) P_ = ceil_div(P_, 2);
    P_ = ceil_div(blocks_, ceil_div(blocks_, P_));
  }

  // Four steps per round, but two if there are many workgroups, so that each uses less memory (on
  // an H200, B = 8, L = 256, E = 1024, N = 16: 131 us instead of 168).
  void choose_steps() {
    const std::int64_t chunk = std::min(s_.chunk, s_.L), most = s_.B * P_ < kGroups ? 4 : 2;
    for (std::int64_t tile = std::min(kSteps, chunk); tile > 1; tile /= 2)
      for (R_ = most; R_ > 1; R_ /= 2) {
        T_ = ceil_div(tile, R_) * R_;
        if (4 * (tile_floats() + sum_floats()) <= in_.target.workgroup_bytes) return;
      }
    R_ = T_ = 1;
  }

  Piece walk_back() const {
    Source source = in_.source(P_ == 1 ? "" : " (parts)");
    if (P_ > 1) source.note(Region::scratch, DType::f32, true);
    begin(source);
    source.workgroup("tile_D", "f32", CH_);
    for (const char* name : {"sums_u", "sums_dl"}) source.workgroup(name, "f32", R_ * threads());
    if (CH_ > 1) source.workgroup("sums_n", "vec4<f32>", 2 * R_ * threads() * W_);
    source.line("let b = group / {}u;", P_);
    source.line("let part = group % {}u;", P_);
    source.open(fmt::format("for (var block = part; block < {}u; block += {}u) {{", blocks_, P_));
    source.line("let first = block * {}u;", CH_);
    place_thread(source);
    source.line(
        "if (thread < {}u) {{ tile_D[thread] = read_D(0u, 0u, min(first + thread, {}u)); }}", CH_,
        s_.E - 1);
    const std::int64_t tiles = ceil_div(std::min(s_.chunk, s_.L), T_);  // per chunk
    declare_tile(source);
    each_quad([&](std::int64_t w) {
      source.line("var next_h_{} = vec4<f32>();", w);
      source.line("var later_{} = vec4<f32>();", w);  // a_(t+1) G_(t+1)
      source.line("var dA_{} = vec4<f32>();", w);
      source.line("var kept_{}: array<vec4<f32>, {}>;", w,
                  tiles * T_);  // states before each step of the chunk
    });
    // Each iteration works on chunk c. It also reads the state before chunk c - 1, and the tile of
    // that chunk if there is only one.
    source.open(fmt::format("for (var c = {}u; c < {}u; c--) {{", s_.chunks(), s_.chunks() + 1));
    walk_chunk(source, tiles == 1);
    source.close();
    source.open(fmt::format("if (first + channel < {}u) {{", s_.E));
    source.line("let place = (b * {}u + e) * {}u;", s_.E, s_.N);
    each_quad(
        [&](std::int64_t w) { store_quad(source, "place", w, s_.dA(), fmt::format("dA_{}", w)); });
    source.close();
    source.close();
    return source.finish(threads(), s_.B * P_, scratch_elements());
  }

  void walk_chunk(Source& source, bool one_tile) const {
    source.line("let start = c * {}u;", s_.chunk);
    source.line("let stop = min(start + {}u, {}u);", s_.chunk, s_.L);
    each_quad([&](std::int64_t w) {
      source.line("var h_{0} = next_h_{0};", w);
      source.line("var dA_of_chunk_{} = vec4<f32>();", w);
    });
    if (one_tile) {
      source.line("let begin = start;");
      source.line("let end = stop;");
      load_tile(source);
    }
    fetch_chunk(source, one_tile);
    source.open(fmt::format("if (c < {}u) {{", s_.chunks()));
    const auto each_tile = [&](bool backward, const auto& write) {
      if (one_tile) return write();
      source.open(fmt::format("for (var tile = 0u; tile < (stop - start + {}u) / {}u; tile++) {{",
                              T_ - 1, T_));
      const std::string tile =
          backward ? fmt::format("((stop - start - 1u) / {}u - tile)", T_) : "tile";
      source.line("let begin = start + {} * {}u;", tile, T_);
      source.line("let end = min(begin + {}u, stop);", T_);
      fetch_tile(source, "begin", "end");
      load_tile(source);
      write();
      if (!backward) source.line("workgroupBarrier();");
      source.close();
    };
    each_tile(false, [&] { steps_forward(source); });
    each_tile(true, [&] {
      source.open(fmt::format("for (var round = (end - begin + {}u) / {}u; round > 0u; round--) {{",
                              R_ - 1, R_));
      source.line("let behind = (round - 1u) * {}u;", R_);
      steps_back(source);
      source.line("workgroupBarrier();");
      add_up(source);
      source.line("workgroupBarrier();");
      source.close();
    });
    each_quad([&](std::int64_t w) { source.line("dA_{0} += dA_of_chunk_{0};", w); });
    source.close();
  }

  // Fetches chunk c - 1, if it exists.
  void fetch_chunk(Source& source, bool tile) const {
    source.line("let chunk = max(c, 1u) - 1u;");
    if (s_.kept() > 0) {
      source.line("let before = b * {}u + max(chunk, 1u) - 1u;", s_.kept());
      each_quad([&](std::int64_t w) {
        source.line("next_h_{0} = select(vec4<f32>(), read_state_4(before, e, n_{0}), chunk > 0u);",
                    w);
      });
    }
    if (!tile) return;
    source.line("let ahead = chunk * {}u;", s_.chunk);
    source.line("let limit = min(ahead + {}u, {}u);", s_.chunk, s_.L);
    fetch_tile(source, "ahead", "limit");
  }

  void steps_forward(Source& source) const {
    source.open(fmt::format("for (var i = 0u; i < {}u; i++) {{", T_));
    read_step(source, true);
    each_quad([&](std::int64_t w) {
      discretise(source, w);
      source.line("kept_{0}[begin - start + i] = h_{0};", w);
      source.line("h_{} = {};", w, advanced(w));
    });
    source.close();
  }

  // A round: steps behind .. behind + R - 1 of the tile, from the last to the first, and the terms
  // that they contribute to the sums.
  void steps_back(Source& source) const {
    source.open(fmt::format("for (var r = {}u; r > 0u; r--) {{", R_));
    source.line("let i = behind + r - 1u;");
    read_step(source);
    source.line("var to_u = 0.0f;");
    source.line("var to_dl = 0.0f;");
    each_quad([&](std::int64_t w) { step_back(source, w); });
    source.line("sums_u[((r - 1u) * {}u + quad) * {}u + channel] = to_u;", Q_, CH_);
    source.line("sums_dl[((r - 1u) * {}u + quad) * {}u + channel] = to_dl;", Q_, CH_);
    source.close();
  }

  void step_back(Source& source, std::int64_t w) const {
    source.line("let h_{0} = kept_{0}[begin - start + i];", w);
    discretise(source, w);
    source.line("let after_{} = {};", w, advanced(w));
    source.line("let G_{0} = later_{0} + g * C_{0};", w);
    if (s_.zoh) {
      source.line("later_{0} = G_{0} + less_{0} * G_{0};", w);
      source.line("let to_B_{0} = (u * G_{0}) * weight_{0};", w);
      source.line("to_u += dot(G_{0} * weight_{0}, B_{0});", w);
      source.line("to_dl += dot(later_{0}, A_{0} * h_{0} + u * B_{0});", w);
      // The difference cancels where dl A is small, but readers of dA multiply it by A.
      source.line("let bend_{0} = (dl + dl * less_{0} - weight_{0}) * inverse_{0};", w);
      source.line("dA_of_chunk_{0} += dl * (later_{0} * h_{0}) + (u * G_{0}) * B_{0} * bend_{0};",
                  w);
    } else {
      source.line("later_{0} = a_{0} * G_{0};", w);
      source.line("let to_B_{0} = (dl * u) * G_{0};", w);
      source.line("let decayed_{0} = later_{0} * h_{0};", w);
      source.line("to_u += dot(G_{0}, B_{0});", w);
      source.line("to_dl += dot(A_{0}, decayed_{0});", w);
      source.line("dA_of_chunk_{0} += dl * decayed_{0};", w);
    }
    if (CH_ > 1) {
      source.line("let slot_{} = ((r - 1u) * {}u + channel) * {}u + quad + {}u;", w, CH_, quads(),
                  w * Q_);
      source.line("sums_n[slot_{0}] = to_B_{0};", w);
      source.line("sums_n[slot_{0} + {1}u] = g * after_{0};", w, R_ * CH_ * quads());
    } else {
      source.open("if (begin + i < end) {");
      source.line("let t = begin + i;");
      add_to_part(source, "0u", fmt::format("n_{}", w), fmt::format("to_B_{}", w));
      add_to_part(source, "1u", fmt::format("n_{}", w), fmt::format("g * after_{}", w));
      source.close();
    }
  }

  // The sums of a round: dB and dC over channels, du and ddelta over states.
  void add_up(Source& source) const {
    const std::int64_t narrow = CH_ > 1 ? 2 * R_ * quads() : 0;  // vec4 sums for dB, then for dC
    source.open(
        fmt::format("for (var j = thread; j < {}u; j += {}u) {{", narrow + R_ * CH_, threads()));
    if (CH_ > 1) {
      source.open(fmt::format("if (j < {}u) {{", narrow));
      source.line("let t = begin + behind + j / {}u % {}u;", quads(), R_);
      source.open("if (t < end) {");
      source.line("let slot = j / {0}u * {1}u + j % {0}u;", quads(), CH_ * quads());
      source.line("var sum = vec4<f32>();");
      source.line("for (var x = 0u; x < {}u; x++) {{ sum += sums_n[slot + x * {}u]; }}", CH_,
                  quads());
      source.line("let n = 4u * (j % {}u);", quads());
      add_to_part(source, fmt::format("j / {}u", R_ * quads()), "n", "sum");
      source.close();
      source.close();
      source.open(fmt::format("if (j >= {}u) {{", narrow));
    }
    source.line("let x = j - {}u;", narrow);
    source.line("let t = begin + behind + x / {}u;", CH_);
    source.line("let c = first + x % {}u;", CH_);
    source.open(fmt::format("if (t < end && c < {}u) {{", s_.E));
    sum_states(source, "to_u", "sums_u", "x");
    sum_states(source, "to_dl", "sums_dl", "x");
    source.line("let at = behind * {}u + x;", CH_);
    source.line("let dl = tile_dl[at];");
    source.line("let du = tile_D[x % {}u] * tile_g[at] + {}to_u;", CH_, s_.zoh ? "" : "dl * ");
    source.line("let ddl = to_dl{};", s_.zoh ? "" : " + tile_u[at] * to_u");
    source.line("let place = (b * {}u + t) * {}u + c;", s_.L, s_.E);
    store(source, "place", 0, "du");
    // The derivative of softplus at delta is 1 - exp(-dl).
    store(source, "place", s_.ddelta(), "ddl * -less_than_1(vec4<f32>(-dl)).x");
    source.close();
    if (CH_ > 1) source.close();
    source.close();
  }

  // Adds four values along n to step t of dB (which = 0) or dC (1): in the result if there is one
  // part, else in scratch. The same thread does so for each block of channels.
  void add_to_part(Source& source, const std::string& which, const std::string& n,
                   const std::string& value) const {
    const bool whole = P_ == 1;
    const ir::Store& result = k_.store;
    const Region where = whole ? region(result.place.space) : Region::scratch;
    source.open("{");
    source.line("let which = {};", which);
    source.line("var value = {};", value);
    if (whole)
      source.line("let place = {}u + which * {}u + (b * {}u + t) * {}u + {};",
                  result.place.offset + s_.dB(), s_.dC() - s_.dB(), s_.L, s_.N, n);
    else
      source.line("let place = ((group * 2u + which) * {}u + t) * {}u + {};", s_.L, s_.N, n);
    for (int j = 0; j < 4; ++j) {
      const std::string at = moved("place", j), one = fmt::format("value.{}", "xyzw"[j]);
      if (ragged_) source.open(fmt::format("if ({} < {}u) {{", moved(n, j), s_.N));
      if (blocks_ > P_)
        source.line("if (block != part) {{ {} += {}; }}", one,
                    source.element(where, at, DType::f32));
      if (whole)
        store_guarded(source, result, in_.guarded, at, one);
      else
        source.store_element(where, at, DType::f32, one);
      if (ragged_) source.close();
    }
    source.close();
  }

  Piece join() const {
    Source source = in_.source(" (whole)");
    note_stores(source, {k_.store}, in_.guarded);
    source.note(Region::scratch, DType::f32, false);
    const std::int64_t count = s_.B * part_elements(), invocations = in_.least_invocations;
    source.line("let x = group * {}u + thread;", invocations);
    source.line("if (x >= {}u) {{ return; }}", 2 * count);
    source.line("let which = x / {}u;", count);
    source.line("let y = x % {}u;", count);
    source.line("let slot = (y / {0}u * {1}u + which) * {0}u + y % {0}u;", part_elements(), 2 * P_);
    source.line("var sum = 0.0f;");
    source.line("for (var part = 0u; part < {}u; part++) {{ sum += {}; }}", P_,
                source.element(Region::scratch,
                               fmt::format("slot + part * {}u", 2 * part_elements()), DType::f32));
    store(source, fmt::format("y + which * {}u", s_.dC() - s_.dB()), s_.dB(), "sum");
    return source.finish(invocations, ceil_div(2 * count, invocations), scratch_elements());
  }

  std::int64_t P_ = 1;  // parts of dB and dC per sequence
  std::int64_t R_ = 1;  // steps per round; divides T
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::SelectiveScanGradientKernel& k) {
  return Gradient(in, k).run();
}

}  // namespace tensorgrad::wgsl
