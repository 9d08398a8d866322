#include "codegen/wgsl/attention_operand.h"

#include <algorithm>

namespace tensorgrad::wgsl {

using ir::AttentionShape;

namespace {

AttentionOperand operand(const char* name, int slot, std::int64_t heads, std::int64_t positions,
                         std::int64_t size) {
  AttentionOperand out{name, heads, positions, size};
  out.program.load(slot, DType::f32);
  return out;
}

}  // namespace

AttentionOperands::AttentionOperands(const AttentionInput& in) {
  const AttentionShape& s = in.core.shape;
  q = operand("q", 0, s.B * s.H, s.T, s.D);
  k = operand("k", 1, s.B * s.G, s.S, s.D);
  v = operand("v", 2, s.B * s.G, s.S, s.V);
  if (!in.gradient) return;
  out = operand("o", 3, s.B * s.H, s.T, s.V);
  g = operand("g", 5, s.B * s.H, s.T, s.V);
}

void AttentionOperand::declare(Source& source, const AttentionInput& in) const {
  const Side side{in.loads, program, name, positions, size};
  side.declare(source);
  source.function(fmt::format("fn {}_quad(head: u32, t: u32, d: u32) -> vec4<f32>", name), [&] {
    const AttentionShape& s = in.core.shape;
    // In these cases all columns that are read exist.
    const bool whole = (size == 32 || size == 64 || size == 128) && std::max(s.D, s.V) <= 128;
    if (side.quad_axis() == 1) {
      if (whole)
        source.line("return {}_4(head, t, d);", name);
      else
        source.line("return select({0}_4(head, t, min(d, {1}u)), vec4<f32>(), d >= {2}u);", name,
                    size - 4, size);
      return;
    }
    source.line("let at = vec4<u32>(d, d + 1u, d + 2u, d + 3u);");
    source.line("let to = min(at, vec4<u32>({}u));", size - 1);
    source.line(
        "let out = vec4<f32>({0}(head, t, to.x), {0}(head, t, to.y), {0}(head, t, to.z), {0}(head, "
        "t, to.w));",
        name);
    source.line("return select(out, vec4<f32>(), at >= vec4<u32>({}u));", size);
  });
}

void find_start(Source& source, const AttentionInput& in, bool uniform) {
  const AttentionShape& s = in.core.shape;
  if (!s.cached) {
    source.line("let start = {};", s.S - s.T);
    return;
  }
  const ir::Load& load = in.loads.back();
  // Clamped, so that sums with it do not overflow.
  const std::string value = fmt::format(
      "clamp({}, {}, {})", read(source, load, address(source, load.map, "0u", load.place.offset)),
      -s.T, s.S);
  if (!uniform) {
    source.line("let start = {};", value);
    return;
  }
  source.workgroup("start_of", "i32", 1);
  source.line("if (thread == 0u) {{ start_of[0] = {}; }}", value);
  source.line("let start = workgroupUniformLoad(&start_of[0]);");
}

std::string key_head(const AttentionShape& shape, const std::string& head) {
  if (shape.H == shape.G) return head;
  return fmt::format("({0} / {1}u * {2}u + {0} % {1}u / {3}u)", head, shape.H, shape.G,
                     shape.H / shape.G);
}

std::string log_sum(Source& source, const AttentionInput& in, const std::string& head,
                    const std::string& t) {
  const ir::Load& load = in.loads[4];
  const std::string at = source.let(fmt::format("{} * {}u + {}", head, in.core.shape.T, t), "at");
  return read(source, load, address(source, load.map, at, load.place.offset));
}

void store_columns(Source& source, const ir::Store& store, std::int64_t size, const std::string& at,
                   const std::string& column, const std::string& value) {
  if (size % 4 == 0) {
    source.store_quad(region(store.place.space), fmt::format("({} + {}) >> 2u", at, column),
                      DType::f32, value);
    return;
  }
  const std::string quad = source.let(value, "value");
  for (int n = 0; n < 4; ++n) {
    source.open(fmt::format("if ({} + {}u < {}u) {{", column, n, size));
    source.store_element(region(store.place.space), fmt::format("{} + {} + {}u", at, column, n),
                         DType::f32, fmt::format("{}.{}", quad, "xyzw"[n]));
    source.close();
  }
}

std::string packed_row(const ir::Store& store, const ir::PackedPart& part, std::int64_t heads,
                       std::int64_t positions, std::int64_t size, const std::string& head,
                       const std::string& t) {
  return fmt::format("{}u + (({} / {}u) * {}u + {}) * {}u + ({} % {}u) * {}u",
                     store.place.offset + part.offset, head, heads, positions, t, part.row, head,
                     heads, size);
}

}  // namespace tensorgrad::wgsl
