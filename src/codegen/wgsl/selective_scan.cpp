// Kernels of kind `selective_scan`: h = a h + b B u along the sequence, and y = sum over states of
// C h, plus D u. The state before each chunk except the first is stored for the gradient.
#include <algorithm>

#include "codegen/wgsl/scan_writer.h"

namespace tensorgrad::wgsl {

namespace {

constexpr std::int64_t kSteps = 16;  // per tile

class Forward : public ScanWriter {
 public:
  Forward(const Emitting& in, const ir::SelectiveScanKernel& k) : ScanWriter(in, k, false) {
    T_ = std::clamp<std::int64_t>(s_.L, 1, kSteps);
    while (T_ > 1 && 4 * (tile_floats() + T_ * threads()) > in_.target.workgroup_bytes) T_ /= 2;
  }

  std::vector<Piece> run() const {
    if (s_.B * s_.L * s_.E == 0) return {};
    if (s_.N == 0) return {fill(0, s_.B * s_.L * s_.E, &loads_[kU])};
    return {walk()};
  }

 private:
  Piece walk() const {
    Source source = in_.source();
    begin(source);
    source.workgroup("sums", "f32", T_ * threads());
    source.line("let b = group / {}u;", blocks_);
    source.line("let first = group % {}u * {}u;", blocks_, CH_);
    place_thread(source);
    source.line("let skip = select(0.0f, read_D(0u, 0u, e), quad == 0u);");
    each_quad([&](std::int64_t w) { source.line("var h_{} = vec4<f32>();", w); });
    declare_tile(source);
    // Each iteration processes the tile that the previous one fetched.
    source.open(fmt::format("for (var ahead = 0u; ahead < {}u; ahead += {}u) {{", s_.L + T_, T_));
    source.line("let begin = ahead - {}u;", T_);
    source.line("let end = min(ahead, {}u);", s_.L);
    load_tile(source);
    fetch_tile(source, "ahead", u32_text(s_.L));
    source.open("if (ahead > 0u) {");
    const bool whole = s_.chunk % T_ == 0;  // chunks start at tile boundaries
    if (whole) keep_states(source, "begin");
    source.open(fmt::format("for (var i = 0u; i < {}u; i++) {{", T_));
    if (!whole) keep_states(source, "begin + i");
    read_step(source);
    source.line("var sum = skip * u;");
    each_quad([&](std::int64_t w) {
      discretise(source, w);
      source.line("h_{} = {};", w, advanced(w));
      source.line("sum += dot(C_{0}, h_{0});", w);
    });
    source.line("sums[(i * {}u + quad) * {}u + channel] = sum;", Q_, CH_);
    source.close();
    source.line("workgroupBarrier();");
    store_sums(source);
    source.close();
    source.close();
    return source.finish(threads(), s_.B * blocks_);
  }

  // Stores the states if a chunk begins at this step.
  void keep_states(Source& source, const char* step) const {
    if (s_.kept() == 0) return;
    source.line("let t = {};", step);
    source.open(fmt::format("if (t > 0u && t < end && t % {}u == 0u && first + channel < {}u) {{",
                            s_.chunk, s_.E));
    source.line("let before = ((b * {}u + t / {}u - 1u) * {}u + e) * {}u;", s_.kept(), s_.chunk,
                s_.E, s_.N);
    each_quad([&](std::int64_t w) {
      store_quad(source, "before", w, s_.states(), fmt::format("h_{}", w));
    });
    source.close();
  }

  void store_sums(Source& source) const {
    source.open(fmt::format("for (var j = thread; j < {}u; j += {}u) {{", T_ * CH_, threads()));
    source.line("let t = begin + j / {}u;", CH_);
    source.line("let c = first + j % {}u;", CH_);
    source.open(fmt::format("if (t < end && c < {}u) {{", s_.E));
    sum_states(source, "y", "sums", "j");
    store(source, fmt::format("(b * {}u + t) * {}u + c", s_.L, s_.E), 0, "y");
    source.close();
    source.close();
  }
};

}  // namespace

std::vector<Piece> emit_core(const Emitting& in, const ir::SelectiveScanKernel& k) {
  return Forward(in, k).run();
}

}  // namespace tensorgrad::wgsl
