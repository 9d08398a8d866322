#include "codegen/wgsl/program.h"

#include <cmath>

#include "codegen/wgsl/functions.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::wgsl {

using ir::Instr;
using ir::Load;
using ir::Reg;
using ir::ScalarOp;

void ProgramWriter::note(Source& source, const std::vector<Load>& loads,
                         const ir::ScalarProgram& program) {
  for (const Instr& in : program.code) {
    if (in.op == ScalarOp::load || in.op == ScalarOp::gather) {
      const Load& load = loads[usize(in.slot)];
      if (load.source == Load::Source::memory)
        source.note(region(load.place.space), load.dtype, false);
    }
    if (in.op == ScalarOp::gather || in.op == ScalarOp::check_index)
      source.note(Region::faults, DType::i32, true);
  }
}

void ProgramWriter::write(const Point& point, const std::function<bool(std::size_t)>& wanted) {
  for (std::size_t i = 0; i < program_.code.size(); ++i) {
    if (!values_[i].empty() || !wanted(i)) continue;
    const Instr& in = program_.code[i];
    const int width = in.line ? 1 : point.width;
    switch (in.op) {
      case ScalarOp::constant:
        values_[i] = literal(source_, in.value, in.dtype);
        break;
      case ScalarOp::load:
        values_[i] = load(in, point);
        break;
      case ScalarOp::gather:
        values_[i] = gather(in, point);
        break;
      case ScalarOp::spread:
        values_[i] = width == 1 ? value(in.a) : source_.let(as(in.a, width), "v");
        break;
      case ScalarOp::check_index:
        values_[i] = check(as(in.a, width), in, width);
        break;
      case ScalarOp::reduce:
      case ScalarOp::accumulator:
        internal_error("{} is given from outside", ir::name(in.op));
      default:
        values_[i] = source_.let(compute(in, width), "v");
    }
  }
}

void ProgramWriter::forget_elements() {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!program_.code[i].line && program_.code[i].op != ScalarOp::constant) values_[i].clear();
}

std::string ProgramWriter::as(Reg r, int width) const {
  const Instr& in = program_.code[usize(r)];
  if (width == 1) return value(r);
  if (in.op == ScalarOp::constant || in.line)
    return fmt::format("{}({})", type_name(in.dtype, width), value(r));
  return value(r);
}

std::string read(Source& source, const Load& load, const Address& address) {
  std::string out;
  switch (load.source) {
    case Load::Source::memory:
      out = source.element(region(load.place.space), address.text, load.dtype);
      break;
    case Load::Source::iota:
      out = fmt::format("i32({})", address.text);
      break;
    case Load::Source::constant:
      out = literal(source, load.value, load.dtype);
      break;
  }
  for (auto guard = address.guards.rbegin(); guard != address.guards.rend(); ++guard)
    out = fmt::format("select({}, {}, {})", literal(source, guard->fill, load.dtype), out,
                      guard->holds);
  return out;
}

std::string ProgramWriter::load(const Instr& in, const Point& point) {
  const Load& load = loads_[usize(in.slot)];
  const bool in_memory = load.source == Load::Source::memory;
  const std::int64_t offset = in_memory ? load.place.offset : 0;
  if (in.line)
    return source_.let(read(source_, load, address(source_, load.map, point.line, offset)), "v");
  if (point.is_matrix)
    return source_.let(
        read(source_, load,
             address(source_, load.map, point.batch, point.row, point.column, offset)),
        "v");
  if (point.width == 1)
    return source_.let(read(source_, load, address(source_, load.map, point.linear, offset)), "v");
  if (const auto quad = quad_map(load.map, offset); quad && in_memory) {
    const std::string at = quad_address(source_, *quad, point.linear);
    if (quad->step == 1)
      return source_.let(source_.quad(region(load.place.space), at, load.dtype), "v");
    return source_.let(fmt::format("{}({})", type_name(load.dtype, 4),
                                   source_.element(region(load.place.space), at, load.dtype)),
                       "v");
  }
  std::vector<std::string> parts;
  for (int j = 0; j < 4; ++j) {
    const std::string linear = source_.let(fmt::format("4u * {} + {}u", point.linear, j), "e");
    parts.push_back(
        source_.let(read(source_, load, address(source_, load.map, linear, offset)), "v"));
  }
  return source_.let(fmt::format("{}({})", type_name(load.dtype, 4), fmt::join(parts, ", ")), "v");
}

// The id if it is in range, else 0; records a bad id.
std::string ProgramWriter::check(const std::string& id, const Instr& in, int width) {
  source_.declare_fault_note();
  source_.declare(
      "fn checked(id: i32, extent: i32, node: i32) -> i32 {\n"
      "  if (id >= 0 && id < extent) { return id; }\n"
      "  note_fault(node, id);\n"
      "  return 0;\n}");
  const std::int32_t node = source_.fault_code(in.node);
  if (width == 1) return source_.let(fmt::format("checked({}, {}, {})", id, in.extent, node), "v");
  std::vector<std::string> parts;
  for (const char c : {'x', 'y', 'z', 'w'})
    parts.push_back(fmt::format("checked({}.{}, {}, {})", id, c, in.extent, node));
  return source_.let(fmt::format("vec4<i32>({})", fmt::join(parts, ", ")), "v");
}

std::string ProgramWriter::gather(const Instr& in, const Point& point) {
  const Load& load = loads_[usize(in.slot)];
  const std::string ids = check(as(in.a, point.width), in, point.width);
  const auto moved = [&](const std::string& at, const std::string& id, std::int64_t stride) {
    return stride >= 0 ? fmt::format("{} + u32({}) * {}u", at, id, stride)
                       : fmt::format("{} - u32({}) * {}u", at, id, -stride);
  };
  if (point.width == 1) {
    const Address at = address(source_, load.map, point.linear, load.place.offset);
    return source_.let(
        source_.element(region(load.place.space), source_.let(moved(at.text, ids, in.stride), "i"),
                        load.dtype),
        "v");
  }
  // One row for all four: its elements are contiguous, and the ids are equal.
  const auto quad = quad_map(load.map, load.place.offset);
  const auto& id_instr = program_.code[usize(in.a)];
  bool same_id = false;
  if (id_instr.op == ScalarOp::load) {
    const auto id_map =
        quad_map(loads_[usize(id_instr.slot)].map, loads_[usize(id_instr.slot)].place.offset);
    same_id = id_map && id_map->step == 0;
  }
  if (quad && quad->step == 1 && same_id && in.stride % 4 == 0)
    return source_.let(source_.quad(region(load.place.space),
                                    source_.let(moved(quad_address(source_, *quad, point.linear),
                                                      ids + ".x", in.stride / 4),
                                                "i"),
                                    load.dtype),
                       "v");
  std::vector<std::string> parts;
  for (int j = 0; j < 4; ++j) {
    const std::string linear = source_.let(fmt::format("4u * {} + {}u", point.linear, j), "e");
    const Address at = address(source_, load.map, linear, load.place.offset);
    parts.push_back(source_.let(
        source_.element(
            region(load.place.space),
            source_.let(moved(at.text, fmt::format("{}.{}", ids, "xyzw"[j]), in.stride), "i"),
            load.dtype),
        "v"));
  }
  return source_.let(fmt::format("{}({})", type_name(load.dtype, 4), fmt::join(parts, ", ")), "v");
}

std::string ProgramWriter::compute(const Instr& in, int width) {
  const std::string a = in.a >= 0 ? as(in.a, width) : "", b = in.b >= 0 ? as(in.b, width) : "",
                    c = in.c >= 0 ? as(in.c, width) : "";
  const bool real = in.dtype == DType::f32;
  const DType from = in.a >= 0 ? program_.dtype(in.a) : DType::f32;
  const auto call = [&](const char* function, auto... arguments) {
    const std::vector<std::string> list{arguments...};
    return fmt::format("{}({})", use_function(source_, function, width), fmt::join(list, ", "));
  };
  switch (in.op) {
    case ScalarOp::add:
      return fmt::format("{} + {}", a, b);
    case ScalarOp::sub:
      return fmt::format("{} - {}", a, b);
    case ScalarOp::mul:
      return fmt::format("{} * {}", a, b);
    case ScalarOp::div:
      return fmt::format("{} / {}", a, b);
    case ScalarOp::minimum:
      return real ? call("minimum", a, b) : fmt::format("min({}, {})", a, b);
    case ScalarOp::maximum:
      return real ? call("maximum", a, b) : fmt::format("max({}, {})", a, b);
    case ScalarOp::pow:
      return call("power", a, b);
    case ScalarOp::neg:
      return fmt::format("-{}", a);
    case ScalarOp::abs:
      return fmt::format("abs({})", a);
    case ScalarOp::sign:
      return real ? call("sign_of", a) : fmt::format("sign({})", a);
    case ScalarOp::sqrt:
      return fmt::format("sqrt({})", a);
    case ScalarOp::exp:
      return fmt::format("exp({})", a);
    case ScalarOp::expm1:
      return call("exp_minus_1", a);
    case ScalarOp::log:
      return fmt::format("log({})", a);
    case ScalarOp::log1p:
      return call("log_1_plus", a);
    case ScalarOp::sin:
      return call("sine", a);
    case ScalarOp::cos:
      return call("cosine", a);
    case ScalarOp::tanh:
      return call("hyperbolic_tangent", a);
    case ScalarOp::erf:
      return call("error_function", a);
    case ScalarOp::normal_cdf:
      return call("normal_cdf", a);
    case ScalarOp::less:
      return from == DType::boolean ? fmt::format("!{} & {}", a, b) : fmt::format("{} < {}", a, b);
    case ScalarOp::less_equal:
      return from == DType::boolean ? fmt::format("!{} | {}", a, b) : fmt::format("{} <= {}", a, b);
    case ScalarOp::equal:
      return fmt::format("{} == {}", a, b);
    case ScalarOp::logical_and:
      return fmt::format("{} & {}", a, b);
    case ScalarOp::logical_or:
      return fmt::format("{} | {}", a, b);
    case ScalarOp::logical_not:
      return fmt::format("!{}", a);
    case ScalarOp::select:
      return fmt::format("select({}, {}, {})", c, b, a);
    case ScalarOp::to_f32:
      return fmt::format("{}({})", type_name(DType::f32, width), a);
    case ScalarOp::to_i32:
      return from == DType::f32 ? call("to_integer", a)
                                : fmt::format("{}({})", type_name(DType::i32, width), a);
    case ScalarOp::to_bool:
      return from == DType::f32 ? call("not_zero", a)
                                : fmt::format("{} != {}", a, number(0, from, width));
    case ScalarOp::is_finite:
      return call("finite", a);
    case ScalarOp::random:
      return call("uniform_number", a, b, u32_text(in.site), c);
    default:
      internal_error("no shader text for {}", ir::name(in.op));
  }
}

std::string combined(Source& source, ir::Combine combine, DType dtype, int width,
                     const std::string& a, const std::string& b) {
  const bool real = dtype == DType::f32;
  if (dtype == DType::boolean)
    return fmt::format("{} {} {}", a,
                       combine == ir::Combine::min || combine == ir::Combine::mul ? "&" : "|", b);
  switch (combine) {
    case ir::Combine::add:
      return fmt::format("{} + {}", a, b);
    case ir::Combine::mul:
      return fmt::format("{} * {}", a, b);
    case ir::Combine::max:
      return fmt::format("{}({}, {})", real ? use_function(source, "maximum", width) : "max", a, b);
    case ir::Combine::min:
      return fmt::format("{}({}, {})", real ? use_function(source, "minimum", width) : "min", a, b);
    case ir::Combine::none:
      break;
  }
  return a;
}

std::string combined_quad(Source& source, ir::Combine combine, DType dtype,
                          const std::string& quad) {
  const auto two = [&](const std::string& a, const std::string& b) {
    return "(" + combined(source, combine, dtype, 1, a, b) + ")";
  };
  return two(two(quad + ".x", quad + ".y"), two(quad + ".z", quad + ".w"));
}

}  // namespace tensorgrad::wgsl
