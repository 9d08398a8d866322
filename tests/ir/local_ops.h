// A few primitives with simple type rules, so that the tests of the Graph do not depend on the ops
// of the library; and probes, one op without operands per kind of attributes.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "ir/primitive.h"
#include "support/fail.h"

namespace tensorgrad::ir::local {

using Types = std::span<const Type>;

inline void check_axis(int axis, const Type& type) {
  if (axis < 0 || axis >= type.shape.rank())
    break_rule("", "axis {} does not exist: x is {}", axis, type.text());
}

inline Type leaf_type(Types, const Attrs& attrs) {
  const auto& a = std::get<LeafAttrs>(attrs);
  return {a.dtype, a.shape};
}
inline Type constant_type(Types, const Attrs& attrs) {
  return {std::get<ConstantAttrs>(attrs).dtype, {}};
}
inline Type same_type(Types in, const Attrs&) {
  for (const Type& type : in)
    if (type != in[0])
      break_rule("broadcast_to?", "types differ: {} and {}", in[0].text(), type.text());
  return in[0];
}
inline Type matmul_type(Types in, const Attrs&) {
  const Shape &x = in[0].shape, &y = in[1].shape;
  if (x.rank() != 2 || y.rank() != 2 || x[1] != y[0])
    break_rule("swap_axes?", "inner sizes differ: {} and {}", in[0].text(), in[1].text());
  return {in[0].dtype, {x[0], y[1]}};
}
inline Type reduce_type(Types in, const Attrs& attrs) {
  const auto& axes = std::get<AxesAttrs>(attrs).axes;
  Type out{in[0].dtype, {}};
  int last = -1;
  for (const int axis : axes) {
    check_axis(axis, in[0]);
    if (axis <= last) break_rule("", "axes are ascending: {}", fmt::join(axes, ","));
    last = axis;
  }
  for (int d = 0; d < in[0].shape.rank(); ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) out.shape.push_back(in[0].shape[d]);
  return out;
}
inline Type narrow_type(Types in, const Attrs& attrs) {
  const auto& a = std::get<NarrowAttrs>(attrs);
  check_axis(a.axis, in[0]);
  Type out = in[0];
  if (a.start < 0 || a.length < 0 || a.start + a.length > out.shape[a.axis])
    break_rule("", "{} .. {} lies outside {}", a.start, a.start + a.length, in[0].text());
  out.shape[a.axis] = a.length;
  return out;
}
// Deliberately careless: negative padding may give a negative size.
inline Type pad_type(Types in, const Attrs& attrs) {
  const auto& a = std::get<PadAttrs>(attrs);
  check_axis(a.axis, in[0]);
  Type out = in[0];
  out.shape[a.axis] += a.before + a.after;
  return out;
}
// Calls Shape without checks of its own, as a careless rule would.
inline Type drop_axis_type(Types in, const Attrs& attrs) {
  Type out = in[0];
  out.shape.erase(std::get<AxisAttrs>(attrs).axis);
  return out;
}
inline Type outer_type(Types in, const Attrs&) {
  Type out = in[0];
  for (const std::int64_t size : in[1].shape) out.shape.push_back(size);
  return out;
}
inline Type scalar_type(Types, const Attrs&) { return {}; }

template <class A>
constexpr Primitive make(std::string_view name, Core core, int arity,
                         Type (*type)(Types, const Attrs&)) {
  return {.name = name, .core = core, .arity = arity, .attrs = attrs_index<A>(), .type = type};
}

inline constexpr Primitive kInput = make<LeafAttrs>("input", Core::input, 0, leaf_type);
inline constexpr Primitive kParameter = make<LeafAttrs>("parameter", Core::parameter, 0, leaf_type);
inline constexpr Primitive kState = make<LeafAttrs>("state", Core::state, 0, leaf_type);
inline constexpr Primitive kConstant =
    make<ConstantAttrs>("constant", Core::constant, 0, constant_type);
inline constexpr Primitive kAdd = make<NoAttrs>("add", Core::elementwise, 2, same_type);
inline constexpr Primitive kNeg = make<NoAttrs>("neg", Core::elementwise, 1, same_type);
inline constexpr Primitive kSumAll = make<NoAttrs>("sum_all", Core::concat, -1, same_type);
inline constexpr Primitive kMatmul = make<NoAttrs>("matmul", Core::matmul, 2, matmul_type);
inline constexpr Primitive kReduceSum = make<AxesAttrs>("reduce_sum", Core::reduce, 1, reduce_type);
inline constexpr Primitive kNarrow = make<NarrowAttrs>("narrow", Core::view, 1, narrow_type);
inline constexpr Primitive kPad = make<PadAttrs>("pad", Core::view, 1, pad_type);
inline constexpr Primitive kDropAxis = make<AxisAttrs>("drop_axis", Core::view, 1, drop_axis_type);
inline constexpr Primitive kOuter = make<NoAttrs>("outer", Core::elementwise, 2, outer_type);

inline constexpr const Primitive* kOps[] = {&kInput, &kParameter, &kState,  &kConstant,  &kAdd,
                                            &kNeg,   &kSumAll,    &kMatmul, &kReduceSum, &kNarrow,
                                            &kPad,   &kDropAxis,  &kOuter};

inline constexpr std::size_t kAttrsKinds = std::variant_size_v<Attrs>;
inline constexpr std::array<std::string_view, 26> kProbeNames = {
    "probe_a", "probe_b", "probe_c", "probe_d", "probe_e", "probe_f", "probe_g",
    "probe_h", "probe_i", "probe_j", "probe_k", "probe_l", "probe_m", "probe_n",
    "probe_o", "probe_p", "probe_q", "probe_r", "probe_s", "probe_t", "probe_u",
    "probe_v", "probe_w", "probe_x", "probe_y", "probe_z"};
inline constexpr auto kProbes = [] {
  std::array<Primitive, kAttrsKinds> probes{};
  for (std::size_t kind = 0; kind < kAttrsKinds; ++kind) {
    probes[kind].name = kProbeNames[kind];
    probes[kind].arity = 0;
    probes[kind].attrs = kind;
    probes[kind].type = scalar_type;
  }
  return probes;
}();

inline const Primitive* find_op(std::string_view name) {
  for (const Primitive* op : kOps)
    if (op->name == name) return op;
  for (const Primitive& op : kProbes)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace tensorgrad::ir::local
