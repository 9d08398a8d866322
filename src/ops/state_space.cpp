// State-space models: the selective scan of Mamba and its gradient.
#include "ir/sequence.h"
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::SelectiveScanShape;
using ir::Type;

constexpr std::int64_t kLongestChunk = 256;

SelectiveScanShape checked_shape(std::span<const Type> in, const Attrs& attrs) {
  const Shape &u = in[0].shape, &A = in[2].shape;
  const auto& a = std::get<ir::SelectiveScanAttrs>(attrs);
  bool fits = u.rank() == 3 && A.rank() == 2 && A[0] == u[2];
  for (std::size_t i = 0; i < 6; ++i) fits = fits && in[i].dtype == DType::f32;
  if (fits) {
    const Shape narrow{u[0], u[1], A[1]};
    fits = in[1].shape == u && in[3].shape == narrow && in[4].shape == narrow &&
           in[5].shape == Shape{u[2]};
  }
  if (!fits)
    break_rule("",
               "needs u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E] of f32: u is {}, "
               "delta is {}, A_log is {}, "
               "B is {}, C is {}, D is {}",
               in[0].text(), in[1].text(), in[2].text(), in[3].text(), in[4].text(), in[5].text());
  if (a.chunk < 1 || a.chunk > kLongestChunk)
    break_rule("", "a chunk must be 1 to {} steps long: {}", kLongestChunk, a.chunk);
  return {.B = u[0], .L = u[1], .E = u[2], .N = A[1], .chunk = a.chunk, .zoh = a.zoh};
}

SelectiveScanShape shape_of(const std::vector<Tensor>& in, const Attrs& attrs) {
  std::vector<Type> types;
  for (const Tensor& t : in) types.push_back({t.dtype(), t.shape()});
  return checked_shape(types, attrs);
}

// Extracts one part of a packed result.
Tensor unpack(const Tensor& packed, std::int64_t offset, const Shape& shape) {
  return reshape(narrow(packed, 0, offset, shape.count()), shape);
}

constexpr Primitive kSelectiveScanGradient = {
    .name = "selective_scan_gradient",
    .core = Core::selective_scan_gradient,
    .arity = 8,
    .attrs = ir::attrs_index<ir::SelectiveScanAttrs>(),
    .type = [](std::span<const Type> in, const Attrs& attrs) {
      const SelectiveScanShape s = checked_shape(in, attrs);
      if (in[6] != Type{DType::f32, {s.result_elements()}} || in[7] != in[0])
        break_rule("", "does not belong to the scan: {} and {}", in[6].text(), in[7].text());
      return Type{DType::f32, {s.gradient_elements()}};
    }};

constexpr Primitive kSelectiveScan = {
    .name = "selective_scan",
    .core = Core::selective_scan,
    .arity = 6,
    .attrs = ir::attrs_index<ir::SelectiveScanAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          return Type{DType::f32, {checked_shape(in, attrs).result_elements()}};
        },
    // Only y has a gradient; the states are internal.
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      const SelectiveScanShape s = shape_of(d.in, d.node.attrs);
      const Shape wide{s.B, s.L, s.E}, narrow{s.B, s.L, s.N};
      const Tensor g = unpack(d.g, 0, wide);
      Call call("selective_scan", Site::here());
      std::vector<Tensor> in = d.in;
      in.push_back(d.out);
      in.push_back(g);
      const Tensor packed = call.emit(kSelectiveScanGradient, in, d.node.attrs);
      const Tensor dA = sum(unpack(packed, s.dA(), {s.B, s.E, s.N}), 0);
      const Tensor dA_log = -(dA * exp(d.in[2]));
      const Tensor dD = sum(g * d.in[0], {0, 1});
      return {unpack(packed, 0, wide),        unpack(packed, s.ddelta(), wide), dA_log,
              unpack(packed, s.dB(), narrow), unpack(packed, s.dC(), narrow),   dD};
    }};

constexpr const Primitive* kFamily[] = {&kSelectiveScan, &kSelectiveScanGradient};

}  // namespace

std::span<const Primitive* const> state_space_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor selective_scan(Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
                      SelectiveScanOptions options) {
  Call call("selective_scan", u.site());
  std::vector<Tensor> in;
  for (const Operand* operand : {&u, &delta, &A_log, &B, &C, &D})
    in.push_back(call.tensor(*operand));
  const ir::Attrs attrs =
      ir::SelectiveScanAttrs{options.discretisation == Discretisation::zoh, options.chunk};
  const Tensor packed = call.emit(kSelectiveScan, in, attrs);
  return unpack(packed, 0, in[0].shape());
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> state_space_ops() {
  static constexpr PublicOp all[] = {
      op(
          "selective_scan",
          [](Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
             Discretisation discretisation, std::int64_t chunk) {
            return selective_scan(u, delta, A_log, B, C, D,
                                  {.discretisation = discretisation, .chunk = chunk});
          },
          {"u", "delta", "A_log", "B", "C", "D", {"discretisation", "euler"}, {"chunk", 16}},
          "The recurrence of Mamba. u and delta are [B, L, E], A_log is [E, N], B and C are [B, L, "
          "N], D is [E]."),
  };
  return all;
}

}  // namespace tensorgrad::ops
